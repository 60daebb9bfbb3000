"""Search every learner's settings for the scenario "class" on validation data, with the same budget for each.

python benchmarks/search_class.py [NAME=PATH ...] [--only mnist,prer] [--round second] [--budget N] [--minutes M]
                                  [--workers N] [--out runs] [--json RECORD]
python benchmarks/search_class.py --write RECORD ...

Every learner gets the same number of random points on each data set, with two seeds (three on the digits), tested on
a fifth of the training part: the test part is never used. Points are run in turn, the first of every learner, then the
second; after `--minutes` no new one is started, and only points that every learner has finished count. The winner is
the point with the best final accuracy over all classes. NAME=PATH reads a data set from a folder.

The second round has ranges that are narrowed, or extended, around the winners of the first (`SECOND`), and joint
training from initial weights, since going on from old ones collapsed in some seeds. PRER's ranges on the digits
(`DIGITS`, `DIGITS_SECOND`) lie around the best of seven points tried by hand on the same validation samples.

`--write` writes the winners of these records into `prer/presets/class-*.toml`.
"""

import argparse
import json
import os
import sys
import time
import tomllib
from pathlib import Path

from prer.presets import class_file
from prer.runs.environment import environment
from prer.sweeps.engines.local import Local
from prer.sweeps.sweep import Sweep

GREY = {"channels": [12, 24, 48], "embedding": 50}
COLOUR = {"channels": [24, 48, 96], "embedding": 100}
# The networks are the paper's; the epochs are those of every classifier. Memories hold 1,000 samples in all, or 250.
SHARED = {
    "digits": {"batch": 32, "epochs": 60},
    "mnist": GREY | {"batch": 128, "epochs": 10},
    "kmnist": GREY | {"batch": 64, "epochs": 60},
    "svhn": COLOUR | {"batch": 128, "epochs": 20},
    "cifar10": COLOUR | {"embedding": 200, "batch": 128, "epochs": 20},
}
SAMPLES = {"digits": 250}  # in all; 1,000 elsewhere
TASKS = 5
RATE = {"low": 1e-4, "high": 5e-3, "log": True}
LR = {"learner.lr": RATE}
DISTILLED = {**LR, "learner.weight": {"low": 0.1, "high": 10.0, "log": True}, "learner.softness": [1.0, 2.0, 4.0]}
SPACES = {
    "prer-flow": {
        **LR,
        "learner.encoder": ["continues", "rests"],
        "learner.weight": {"low": 0.5, "high": 8.0, "log": True},
        "learner.anchor": [0.0, 1.0, 4.0],
        "learner.density.lr": {"low": 1e-3, "high": 4e-3, "log": True},
        "learner.answer": ["head", "density"],
    },
    "dgr": {
        **LR,
        "learner.weight": {"low": 0.5, "high": 8.0, "log": True},
        "learner.lr_generator": {"low": 3e-4, "high": 3e-3, "log": True},
        "learner.latent": [50, 100],
    },
    "gem": {**LR, "learner.margin": [0.0, 0.5, 1.0]},
    "ewc": {
        **LR,
        "learner.weight": {"low": 1.0, "high": 1e6, "log": True},
        "learner.form": ["separate", "online"],
    },
    "si": {
        **LR,
        "learner.weight": {"low": 0.01, "high": 100.0, "log": True},
        "learner.damping": {"low": 1e-4, "high": 0.1, "log": True},
    },
    "joint": LR,
    "lwf": DISTILLED,
    "lwf-classic": DISTILLED,
    "der": {
        **LR,
        "learner.weight": {"low": 0.03, "high": 1.0, "log": True},
        "learner.label_weight": {"low": 0.3, "high": 3.0, "log": True},
    },
    "replay": {
        **LR,
        "learner.weight": {"low": 0.3, "high": 3.0, "log": True},
        "learner.selection": ["reservoir", "balanced"],
    },
    "er": {**LR, "learner.weight": {"low": 0.1, "high": 30.0, "log": True}, "learner.distance": ["cosine", "l2"]},
    "agem": LR,
    "naive": LR,
    "slda": {"learner.shrinkage": {"low": 1e-6, "high": 1e-1, "log": True}},
    "ranpac": {
        "learner.features": ["relu", "fourier"],
        "learner.ridge": {"low": 1e-6, "high": 1e-2, "log": True},
        "learner.scale": {"low": 0.1, "high": 1.0, "log": True},
    },
}
CLOSED = ("slda", "ranpac")
SPACES |= {f"{name}-patches": SPACES[name] for name in CLOSED}  # over patches, that is, embeddings as PRER has them
SECOND = {
    "prer-flow": {
        "learner.lr": {"low": 5e-4, "high": 4e-3, "log": True},
        "learner.encoder": ["rests", "continues"],
        "learner.anchor": [1.0, 4.0],
        "learner.labels": ["none", "auxiliary"],
        "learner.density.lr": {"low": 1.5e-3, "high": 3e-3, "log": True},
    },
    "dgr": {
        "learner.lr": {"low": 3e-5, "high": 3e-4, "log": True},
        "learner.weight": {"low": 0.5, "high": 3.0, "log": True},
        "learner.lr_generator": {"low": 1.5e-3, "high": 4e-3, "log": True},
        "learner.latent": [50, 100],
    },
    "ewc": {**LR, "learner.weight": {"low": 0.1, "high": 1e3, "log": True}, "learner.form": ["separate", "online"]},
    "si": {**SPACES["si"], "learner.weight": {"low": 1e-3, "high": 1.0, "log": True}},
    "gem": {"learner.lr": {"low": 1e-4, "high": 1e-3, "log": True}, "learner.margin": [0.5, 1.0]},
}
DIGITS = {
    "learner.lr": {"low": 4e-4, "high": 2e-3, "log": True},
    "learner.weight": {"low": 0.5, "high": 4.0, "log": True},
    "learner.anchor": [0.0, 1.0],
    "learner.density.lr": {"low": 2e-3, "high": 5e-3, "log": True},
    "learner.answer": ["head", "density"],
}
# The density's answers were the worse ones, and the autoencoder had learned too little in 60 epochs.
DIGITS_SECOND = {
    "learner.lr": {"low": 5e-4, "high": 2e-3, "log": True},
    "learner.weight": {"low": 0.5, "high": 2.0, "log": True},
    "learner.epochs_autoencoder": [100, 140],
    "learner.density.lr": {"low": 3e-3, "high": 5e-3, "log": True},
}
FASTER = {"digits": 2.0}  # factor of learning rates: few samples, so few steps
OWN_EPOCHS = {"digits": 60, "mnist": 15, "kmnist": 60, "svhn": 30, "cifar10": 25}  # of PRER's and DGR's other phases
NOW = {"prer": "prer-flow"}  # names that have changed since a record was made
OMITTED = {
    "ranpac": {"features": "fourier"},
    "ranpac-patches": {"features": "relu"},
}  # defaults when they were searched


