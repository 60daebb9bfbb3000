"""Run the same 24 points on this machine and on a real Ray cluster of two nodes, of which a worker and a node are killed.

python benchmarks/on_ray.py [--json FILE]

It needs root on Linux, and prer[ray]. The two nodes are two raylets in a network namespace that has only loopback, each with
its own resources. First the local engine runs the sweep. Then the cluster does, and while it runs, one of Ray's worker processes
is killed with SIGKILL, then the raylet of the second node, then the command itself, which is started again. Last, six of the
points run with --apart, as if the nodes shared no folder of runs, and the second node is killed. Then the whole sweep runs from a
command outside the cluster: it is no node, and its only connection is the port of Ray Client. It shares no folder with the nodes, is
killed with SIGKILL, and is started again. All digests must be the same, and a run that had a checkpoint and lost its process must
not begin again.
"""

import argparse
import contextlib
import json
import os
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from on_slurm import digests, runs, sweep, trained, wait

from prer.runs.environment import environment
from prer.runs.folder import RunFolder

ROOT = Path(__file__).parents[1]
BASE = 'seeds = 1\ndevice = "cpu"\n[learner]\nname = "naive"\noptimiser = "sgd"\nepochs = 200\n'
SWEEP = BASE + '[axes]\n"learner.lr" = [0.01, 0.02, 0.03, 0.04, 0.05, 0.06]\n"learner.batch" = [32, 48, 64, 96]\n'
ADDRESS = "127.0.0.1:6379"
CLIENT_PORT = 10001
MOST_EPOCHS = 700  # of the thousand of a run with five tasks
SOON = 2.0  # seconds until the runs of a killed process have saved themselves; Ray starts them again later
QUICKLY = {
    "RAY_health_check_period_ms": "1000",
    "RAY_health_check_timeout_ms": "1000",
    "RAY_health_check_initial_delay_ms": "1000",
    "RAY_health_check_failure_threshold": "3",
}
COMMON = ["--node-ip-address=127.0.0.1", "--num-cpus=1", "--object-store-memory=80000000", "--disable-usage-stats"]


@contextlib.contextmanager
def cluster(folder):
    """Start two nodes, and end all their processes."""
    ray = str(Path(sys.executable).with_name("ray"))
    head = ["--head", "--port=6379", "--include-dashboard=false", f"--temp-dir={folder}", '--resources={"node_a":1}']
    head.append(f"--ray-client-server-port={CLIENT_PORT}")
    second = [f"--address={ADDRESS}", '--resources={"node_b":1}']
    try:
        for words in (head, second):
            subprocess.run([ray, "start", *words, *COMMON], check=True, timeout=60, stdout=subprocess.DEVNULL)
        yield
    finally:
        for pid in members():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


def members():
    """The other processes in this network namespace."""
    ours = os.readlink("/proc/self/ns/net")
    for entry in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if os.readlink(entry / "ns/net") == ours and int(entry.name) != os.getpid():
                yield int(entry.name)


def named(*words):
    """The processes in this namespace whose command line holds all these words."""
    for pid in members():
        with contextlib.suppress(OSError):
            text = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode()
            if all(word in text for word in words):
                yield pid, text


def checkpoints(out):
    """The active runs that have a checkpoint, and are not about to end."""
    found = {path.parents[1].name for path in out.glob("*/checkpoint/checkpoint.json")}
    return {name for name in found if active(name) and trained(RunFolder(out / name)) < MOST_EPOCHS}


def active(name):
    """Whether a process computes a run; to try its lock could stop one from starting."""
    return any(named("prer.cli.worker", f"{name}.toml"))


def kill(pids):
    """Kill processes at once."""
    for pid in pids:
        os.kill(pid, signal.SIGKILL)


def second():
    """The process of the second node's raylet."""
    return [pid for pid, text in named("raylet/raylet") if "node_b" in text]


