"""Search the settings of PRER's rivals over features of pretrained networks, on validation data.

    python benchmarks/search_features.py RUNS FILE [NAME=PATH ...] [--budget 5] [--workers N] [--minutes M] [--only NAME,...] [--write]

Every rival (slda, ranpac, and joint: a head on all data) gets the same number of random points on each data set, with two
seeds, tested on a fifth of the training part. PRER has its default everywhere and is not searched. FILE is the record;
`--write` writes the winners to prer/presets/features.toml. NAME=PATH is a CSV (clinc150, banking77) or a folder.
"""

import argparse
import json
import sys
import time
from pathlib import Path

from prer.paper.features import METHODS, SOURCES, TEXT
from prer.runs.environment import environment
from prer.sweeps.engines.local import Local
from prer.sweeps.sweep import Sweep

SPACES = {
    "slda": {"learner.shrinkage": {"low": 1e-5, "high": 0.5, "log": True}},
    "ranpac": {
        "learner.features": ["relu", "fourier"],
        "learner.ridge": {"low": 1e-5, "high": 1e-1, "log": True},
        "learner.scale": {"low": 0.3, "high": 3.0, "log": True},
    },
    "joint": {"learner.lr": {"low": 1e-4, "high": 3e-3, "log": True}, "learner.dropout": [0.2, 0.5]},
}
SEARCHED = {name: {key.removeprefix("learner.") for key in space} for name, space in SPACES.items()}


def points(data, name, path, budget):
    source = SOURCES[data]
    stream = {"data": path, "features": source.features, "classes_per_task": source.classes_per_task}
    stream |= {"scenario": "class", "validation": 0.2} | (TEXT if source.features == "minilm" else {})
    learner = {"name": name, **METHODS[name]}
    return Sweep.parse(
        {"stream": stream, "learner": learner, "seeds": [0, 1], "budget": budget, "draws": SPACES[name]}
    ).points()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", type=Path)
    parser.add_argument("file", type=Path)
    parser.add_argument("paths", nargs="*", metavar="NAME=PATH")
    parser.add_argument("--budget", type=int, default=5)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--minutes", type=float, default=600.0)
    parser.add_argument("--only", help="data sets, separated by commas")
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    paths, begin = dict(word.split("=", 1) for word in options.paths), time.perf_counter()
    only = options.only.split(",") if options.only else [*SOURCES]
    datas = [data for data in SOURCES if data in only and (data in paths or data == "cifar10")]
    owners = {
        p.hash: (data, name, p)
        for data in datas
        for name in SPACES
        for p in points(data, name, paths.get(data, data), options.budget)
    }
    for data in datas:  # so that runs share the features
        next(p for of, _, p in owners.values() if of == data).stream.build()
    slow_first = sorted((p for _, _, p in owners.values()), key=lambda p: p.learner.name != "joint")
    runs, found = Local(options.workers).run(slow_first, options.runs), {}
    for outcome in runs:
        data, name, _ = owners[outcome.experiment.hash]
        chosen = {k: v for k, v in outcome.experiment.tables()["learner"].items() if k in SEARCHED[name]}
        figure = None if outcome.error else outcome.folder.result["final_accuracy"]["mean"]
        found.setdefault(f"{data}.{name}", []).append(
            {"learner": chosen, "final_accuracy": figure, "error": outcome.error}
        )
        print(data, name, chosen, figure, outcome.error, f"{time.perf_counter() - begin:.0f} s", flush=True)
        if time.perf_counter() - begin > 60 * options.minutes:
            runs.waiting.clear()
    best = {key: max(of, key=lambda e: e["final_accuracy"] or -1) for key, of in found.items()}
    record = {"command": " ".join(["python", *sys.argv]), "environment": environment(), "budget": options.budget}
    record |= {"seconds": round(time.perf_counter() - begin), "searches": found}
    options.file.write_text(json.dumps(record, indent=1) + "\n")
    if options.write:
        lines = [
            "# Settings of PRER's rivals over features, found by benchmarks/search_features.py on validation data."
        ]
        for key in sorted(best):
            values = {k: float(f"{v:.3g}") if isinstance(v, float) else v for k, v in best[key]["learner"].items()}
            lines += ["", f"[{key}]", *(f"{k} = {json.dumps(v)}" for k, v in values.items())]
        (Path(__file__).parents[1] / "prer" / "presets" / "features.toml").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
