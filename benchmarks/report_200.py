"""Measure the size of a page about 200 runs, and the time to write it.

python benchmarks/report_200.py [--runs 200] [--json FILE]

One short run of PRER on the digits is copied under other names, each copy with different accuracies. The command is then
timed five times, in new processes.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from prer.cli.main import main as prer
from prer.runs.environment import environment
from prer.runs.folder import RunFolder
from prer.runs.metrics import summary

LEARNERS = ("prer", "naive", "ewc", "si", "er", "gem", "lwf", "dgr")
TINY = ["learner.epochs=20", "learner.epochs_autoencoder=20", "learner.density.epochs=20"]
COMMAND = [sys.executable, "-c", "from prer.cli.main import main; main()", "report"]


def copies(run: Path, out: Path, count: int) -> None:
    """Make copies of this run."""
    known, rng = RunFolder(run).result, np.random.default_rng(0)
    for i in range(count):
        folder = out / f"digits-{LEARNERS[i % len(LEARNERS)]}-{i:08x}"
        folder.mkdir(parents=True)
        for name in ("experiment.toml", "environment.json", "events.jsonl"):
            (folder / name).write_bytes((run / name).read_bytes())
        R = np.clip(np.array(known["matrix"], float) - rng.uniform(0, 20), 0, 100)
        changed = {"matrix": np.where(np.isnan(R), None, R).tolist(), "learner": LEARNERS[i % len(LEARNERS)]}
        changed["memory_floats"] = [int(rng.integers(1, 10**5)) for _ in known["memory_floats"]]
        RunFolder(folder).finish(known | summary(R, np.full(R.shape[:2], np.nan)) | changed)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        prer(["run", *TINY, "--seeds", "5", "--device", "cpu", "--out", str(folder / "one"), "--quiet"])
        copies(next((folder / "one").iterdir()), folder / "many", args.runs)
        seconds = []
        for _ in range(5):
            begin = time.perf_counter()
            subprocess.run([*COMMAND, str(folder / "many"), "-o", str(folder / "page.html")], check=True)
            seconds.append(time.perf_counter() - begin)
        size = (folder / "page.html").stat().st_size
    found = {"command": f"python benchmarks/report_200.py --runs {args.runs}", "runs": args.runs}
    found |= {"bytes": size, "seconds": seconds, "environment": environment()}
    print(f"{args.runs} runs: {size / 1e6:.2f} MB, {min(seconds):.1f} to {max(seconds):.1f} s")
    if args.json:
        args.json.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