def on_second():
    """The runs that the second node computes."""
    parents = {
        pid: int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1]) for pid, _ in named("ray::")
    }
    return {text[5:].split()[0] for pid, text in named("ray::digits") if parents.get(pid) in second()}


def without_second(out, finished):
    """Kill the second node once so many runs are finished and its own has a checkpoint; the runs that lost their process."""
    names = wait(lambda: len(digests(out)) >= finished and checkpoints(out) & on_second())
    kill(second())
    time.sleep(SOON)
    return names - digests(out).keys()


def disturbed(file, out):
    """The sweep on the cluster, with everything killed once; the runs that were lost by that."""
    options = ("--engine", "ray", "--address", ADDRESS)
    command = sweep(file, out, *options)
    names = wait(lambda: len(digests(out)) >= 2 and checkpoints(out))
    pid, name = next((pid, name) for pid, text in named("ray::") for name in names if name in text)
    kill([pid])
    lost = {"worker": {name}}  # it begins again at once
    lost["node"] = without_second(out, 6)
    names = wait(lambda: len(digests(out)) >= 12 and checkpoints(out))
    command.kill()
    command.wait()
    time.sleep(SOON)
    lost["command"] = names - digests(out).keys()
    return sweep(file, out, *options).wait(), lost


def apart(file, out):
    """Six of the points on nodes that share no folder of runs; the second node is killed."""
    begin = time.perf_counter()
    command = sweep(file, out, "learner.batch=64", "--engine", "ray", "--address", ADDRESS, "--apart")
    lost = without_second(out, 1)
    return {
        "exit code": command.wait(),
        "points": len(digests(out)),
        "runs with a copy of a checkpoint that lost their process": len(lost),
        "all of them resumed": lost <= resumed(out),
        "seconds": round(time.perf_counter() - begin, 1),
    }


def outside(file, out):
    """The sweep from a command outside the cluster, which is killed twice and started again.

    Ray waits for a lost client, 30 seconds by default and here one second the second time, and ends its tasks up to half a minute
    later. Until then they go on, and the command that was started again collects what they find.
    """
    options = ("--engine", "ray", "--address", f"ray://127.0.0.1:{CLIENT_PORT}", "--apart")
    begin, seen, waited = time.perf_counter(), {}, []
    command = sweep(file, out, *options)
    for patience in ("1", "30"):
        wait(lambda: len(digests(out)) >= 2 and checkpoints(out))
        ports, servers = connections(command.pid), set(named("specific-server"))
        os.environ["RAY_CLIENT_RECONNECT_GRACE_PERIOD"] = patience  # of the next command
        command.kill()
        command.wait()
        killed = time.perf_counter()
        command = sweep(file, out, *options)
        wait(lambda: look(out, seen) or not servers & set(named("specific-server")))  # noqa: B023, called at once
        waited.append(round(time.perf_counter() - killed, 1))
    wait(lambda: look(out, seen) or command.poll() is not None)
    later = {name: [found for copied, found in list(of.values())[1:] if copied] for name, of in seen.items()}
    again = [all(found) and found[0] for found in later.values() if found]
    return {
        "exit code": command.wait(),
        "points": len(digests(out)),
        "ports of the command's connections": ports,
        "seconds until Ray ended the tasks of the killed commands": waited,
        "runs with a copy of a checkpoint that another process took over": len(again),
        "of these, resumed from a checkpoint": again.count("checkpoint"),
        "of these, found that it was finished": again.count("result"),
        "all of them resumed": all(again),
        "seconds": round(time.perf_counter() - begin, 1),
    }


def look(out, seen):
    """Note each new process of a run: whether the command had a copy of its checkpoint, and what the process began with."""
    for pid, text in named("prer.cli.worker"):
        words = text.split()
        name = next(Path(word).stem for word in words if word.endswith(".toml"))
        if pid not in seen.setdefault(name, {}):
            files = {"result": "result.json", "checkpoint": "checkpoint/checkpoint.json"}
            own = Path(words[words.index("--out") + 1], name)
            found = next((what for what, file in files.items() if (own / file).exists()), "")
            seen[name][pid] = (out / name / files["checkpoint"]).exists(), found


