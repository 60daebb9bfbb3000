"""Run the same experiments with the code of two checkouts, and compare the digests of all that was learned.

python benchmarks/digests.py OLD NEW [--json FILE]

OLD and NEW are source checkouts; the Python that runs this must have what both need. Kernels are off, so that torch's own
operations compute in both: there, not one bit may differ.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from prer.runs.environment import environment
from prer.runs.folder import RunFolder

OFF = {"CC": "false", "PRER_KERNELS": "off", "OMP_NUM_THREADS": "1"}  # CC: of versions that compiled when they ran
EXPERIMENTS = {
    "built-in": [],
    "built-in, naive": ["learner.name=naive"],
    "permuted, one head": ["stream.kind=permuted", "stream.count=3", "learner.epochs=5", "seeds=2"],
}


def digest(checkout, settings, folder):
    """The digest of an experiment that is run with the code of a checkout."""
    command = [sys.executable, "-P", "-m", "prer", "run", "device=cpu", *settings, "--quiet", "--out", str(folder)]
    begin = time.perf_counter()
    done = subprocess.run(
        command, env=os.environ | OFF | {"PYTHONPATH": str(checkout)}, stdout=subprocess.PIPE, check=True
    )
    result = RunFolder(Path(done.stdout.decode().splitlines()[-1])).result
    return {"digest": result["digest"], "seconds": round(time.perf_counter() - begin, 1)}


def commit(checkout):
    command = ["git", "-C", str(checkout), "describe", "--always", "--dirty", "--abbrev=12"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("old", type=Path)
    parser.add_argument("new", type=Path)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    checkouts = {"old": options.old.resolve(), "new": options.new.resolve()}
    found = {}
    for name, settings in EXPERIMENTS.items():
        with tempfile.TemporaryDirectory() as folder:
            both = {which: digest(path, settings, Path(folder) / which) for which, path in checkouts.items()}
        found[name] = both | {"equal": both["old"]["digest"] == both["new"]["digest"]}
        print(f"{name}: {'equal' if found[name]['equal'] else 'DIFFERENT'} {both['new']['digest']}", flush=True)
    if options.json:
        about = {"command": "python benchmarks/digests.py OLD NEW", "environment": environment()}
        commits = {which: commit(path) for which, path in checkouts.items()}
        options.json.write_text(json.dumps(about | {"commits": commits, "experiments": found}, indent=1) + "\n")
    sys.exit(not all(each["equal"] for each in found.values()))


if __name__ == "__main__":
    main()
