"""What dispatch and collection cost: 100 runs of 10 seconds on two workers, by engine, and how busy the cores are.

python benchmarks/engine_cost.py [--engines local ray] [--runs 100] [--seconds 10] [--json FILE]

A worker is replaced by a process (with Ray by a task) that lasts ten seconds and writes a result, so everything else that takes time is the engine's:
it submits, starts processes, and collects outcomes. A real worker takes seconds to import torch, which counts as a part of
its run. `--busy` measures the share of the time that the cores work during a real sweep with the local engine instead.
"""

import argparse
import json
import os
import sys
import tempfile
import time
import tomllib
from importlib import import_module
from pathlib import Path

from prer.runs.environment import environment
from prer.runs.experiment import Experiment
from prer.sweeps.engines import engine, worker
from prer.sweeps.sweep import Sweep

SWEEP = 'seeds = 1\ndevice = "cpu"\n[learner]\nname = "naive"\noptimiser = "sgd"\n[axes]\n"learner.lr" = {rates}\n'
METRIC = {"mean": 1.0, "std": None, "values": [1.0]}
RESULT = json.dumps(
    {"seeds": [0], "matrix": [[[1.0]]], "memory_floats": [0], "memory_samples": [0], "seconds": {"total": 1}}
    | {"accuracy": METRIC, "bwt": METRIC, "learner": "naive", "stream": "digits"}
)
STAND_IN = """
import pathlib, sys, time
begin = time.monotonic()
folder = pathlib.Path(sys.argv[2], pathlib.Path(sys.argv[1]).stem)
folder.mkdir(parents=True)
(folder / "experiment.toml").write_text(open(sys.argv[1]).read())
time.sleep({seconds} - (time.monotonic() - begin))
(folder / "result.json").write_text('{result}')
"""


def task(seconds):
    """A stand-in for a task of Ray, which would start a worker."""

    def compute(toml, out, options, cwd):
        begin = time.monotonic()
        folder = Path(out, Experiment.parse_run(tomllib.loads(toml)).folder)
        folder.mkdir(parents=True)
        (folder / "experiment.toml").write_text(toml)
        time.sleep(seconds - (time.monotonic() - begin))
        (folder / "result.json").write_text(RESULT)
        return ""

    return compute


def overhead(name, runs, seconds, workers=2):
    """Seconds of a sweep above those of its runs, in percent."""
    with tempfile.TemporaryDirectory(prefix="prer-cost-") as folder:
        file = Path(folder, "sweep.toml")
        file.write_text(SWEEP.format(rates=[round(0.001 * (i + 1), 3) for i in range(runs)]))
        points = Sweep.read(file).points()
        if name == "ray":
            import_module("prer.sweeps.engines.ray").compute = task(seconds)
        before = time.perf_counter()
        chosen = engine(name, workers)  # starts a cluster of Ray
        begin = time.perf_counter()
        outcomes = list(chosen.run(points, Path(folder, "runs")))
        took = time.perf_counter() - begin
    assert len(outcomes) == runs and not any(outcome.error for outcome in outcomes), outcomes[0].error
    ideal = runs * seconds / workers
    return {"runs": runs, "seconds of a run": seconds, "workers": workers, "seconds": round(took, 2)} | {
        "overhead in percent": round(100 * (took - ideal) / ideal, 2),
        "seconds to start the engine, not included": round(begin - before, 2),
    }


def core_seconds():
    """The seconds that all cores were idle (waiting for the disk included) and not idle so far."""
    ticks = [int(x) / os.sysconf("SC_CLK_TCK") for x in Path("/proc/stat").read_text().split()[1:9]]
    return ticks[3] + ticks[4], sum(ticks) - ticks[3] - ticks[4]


def busy(runs):
    """The share of the cores that a real sweep uses, in percent: of all their time, and of the time that other programs left."""
    with tempfile.TemporaryDirectory(prefix="prer-busy-") as folder:
        file = Path(folder, "sweep.toml")
        rates = [round(0.001 * (i + 1), 3) for i in range(runs)]
        file.write_text(SWEEP.format(rates=rates).replace("[axes]", "epochs = 100\n[axes]"))
        points = Sweep.read(file).points()
        before, cores_before, begin = os.times(), core_seconds(), time.perf_counter()
        outcomes = list(engine("local").run(points, Path(folder, "runs")))
        took, after = time.perf_counter() - begin, os.times()
        idle, working = (now - then for now, then in zip(core_seconds(), cores_before, strict=True))
    assert not any(outcome.error for outcome in outcomes)
    used = sum(after[:4]) - sum(before[:4])
    return {"runs": runs, "cores": len(os.sched_getaffinity(0)), "seconds": round(took, 1)} | {
        "CPU seconds of the sweep": round(used, 1),
        "CPU seconds of other programs": round(working - used, 1),
        "idle seconds of the cores": round(idle, 1),
        "cores busy with the sweep in percent": round(100 * used / (idle + working), 1),
        "cores busy with the sweep, of the time that others left, in percent": round(100 * used / (used + idle), 1),
    }


def main():
    """Measure, and write the record."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--engines", nargs="*", default=["local", "ray"])
    parser.add_argument("--runs", type=int, default=100)
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--busy", type=int, metavar="RUNS")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    record = {"command": "python benchmarks/engine_cost.py", "environment": environment()}
    if options.busy:
        record["busy"] = busy(options.busy)
    code = STAND_IN.format(seconds=options.seconds, result=RESULT)
    for name in options.engines:
        worker.command = lambda file, out: [sys.executable, "-Sc", code, str(file), str(out)]
        record[name] = overhead(name, options.runs, options.seconds)
        print(json.dumps(record[name]), flush=True)
    print(json.dumps(record, indent=1))
    if options.json:
        options.json.write_text(json.dumps(record, indent=1) + "\n")


if __name__ == "__main__":
    main()
