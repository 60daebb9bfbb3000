"""Run a sweep on a real Slurm on this machine: an array, a killed command, a requeue and a time limit.

python benchmarks/on_slurm.py [--json FILE]

It needs root on Linux, and Slurm and munge: apt-get install -y --no-install-recommends slurmctld slurmd slurm-client munge.
The daemons live in a network namespace of their own and end with the script. The sweep runs with the local engine first.
Every digest must be the same on Slurm, although the command is killed and started again, one job is requeued in the middle
of its run, and another reaches its time limit.
"""

import argparse
import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from prer.runs.environment import environment
from prer.runs.folder import RunFolder

ROOT = Path(__file__).parents[1]
BASE = 'seeds = 1\ndevice = "cpu"\n[learner]\nname = "naive"\noptimiser = "sgd"\n'
ARRAY = BASE + 'epochs = 150\n[axes]\n"learner.lr" = [0.01, 0.02, 0.03, 0.05]\n'
LONG = BASE + 'epochs = 2500\n[axes]\n"learner.lr" = [0.1]\n'  # longer than the time limit's signal
CONF = """ClusterName=one
SlurmctldHost={host}(127.0.0.1)
SlurmUser=root
AuthInfo=socket={folder}/munge/socket,cred_expire=5
CommunicationParameters=NoCtldInAddrAny,NoInAddrAny
MpiDefault=none
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
ReturnToService=2
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.log
NodeName={host} NodeAddr=127.0.0.1 CPUs=2 RealMemory=4000
PartitionName=main Nodes={host} Default=YES State=UP
"""


@contextlib.contextmanager
def slurm(folder):
    """Start munge and Slurm's daemons."""
    host = socket.gethostname().split(".")[0]
    for name in ("munge", "state", "spool"):
        (folder / name).mkdir()
    (folder / "munge.key").write_bytes(os.urandom(64))
    (folder / "munge.key").chmod(0o400)
    (folder / "slurm.conf").write_text(CONF.format(host=host, folder=folder))
    os.environ["SLURM_CONF"] = str(folder / "slurm.conf")
    munge = ["munged", "--foreground", "--force", f"--key-file={folder}/munge.key", f"--socket={folder}/munge/socket"]
    munge += [f"--{what}-file={folder}/munge/{what}" for what in ("pid", "log", "seed")]
    daemons = []
    try:
        for command in (munge, ["slurmctld", "-D"], ["slurmd", "-D", "-N", host]):
            log = (folder / f"{command[0]}.out").open("w")
            daemons.append(subprocess.Popen(command, stdout=log, stderr=log))
            time.sleep(2)
        for _ in range(60):
            if "idle" in told("sinfo", "-h", "-o", "%T"):
                break
            time.sleep(0.5)
        yield
    finally:
        for daemon in reversed(daemons):
            daemon.terminate()
            daemon.wait()


def told(*command):
    """What a command prints."""
    return subprocess.run(command, capture_output=True, text=True).stdout


def sweep(file, out, *options):
    """Start `prer sweep`."""
    command = [sys.executable, "-m", "prer", "sweep", str(file), "--out", str(out), *options]
    return subprocess.Popen(command, stdout=(out.parent / f"{out.name}.log").open("a"), stderr=subprocess.STDOUT)


def runs(out):
    """The run folders by name."""
    return {path.parent.name: RunFolder(path.parent) for path in out.glob("*/experiment.toml")}


def digests(out):
    """The digest of each finished run."""
    return {name: run.result["digest"] for name, run in runs(out).items() if run.result}


def wait(what, seconds=300):
    """Wait until something holds, and return it."""
    end = time.monotonic() + seconds
    while not (found := what()):
        if time.monotonic() > end:
            raise SystemExit("waited in vain")
        time.sleep(0.1)
    return found


def trained(run):
    """The number of epochs that a run has trained so far."""
    return sum(event.get("event") == "epoch" for event in run.events())


def array(folder):
    """An array of jobs; the command is killed in the middle and started again, and one job is requeued."""
    file, out = folder / "array.toml", folder / "on-slurm"
    file.write_text(ARRAY)
    assert sweep(file, folder / "local").wait() == 0
    begin, options = time.perf_counter(), ("--engine", "slurm", "--sbatch", "time=10")
    command = sweep(file, out, *options)
    first = wait(lambda: next((run for run in runs(out).values() if trained(run) > 100), None))
    command.kill()
    command.wait()
    (jobs,) = out.glob(".slurm/*/jobs.json")
    (job,) = (job for job, names in json.loads(jobs.read_text()).items() if first.path.name in names)
    subprocess.run(["scontrol", "requeue", job], check=True)
    command = sweep(file, out, *options)
    code = command.wait()
    return {
        "exit code": code,
        "equal digests": digests(out) == digests(folder / "local") and len(digests(out)),
        "arrays sent": len(list(out.glob(".slurm/*"))),
        "resumed runs": {
            name: len(run.environment["resumed"]) for name, run in runs(out).items() if "resumed" in run.environment
        },
        "starts of jobs": sum("Starting with JobEnvironment" in line for line in logs(out)),
        "seconds": round(time.perf_counter() - begin, 1),
    }


def logs(out):
    """The lines of the logs of all jobs."""
    return [line for log in out.glob(".slurm/*/*_log.out") for line in log.read_text().splitlines()]


def time_limit(folder):
    """A run that is longer than the time limit of its job."""
    file, out = folder / "long.toml", folder / "limited"
    file.write_text(LONG)
    assert sweep(file, folder / "unlimited").wait() == 0
    begin = time.perf_counter()
    code = sweep(file, out, "--engine", "slurm", "--sbatch", "time=2", "--sbatch", "signal=USR2@45").wait()
    (run,) = runs(out).values()
    return {
        "exit code": code,
        "equal digests": digests(out) == digests(folder / "unlimited") and len(digests(out)),
        "signals": sum("Caught signal SIGUSR2" in line for line in logs(out)),
        "times resumed": len(run.environment.get("resumed", ())),
        "seconds": round(time.perf_counter() - begin, 1),
    }


def measure():
    """All parts, in a folder that is removed."""
    os.environ |= {"PYTHONPATH": str(ROOT), "PRER_OFFLINE": "1"}
    for words in ("link set lo up", "addr add 127.0.0.2/8 dev lo"):
        subprocess.run(["ip", *words.split()], check=True)
    with tempfile.TemporaryDirectory(prefix="prer-slurm-") as name:
        folder = Path(name)
        with slurm(folder):
            record = {"slurm": told("sinfo", "--version").strip(), "array": array(folder)}
            print(json.dumps(record, indent=1), flush=True)
            return record | {"time limit": time_limit(folder)}


def main():
    """Measure in a network namespace, and write the record."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if not options.inside:
        sys.exit(subprocess.run(["unshare", "--net", sys.executable, *sys.argv, "--inside"]).returncode)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    record = {"command": "python benchmarks/on_slurm.py", "environment": environment()} | measure()
    print(json.dumps(record, indent=1))
    if options.json:
        options.json.write_text(json.dumps(record, indent=1) + "\n")
    good = all(record[part]["exit code"] == 0 and record[part]["equal digests"] for part in ("array", "time limit"))
    sys.exit(0 if good and record["array"]["resumed runs"] and record["time limit"]["times resumed"] else 1)


if __name__ == "__main__":
    main()