def base(data, name, second=False):
    """What all points of a search have in common: the settings of the learner."""
    total = SAMPLES.get(data, 1000)
    more = 2 if second else 1
    own = {
        "joint": {"restart": True} if second else {},
        "lwf": {"size": total // TASKS},
        "lwf-classic": {"form": "classic"},
        "gem": {"size": total // TASKS},
        "agem": {"size": total // TASKS},
        "er": {"size": total // TASKS},
        "replay": {"size": total},
        "der": {"size": total},
        "dgr": {"epochs_generator": more * OWN_EPOCHS[data], "memory_batch": more * SHARED[data]["batch"]},
        "prer-flow": {
            "encoder": "continues",
            "answer": "head",
            "epochs_autoencoder": OWN_EPOCHS[data],
            "reencode": False,
            "density": {"name": "flow", "epochs": 2 * OWN_EPOCHS[data]},
        }
        | ({"label_weight": 5.0} if second else {}),
    }
    if (data, name) == ("digits", "prer-flow"):  # as with the task given
        own["prer-flow"] |= {"embedding": 32, "lr_autoencoder": 0.005, "decay_autoencoder": True}
        own["prer-flow"]["density"]["blocks"] = 4
    patches = {"encoder": "patches", "embedding": "auto"} if name.endswith("-patches") else {}
    return own.get(name.removesuffix("-patches"), {}) | patches


def space(data, name, second):
    """The distributions of the settings that are searched."""
    found, factor = SECOND.get(name, SPACES[name]) if second else SPACES[name], FASTER.get(data, 1.0)
    if (data, name) == ("digits", "prer-flow"):
        found = DIGITS_SECOND if second else DIGITS
    rates = {key: of for key, of in found.items() if key.partition("lr")[1]}
    return found | {key: of | {"low": factor * of["low"], "high": factor * of["high"]} for key, of in rates.items()}


def points(data, name, path, budget, second):
    """The random points of a search."""
    learner = ({} if name.partition("-")[0] in CLOSED else SHARED[data]) | base(data, name, second)
    learner["name"] = name.partition("-")[0]
    stream = {"data": path, "scenario": "class", "classes_per_task": 2, "validation": 0.2}
    seeds = [0, 1, 2] if data == "digits" else [0, 1]
    tables = {"stream": stream, "learner": learner, "seeds": seeds}
    how = {"budget": budget, "random_seed": int(second), "draws": space(data, name, second)}
    return Sweep.parse(tables | how).points()


def entry_of(outcome, data, turn):
    settings = outcome.experiment.chosen()["learner"]
    own = {key: value for key, value in settings.items() if key != "name" and SHARED[data].get(key) != value}
    entry = {"turn": turn, "learner": own, "error": outcome.error}
    if outcome.error:
        return entry
    result = outcome.folder.result
    figures = {key: result[key]["mean"] for key in ("final_accuracy", "average_incremental_accuracy")}
    return entry | figures | {"bytes": result["memory_bytes"][-1], "seconds": result["seconds"]["total"]}


def search(options):
    """Run the points in turn, and print and record the results."""
    paths = dict(word.split("=", 1) for word in options.paths)
    only, second = options.only.split(",") if options.only else [], options.round == "second"
    datas, names = ([n for n in every if n in only] or list(every) for every in (SHARED, SPACES))
    found = {f"{data}-{name}": [] for data in datas for name in names}
    begin, owners, turns = time.perf_counter(), {}, [[] for _ in range(options.budget)]
    for name in names:
        for data in datas:
            for turn, point in enumerate(points(data, name, paths.get(data, data), options.budget, second)):
                owners[point.hash] = f"{data}-{name}", turn
                turns[turn].append(point)
    runs = Local(options.workers).run([point for turn in turns for point in turn], options.out)
    done = [0] * options.budget
    for outcome in runs:
        key, turn = owners[outcome.experiment.hash]
        found[key].append(entry_of(outcome, key.partition("-")[0], turn))
        done[turn] += 1
        print(f"{sum(done)}/{len(owners)} {key} {found[key][-1].get('final_accuracy')} {outcome.error}", flush=True)
        seconds = time.perf_counter() - begin
        if seconds > 60 * options.minutes:
            runs.waiting.clear()  # what is running may end
        counted = sum(n == len(turn) for n, turn in zip(done, turns, strict=True))
        if options.json:
            write_record(options.json, found, counted, seconds)
    for name, entries in found.items():
        best = ranked(entries, counted)[0]
        print(f"{name:<20} {best.get('final_accuracy', -1):6.2f}  {best['learner']}")


def ranked(entries, counted):
    """Points of complete turns from best to worst; failed ones last."""
    return sorted(
        (e for e in entries if e["turn"] < max(counted, 1)), key=lambda entry: -entry.get("final_accuracy", -1.0)
    )


def write_record(path, found, counted, seconds):
    record = {
        "command": " ".join(["python", "benchmarks/search_class.py", *sys.argv[1:]]),
        "environment": environment(),
        "points of each learner that count": counted,
        "points run": sum(map(len, found.values())),
        "seconds": round(seconds),
        "searches": {name: sorted(of, key=lambda e: e["turn"]) for name, of in found.items() if of},
    }
    path.write_text(json.dumps(record, indent=1) + "\n")


def write_files(records):
    """Write the best points of all records into the recommended settings of each data set."""
    found = {}
    for record in map(json.loads, (path.read_text() for path in records)):
        for key, entries in record["searches"].items():
            data, _, name = key.partition("-")
            best = ranked(entries, record["points of each learner that count"])[0]
            found.setdefault((data, NOW.get(name, name)), []).append(best)
    for data in {data for data, _ in found}:
        tables = tomllib.loads(class_file(data).read_text()) if class_file(data).exists() else {}
        for name in (name for of, name in found if of == data):
            won = max(found[data, name], key=lambda e: e.get("final_accuracy", -1))
            tables[name] = OMITTED.get(name, {}) | won["learner"]
        tables |= {"stream": {"classes_per_task": 2}, "learner": SHARED[data]}
        lines = ["# Settings if nobody tells the task, found by benchmarks/search_class.py on validation data."]
        for name in (name for name in ("stream", "learner", *SPACES) if name in tables):
            density = tables[name].pop("density", {})
            lines += ["", f"[{name}]", *assignments(tables[name])]
            lines += ["", f"[{name}.density]", *assignments(density)] if density else []
        class_file(data).write_text("\n".join(lines) + "\n")


def assignments(table):
    return [f"{key} = {json.dumps(rounded(value))}" for key, value in table.items()]


def rounded(value):
    return float(f"{value:.3g}") if isinstance(value, float) else value


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("paths", nargs="*", metavar="NAME=PATH")
    parser.add_argument("--only", help="data sets and learners, separated by commas")
    parser.add_argument("--round", choices=("first", "second"), default="first")
    parser.add_argument("--budget", type=int, default=8, help="points of each learner on each data set")
    parser.add_argument("--minutes", type=float, default=600.0, help="start no point after this time")
    parser.add_argument("--workers", type=int, default=os.cpu_count())
    parser.add_argument("--out", type=Path, default=Path("runs"))
    parser.add_argument("--json", type=Path)
    parser.add_argument("--write", type=Path, nargs="*", metavar="RECORD")
    options = parser.parse_args()
    search(options) if options.write is None else write_files(options.write)


if __name__ == "__main__":
    main()
