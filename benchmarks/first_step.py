"""Measure how long a user waits: for `prer --help`, and from the imports to the first epoch of the built-in experiment.

python benchmarks/first_step.py [--json FILE]

Each is measured five times, in new processes.
"""

import argparse
import json
import statistics
import subprocess
import sys
import time
from pathlib import Path

from prer.runs.environment import environment

TIMES = 5
FIRST_EPOCH = """
import time, sys, tempfile
from pathlib import Path
import prer.runs.run
from prer.runs.experiment import Experiment
from prer.runs.folder import RunFolder
begin, event = time.perf_counter(), RunFolder.event
def first(self, about):
    print(time.perf_counter() - begin)
    sys.stdout.flush()
    import os; os._exit(0)
RunFolder.event = first
prer.runs.run.execute(Experiment.parse({}, ["device=cpu"]), Path(tempfile.mkdtemp()))
"""


def seconds(command):
    begin = time.perf_counter()
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return time.perf_counter() - begin, done.stdout


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    python = [sys.executable, "-W", "ignore"]
    found = {"prer --help": [seconds([*python, "-m", "prer", "--help"])[0] for _ in range(TIMES)]}
    epoch = [*python, "-c", FIRST_EPOCH]
    seconds(epoch)
    found["imports to first epoch"] = [float(seconds(epoch)[1]) for _ in range(TIMES)]
    for name, times in found.items():
        print(f"{name}: {statistics.median(times):.2f} s")
    if options.json:
        record = {"command": "python benchmarks/first_step.py", "environment": environment(), "seconds": found}
        options.json.write_text(json.dumps(record, indent=1) + "\n")


if __name__ == "__main__":
    main()
