"""Measure the CPU time of `prer report` of one run, without its imports.

python benchmarks/report_cpu.py [--against CHECKOUT] [--repeats 5] [--json FILE]

The built-in run is made once. Then these take turns, each in a new process: this code's page, another checkout's page if
one is given, and only the imports that a page needs. torch uses its default number of threads.
"""

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from prer.cli.main import main as prer
from prer.runs.environment import environment

HERE = Path(__file__).parents[1]
IMPORTS = (
    "import jinja2, matplotlib.backends.backend_svg, rich.console, safetensors.numpy, scipy.stats, sklearn.datasets\n"
    "import prer.cli.main, prer.report.figures, prer.report.page, prer.runs.run"
)


def seconds(checkout, folder, *arguments):
    """CPU seconds of a Python process with the package of this checkout."""
    known = {key: value for key, value in os.environ.items() if key != "OMP_NUM_THREADS"}
    known["PYTHONPATH"] = str(checkout.resolve())
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, *arguments], check=True, cwd=folder, env=known, stdout=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--against", type=Path)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    found = {"this": [], "imports": []} | ({"against": []} if args.against else {})
    with tempfile.TemporaryDirectory() as folder:
        prer(["run", "learner.name=prer", "--device", "cpu", "--out", folder, "--quiet"])
        (run,) = Path(folder).iterdir()
        page = ["-m", "prer", "report", run.name, "-o", "page.html"]
        for _ in range(args.repeats):
            if args.against:
                found["against"].append(seconds(args.against, folder, *page))
            found["this"].append(seconds(HERE, folder, *page))
            found["imports"].append(seconds(HERE, folder, "-c", IMPORTS))
    for what, values in found.items():
        print(f"{what:<8} {statistics.median(values):5.2f} s ({min(values):.2f} to {max(values):.2f})")
    beyond = [page - imports for page, imports in zip(found["this"], found["imports"], strict=True)]
    print(f"beyond its imports, this takes {statistics.median(beyond):.2f} s ({min(beyond):.2f} to {max(beyond):.2f})")
    if args.json:
        record = {"command": "python benchmarks/report_cpu.py", "cpu_seconds": found, "environment": environment()}
        if args.against:
            record["command"] += " --against CHECKOUT"
            command = ["git", "-C", str(args.against), "describe", "--always", "--dirty", "--abbrev=12"]
            record["against"] = subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
        args.json.write_text(json.dumps(record, indent=1) + "\n")


if __name__ == "__main__":
    main()
