"""Run the same points one at a time and two at a time on one GPU, with NVIDIA's Multi-Process Service (MPS).

python benchmarks/two_on_one_gpu.py [--points 6] [--epochs 150] [--plain] [--device cuda] [--json FILE]

The local engine runs a small sweep on the digits with one worker, then with two workers that share the GPU (`--per-gpu 2`) under
MPS, which this script starts and stops. `--plain` adds two workers without MPS, which take turns. The digests must be equal point
by point, and two runs must have been active at the same time: by the times of the files in their folders, and on a GPU by
the clients of MPS and the processes in nvidia-smi, which are counted meanwhile. `--device cpu` tries everything but the GPU.
"""

import argparse
import contextlib
import json
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

from prer.runs.environment import environment
from prer.runs.folder import RunFolder
from prer.sweeps.engines import engine
from prer.sweeps.engines.watched import started
from prer.sweeps.sweep import Sweep

SWEEP = 'seeds = 5\ndevice = "{device}"\n[learner]\nname = "naive"\nepochs = {epochs}\n[axes]\n"learner.lr" = {rates}\n'
CONTROL = "nvidia-cuda-mps-control"
LOOK = 0.2  # seconds between two looks at the GPU


def told(*command, given=""):
    """What a command prints; nothing if it fails."""
    try:
        return subprocess.run(command, input=given, capture_output=True, text=True, timeout=20).stdout
    except (OSError, subprocess.TimeoutExpired):
        return ""


@contextlib.contextmanager
def service(wanted):
    """MPS while the block runs, if wanted."""
    if not wanted:
        yield
        return
    with tempfile.TemporaryDirectory(prefix="mps-") as folder:  # a short path, as it holds sockets
        own = {f"CUDA_MPS_{name}_DIRECTORY": folder for name in ("PIPE", "LOG")}
        os.environ |= own
        subprocess.run([CONTROL, "-d"], check=True)
        try:
            yield
        finally:
            told(CONTROL, given="quit\n")
            for name in own:
                del os.environ[name]


@contextlib.contextmanager
def observed():
    """Count the clients of MPS, and the processes in nvidia-smi, while the block runs."""
    clients, processes, ended = [0], [0], threading.Event()

    def look():
        while not ended.wait(LOOK):
            if "CUDA_MPS_PIPE_DIRECTORY" in os.environ:
                servers = told(CONTROL, given="get_server_list\n").split()
                clients.append(sum(len(told(CONTROL, given=f"get_client_list {pid}\n").split()) for pid in servers))
            apps = told("nvidia-smi", "--query-compute-apps=pid,name", "--format=csv,noheader").splitlines()
            processes.append(sum("mps-server" not in app for app in apps))

    thread = threading.Thread(target=look)
    thread.start()
    try:
        yield clients, processes
    finally:
        ended.set()
        thread.join()


def together(times):
    """The most runs at a time, and the seconds with at least two, from the begin and end of each run."""
    most = active = 0
    seconds, last = 0.0, 0.0
    for moment, change in sorted([(begin, 1) for begin, _ in times] + [(end, -1) for _, end in times]):
        seconds += moment - last if active > 1 else 0.0
        active, last = active + change, moment
        most = max(most, active)
    return most, seconds


def computed(points, out, chosen, device):
    """Run all points; the digest of each, and what it took."""
    begin = time.perf_counter()
    with observed() as (clients, processes):
        outcomes = list(chosen.run(points, out))
    took = time.perf_counter() - begin
    assert not any(outcome.error for outcome in outcomes), [outcome.error for outcome in outcomes]
    runs = [RunFolder(point.path(out)) for point in points]
    results = [run.result for run in runs]
    assert all(result["device"].startswith(device) for result in results)
    times = [(started(run) / 1e9, (run.path / "result.json").stat().st_mtime) for run in runs]
    most, seconds = together(times)
    return [result["digest"] for result in results], {
        "runs": len(runs),
        "seconds": round(took, 1),
        "median seconds of training of a run": round(statistics.median(r["seconds"]["total"] for r in results), 2),
        "most runs at a time": most,
        "seconds with two runs at a time": round(seconds, 1),
        "most clients of MPS": max(clients),
        "most processes in nvidia-smi, without the server of MPS": max(processes),
    }


def measure(options):
    """All ways to run the points, in a folder that is removed."""
    on_gpu = options.device == "cuda"
    rates = [round(0.001 * (i + 1), 3) for i in range(options.points)]
    two = {"per_gpu": 2} if on_gpu else {"workers": 2}
    ways = [("one worker", {"workers": 1}, False), ("two workers", two, on_gpu)]
    ways += [("two workers without MPS", two, False)] * options.plain
    with tempfile.TemporaryDirectory(prefix="prer-gpu-") as name:
        folder, digests, record = Path(name), {}, {}
        file = folder / "sweep.toml"
        file.write_text(SWEEP.format(device=options.device, epochs=options.epochs, rates=rates))
        points = Sweep.read(file).points()
        computed(points[:1], folder / "first", engine("local", 1), options.device)  # fills caches
        for way, workers, with_mps in ways:
            with service(with_mps):
                digests[way], record[way] = computed(points, folder / way, engine("local", **workers), options.device)
            same = sum(a == b for a, b in zip(digests[way], digests["one worker"], strict=True))
            record[way]["MPS"] = with_mps
            record[way]["digests equal to those of one worker"] = same
            times = record["one worker"]["seconds"] / record[way]["seconds"]
            record[way]["times as fast as one worker"] = round(times, 2)
            print(json.dumps({way: record[way]}), flush=True)
    return record


def main():
    """Measure, and write the record."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--points", type=int, default=6)
    parser.add_argument("--epochs", type=int, default=150)
    parser.add_argument("--plain", action="store_true", help="also two workers without MPS")
    parser.add_argument("--device", choices=["cuda", "cpu"], default="cuda")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    os.environ["CUDA_VISIBLE_DEVICES"] = os.environ.get("CUDA_VISIBLE_DEVICES", "0").split(",")[0]
    begin = time.perf_counter()
    measured = measure(options)
    seconds = round(time.perf_counter() - begin, 1)
    record = {"command": f"python benchmarks/two_on_one_gpu.py --points {options.points} --epochs {options.epochs}"}
    record["command"] += " --plain" * options.plain + f" --device {options.device}"
    # Not earlier, as it may start CUDA in this process.
    record |= {"environment": environment(), "device": options.device, "seconds": seconds} | measured
    print(json.dumps(record, indent=1))
    if options.json:
        options.json.write_text(json.dumps(record, indent=1) + "\n")
    shared = measured["two workers"]
    at_once = [shared["most runs at a time"], shared["most clients of MPS"] if options.device == "cuda" else 2]
    equal = all(way["digests equal to those of one worker"] == way["runs"] for way in measured.values())
    sys.exit(0 if equal and min(at_once) > 1 else 1)


if __name__ == "__main__":
    main()
