"""Search every learner's settings on split digits, with the same budget for each, on validation data.

python benchmarks/search.py [--workers N] [--out runs] [--json FILE]

The searches are the files in `search/`: 30 points each, three seeds, tested on a fifth of the training part. The test
part is never seen. A point that is finished is not run again.
"""

import argparse
import json
import os
import time
from pathlib import Path

from prer.engines import Local
from prer.record import environment
from prer.sweep import Sweep

FILES = sorted(path for path in (Path(__file__).parent / "search").glob("*.toml") if path.stem != "digits")
SLOW = ("prer", "dgr", "joint")  # first, so that no worker is left alone with them


def settings(point, keys):
    tables = point.tables()
    return {key: tables[key.split(".")[0]][key.split(".")[1]] for key in keys}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--workers", type=int, default=os.cpu_count())
    parser.add_argument("--out", type=Path, default=Path("runs"))
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    sweeps = {path.stem: Sweep.read(path) for path in sorted(FILES, key=lambda path: path.stem not in SLOW)}
    owner = {point.hash: (name, sweep) for name, sweep in sweeps.items() for point in sweep.points()}
    points = [point for sweep in sweeps.values() for point in sweep.points()]
    found, begin = {name: [] for name in sweeps}, time.perf_counter()
    for done, outcome in enumerate(Local(options.workers).run(points, options.out), 1):
        name, sweep = owner[outcome.experiment.hash]
        result = None if outcome.error else outcome.record.result
        entry = {"settings": settings(outcome.experiment, sweep.keys), "error": outcome.error}
        if result:
            entry |= {key: result[key]["mean"] for key in ("accuracy", "bwt")} | {"seconds": result["seconds"]["total"]}
            entry["diagonal"] = [sum(R[t][t] for R in result["matrix"]) / len(result["matrix"]) for t in range(5)]
        found[name].append(entry)
        print(f"{done}/{len(points)} {name} {entry.get('accuracy')}", flush=True)
        if options.json and (done % 20 == 0 or done == len(points)):
            write(options.json, found, len(points), time.perf_counter() - begin)
    for name, entries in found.items():
        best = max((e for e in entries if not e["error"]), key=lambda e: e["accuracy"])
        print(f"{name:<12} {best['accuracy']:6.2f} {best['bwt']:7.2f}  {best['settings']}")


def write(path, found, total, seconds):
    record = {
        "command": "python benchmarks/search.py",
        "environment": environment(),
        "points": total,
        "seconds": round(seconds),
        "searches": {name: sorted(e, key=lambda e: -(e.get("accuracy") or 0)) for name, e in sorted(found.items())},
    }
    path.write_text(json.dumps(record, indent=1) + "\n")


if __name__ == "__main__":
    main()