def connections(pid):
    """The ports that a process is connected to."""
    sockets = {os.readlink(link)[8:-1] for link in Path(f"/proc/{pid}/fd").iterdir() if "socket" in os.readlink(link)}
    lines = [
        line.split() for file in ("tcp", "tcp6") for line in Path(f"/proc/net/{file}").read_text().splitlines()[1:]
    ]
    return sorted({int(line[2].rpartition(":")[2], 16) for line in lines if line[9] in sockets and line[3] == "01"})


def resumed(out):
    """The runs that were resumed from a checkpoint."""
    return {name for name, run in runs(out).items() if "resumed" in run.environment}


def measure():
    """Both sweeps, in a folder that is removed."""
    os.environ |= {"PYTHONPATH": str(ROOT), "PRER_OFFLINE": "1", "PRER_CHECKPOINT_SECONDS": "1"} | QUICKLY
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    folder = Path(tempfile.mkdtemp(prefix="prer-ray-"))
    (folder / "token").write_text(secrets.token_hex(32))
    os.environ |= {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN_PATH": str(folder / "token")}
    file, out = folder / "sweep.toml", folder / "on-ray"
    file.write_text(SWEEP)
    record = {}
    try:
        begin = time.perf_counter()
        assert sweep(file, folder / "local").wait() == 0
        record["local"] = {"points": len(digests(folder / "local")), "seconds": round(time.perf_counter() - begin, 1)}
        print(json.dumps(record), flush=True)
        with cluster(folder / "ray"):
            begin = time.perf_counter()
            code = sweep(file, folder / "calm", "--engine", "ray", "--address", ADDRESS).wait()
            same = digests(folder / "calm") == digests(folder / "local")
            record["two nodes"] = {"exit code": code, "points": len(digests(folder / "calm")), "equal digests": same}
            record["two nodes"]["seconds"] = round(time.perf_counter() - begin, 1)
            print(json.dumps(record), flush=True)
            begin = time.perf_counter()
            code, lost = disturbed(file, out)
        same = digests(out) == digests(folder / "local")
        record["killed"] = {"exit code": code, "points": len(digests(out)), "equal digests": same}
        record["killed"]["runs with a checkpoint that lost their process"] = {by: len(of) for by, of in lost.items()}
        record["killed"]["all of them resumed"] = set().union(*lost.values()) <= resumed(out)
        record["killed"]["runs resumed from a checkpoint"] = len(resumed(out))
        record["killed"]["seconds"] = round(time.perf_counter() - begin, 1)
        print(json.dumps(record), flush=True)
        with cluster(folder / "ray2"):
            record["apart"] = apart(file, folder / "apart")
        print(json.dumps(record["apart"]), flush=True)
        with cluster(folder / "ray3"):
            record["outside"] = outside(file, folder / "outside")
        known = digests(folder / "local")
        for part in ("apart", "outside"):
            record[part]["equal digests"] = all(known[name] == of for name, of in digests(folder / part).items())
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return record


def main():
    """Measure in a network namespace, and write the record."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if not options.inside:
        sys.exit(subprocess.run(["unshare", "--net", sys.executable, *sys.argv, "--inside"]).returncode)
    record = {"command": "python benchmarks/on_ray.py", "environment": environment()} | measure()
    print(json.dumps(record, indent=1))
    if options.json:
        options.json.write_text(json.dumps(record, indent=1) + "\n")
    good = all(record[part]["all of them resumed"] for part in ("killed", "apart", "outside")) and all(
        record[part]["exit code"] == 0 and record[part]["equal digests"]
        for part in ("two nodes", "killed", "apart", "outside")
    )
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()
