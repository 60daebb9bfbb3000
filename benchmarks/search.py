"""Search every learner's settings on split digits, with the same budget for each, on validation data.

python benchmarks/search.py [NAME ...] [--workers N] [--out runs] [--json FILE]
python benchmarks/search.py --again benchmarks/records/search_digits.json [NAME ...] [...]

The searches are the files in `search/`: 30 points each (120 for ewc and si), three seeds, tested on a fifth of the training
part. The test part is never used. Finished points are not run again. `--again` runs the five best points of each search
with twenty seeds and names the winner: the best Accuracy among points that learned every task or, if there is none, the
best Accuracy.
"""

import argparse
import functools
import json
import os
import time
from pathlib import Path

import numpy as np
from stacked_points import reached

from prer.runs.environment import environment
from prer.runs.experiment import Experiment
from prer.sweeps.engines.local import Local
from prer.sweeps.sweep import Sweep

FOLDER = Path(__file__).parent / "search"
NAMES = sorted(path.stem for path in FOLDER.glob("*.toml") if path.stem != "digits")
SLOW = ("prer", "dgr", "joint")  # started first, so that no single worker is left with them at the end
LEARNED = 93.5  # per cent that every task must reach; with all the training data it is one or two points more
STUCK = 75.0  # per cent that every seed must reach on every task
FINALISTS, FINAL_SEEDS = 5, 20


def best(entries, learned=LEARNED):
    """Points from best to worst; those that learned every task come first."""

    def key(entry):
        return min(entry["diagonal"]) >= learned and entry.get("weakest", 100) >= STUCK, entry["accuracy"]

    return sorted((entry for entry in entries if not entry["error"]), key=key, reverse=True)


def again(name, found):
    """The best points of a search, with more seeds."""
    for entry in best(found, 94.0)[:FINALISTS]:
        assignments = [f"{key}={json.dumps(value)}" for key, value in entry["settings"].items()]
        base = Sweep.read(FOLDER / f"{name}.toml").points()[0].tables()
        yield Experiment.parse(base | {"seeds": list(range(FINAL_SEEDS))}, assignments)


def settings_of(experiment, keys):
    tables = experiment.tables()
    return {key: functools.reduce(lambda table, part: table[part], key.split("."), tables) for key in keys}


def entry_of(outcome, keys):
    entry = {"settings": settings_of(outcome.experiment, keys), "error": outcome.error}
    if outcome.error:
        return entry
    result = outcome.folder.result
    return entry | reached(np.array(result["matrix"], float)) | {"seconds": result["seconds"]["total"]}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help="by default all of them")
    parser.add_argument("--again", type=Path, metavar="RECORD")
    parser.add_argument("--workers", type=int, default=os.cpu_count())
    parser.add_argument("--out", type=Path, default=Path("runs"))
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    names = sorted(options.names or NAMES, key=lambda name: name not in SLOW)
    sweeps = {name: Sweep.read(FOLDER / f"{name}.toml") for name in names}
    before = json.loads(options.again.read_text())["searches"] if options.again else None
    points = {name: list(again(name, before[name]) if before else sweeps[name].points()) for name in names}
    owner = {point.hash: name for name in names for point in points[name]}
    found, begin, total = {name: [] for name in names}, time.perf_counter(), sum(map(len, points.values()))
    every = [point for name in names for point in points[name]]
    for done, outcome in enumerate(Local(options.workers).run(every, options.out), 1):
        name = owner[outcome.experiment.hash]
        found[name].append(entry_of(outcome, sweeps[name].keys))
        print(f"{done}/{total} {name} {found[name][-1].get('accuracy')}", flush=True)
        if options.json and (done % 20 == 0 or done == total):
            write(options.json, options, found, total, time.perf_counter() - begin)
    for name, entries in found.items():
        winner = best(entries)[0]
        least = min(winner["diagonal"])
        print(f"{name:<12} {winner['accuracy']:6.2f} {winner['bwt']:7.2f} {least:6.1f}  {winner['settings']}")


def write(path, options, found, total, seconds):
    how = ["--again", "RECORD"] if options.again else []
    record = {
        "command": " ".join(["python", "benchmarks/search.py", *how, *options.names]),
        "environment": environment(),
        "points": total,
        "seconds": round(seconds),
        "searches": {name: best(entries) for name, entries in sorted(found.items())},
    }
    path.write_text(json.dumps(record, indent=1) + "\n")


if __name__ == "__main__":
    main()
