"""Search the settings of the paper's six methods, and of further rows of its table 1, on validation data.

python benchmarks/search_paper.py [NAME=PATH ...] [--only mnist,prer] [--round ROUND] [--workers N] [--out runs] [--json RECORD]
python benchmarks/search_paper.py --write RECORD ...

Each method gets 34 points on each data set, with two seeds, tested on a fifth of the training part. The test parts of
these seeds are not used, but other seeds have other test parts, which may contain samples of this search.

The first round has ten random points. All points sample the learning rate of the classifier and its epochs; if both the
paper's SGD and Adam are tried, each gets half of the points. `search/paper/` lists the other sampled settings of each
method. PRER's ranges come from 55 manual trials on the same validation data (23 on SVHN, 23 on CIFAR10, 9 on KMNIST, none
on MNIST), which count as points. `--round more` samples 14 points from the same ranges for all other methods. `--round wider`
samples the rest from ranges that are extended where winners were at an end (`search/paper/wider/`: Adam only, lower learning
rates, fewer epochs). The winner is the point with the best Accuracy.

`--round rows` is for the rows that were added later: joint, replay, der, classic lwf, PRER that distils labels and PRER without
the anchor. It samples from `search/paper/rows/`, with the learning rates and epochs of the wider round. PRER without the anchor
has had points before, by hand and in the first round, which count and can win. The literal settings get ten points for the two
weights that the paper does not state. `--round hand` runs points again that were tried by hand and may win. On CIFAR10 one of
them was ahead of PRER's winner by less than two seeds can tell, so `--round finalists` runs both with ten seeds. `--round rows-wider`
has ten more points of PRER that distils labels, as its winner on KMNIST lay at an end of a range, and `--round aimed` 12 or 24 more
on three data sets, with three or five seeds and the ranges of `search/paper/aimed/`, to see what this method can reach. No other
method had these, so they cannot win.

NAME=PATH reads a data set, or a part of it, from a folder. `--write` writes `prer/presets/*.toml` and
`prer/paper/configs/*.toml` from records, with a remark on every setting that the paper states.
"""

import argparse
import json
import os
import re
import sys
import time
import tomllib
from collections import defaultdict
from dataclasses import fields
from pathlib import Path

from search import settings_of
from stacked_points import run

from prer.learners import PRERVariant
from prer.paper import DATA, METHODS, file_of
from prer.runs.environment import environment
from prer.runs.experiment import Experiment, nested
from prer.settings import merged
from prer.sweeps.sweep import Sweep

SEEDS = (0, 1)
# Rows that the paper does not have, or not so, and the settings that make them of a learner.
ROWS = {
    "joint": {"name": "joint"},
    "replay": {"name": "replay", "size": 2500},  # in all, as LWF keeps 500 of each of five tasks
    "der": {"name": "der", "size": 2500},
    "lwf-classic": {"name": "lwf", "form": "classic"},
    "prer-distilled": {"name": "prer", "labels": "distilled"},
    "prer-no-anchor": {"name": "prer", "anchor": 0.0},
}
OF_PRER = ("prer", "prer-no-anchor", "prer-distilled")
# What the search leaves out: with distilled labels, Accuracy depends on the density and on the decoder's own phase only
# through the decoder's weights, and only if the encoder learns beside it (autoencoder is not 0).
SHORT = {"prer-distilled": {"epochs_autoencoder": 0, "density": {"name": "gaussian"}}}
ROUNDS = {
    "first": (10, 0),
    "more": (14, 2),
    "wider": (10, 4),
    "rows": (34, 6),
    "rows-wider": (10, 8),
    "aimed": (0, 10),
}  # points, draw
AIMED = {"mnist": (12, 3), "kmnist": (24, 5), "cifar10": (12, 5)}  # points and seeds of that round
POINTS_OF_LITERAL = 10
BEFORE = {  # points of PRER without the anchor by hand, and in the first round of PRER
    "mnist": 1,
    "kmnist": 9 + 1,
    "svhn": 21 + 2,
    "cifar10": 18 + 2,  # the record has 13 more, one fewer than there should be
}
BY_HAND = {"mnist": 0, "kmnist": 9, "svhn": 23, "cifar10": 23}  # points of PRER on each data set, before all rounds
RATES = {"sgd": {"low": 0.02, "high": 0.2, "log": True}, "adam": {"low": 3e-4, "high": 3e-3, "log": True}}
WIDER = {"adam": {"low": 1e-4, "high": 3e-3, "log": True}}
OPTIMISERS = {"mnist": ("sgd", "adam"), "kmnist": ("sgd", "adam"), "svhn": ("adam",), "cifar10": ("adam",)}
# Started first, so that no single worker is left with them at the end.
SLOW = (
    "prer-literal",
    "prer-no-anchor",
    "prer",
    "gem",
    "prer-distilled",
    "joint",
    "ewc",
    "lwf-classic",
    "der",
    "replay",
)
SLOW += ("lwf", "er", "naive")
EPOCHS = {"mnist": 10, "kmnist": 30, "svhn": 20, "cifar10": 20}  # KMNIST's are for the part of 10,000 samples
PHASES = EPOCHS | {"svhn": 30}  # of PRER's autoencoder and flow
GREY = {"channels": [12, 24, 48], "embedding": 50, "batch": 64}
COLOUR = {"channels": [24, 48, 96], "embedding": 100, "batch": 64}
NETWORKS = {"mnist": GREY, "kmnist": GREY, "svhn": COLOUR, "cifar10": COLOUR | {"embedding": 200, "batch": 128}}

# What the paper states besides the networks; it does not specify the rest.
STATED = {"classes_per_task": 2, "shuffle": False, "resplit": 0.2, "dropout": 0.2, "schedule": "separate"}
STATED |= {"lr_autoencoder": 1e-3, "density.lr": 1e-4, "augment": True, "density.name": "flow", "density.levels": 2}
STATED |= {"density.blocks": 10, "norm": "running", "density.condition": "first", "one_hot": True, "bounded": False}
STATED |= {"density.class_prior": False, "permutation": "random", "anchor": 0.0, "temperature": 1.0}
# What it implies, for the literal files: learning rates without decay, one place in the one-hot
# vector for each class there will be, and a flow that learns its own samples of the past.
IMPLIED = {"decay_autoencoder": False, "density.decay": False, "density.condition_size": 10, "reencode": False}
SIZES = {"lwf": 500, "gem": 500, "er": 500}  # of memories, for each task
FOLDER, RECORDS = Path(__file__).parent / "search" / "paper", Path(__file__).parent / "records"
# By hand: on CIFAR10 those with a better validation Accuracy than the winner; without the anchor the two best ones.
BEST_BY_HAND = {
    "mnist": (),
    "kmnist": ("kmnist-w03", "kmnist-base"),
    "svhn": ("svhn-ep30sp005w3", "svhn-ep20heads50"),
    "cifar10": ("cifar-head5anchor5", "cifar-head1anchor1", "cifar-anchor1", "cifar-ep40", "cifar-base"),
}
BY_HAND_KEYS = ("optimiser", "lr", "epochs", "weight", "anchor", "sparsity", "temperature", "labels", "label_weight")
BY_HAND_KEYS = tuple(f"learner.{key}" for key in (*BY_HAND_KEYS, "epochs_autoencoder", "density.epochs"))
STREAM = ("classes_per_task", "shuffle", "resplit")  # of these; the others are settings of a learner
REMARKS = {
    "seeds": "five, as in the paper",
    "labels": "nothing in the paper's section 3.3, the classifier's in its introduction",
    "sparsity_on": 'in the paper "regularizing the layers"',
}
WHY = {
    "density.lr": "with which fewer samples are of their class",
    "density.condition": "and then the flow ignores the class",
    "anchor": "it is ours",
}


def stated(data):
    """What the paper says of the settings on a data set."""
    sgd = data in ("mnist", "kmnist")
    return STATED | NETWORKS[data] | ({"optimiser": "sgd", "lr": 0.1} if sgd else {"optimiser": "adam", "lr": 1e-3})


def remarks_of(data):
    """Remarks on settings that the paper does not state explicitly."""
    other = {"kmnist": "as on MNIST", "svhn": "as on CIFAR10"}
    return REMARKS | {"size": other.get(data, "as the paper's Table 2 implies")}


def base(data, method):
    """What all points of a search have in common, as the tables of an experiment."""
    says = stated(data)
    learner = ROWS.get(method, {"name": method}) | {"epochs": EPOCHS[data]}
    learner |= {key: says[key] for key in (*NETWORKS[data], "optimiser", "lr")}
    if method in SIZES:
        learner["size"] = 200 if method == "er" and data in ("mnist", "kmnist") else SIZES[method]
    if method in OF_PRER:
        learner |= {"epochs_autoencoder": PHASES[data], "density": {"name": "flow", "epochs": PHASES[data]}}
    tables = {"stream": {"data": data, "classes_per_task": 2, "resplit": 0.2}, "learner": learner}
    whole = Experiment.parse(tables, presets=False).tables()  # otherwise settings that were found before would enter
    return {"stream": whole["stream"], "learner": whole["learner"]}


def budget_of(data, method, kind):
    """Number of points in a round of a search; the total, including points tried by hand, is the same for all methods."""
    total = ROUNDS["rows"][0]
    rest = total - ROUNDS["first"][0] - BY_HAND[data]
    rows = {"prer-no-anchor": total - BEFORE[data], "prer-literal": POINTS_OF_LITERAL}
    if kind == "aimed":
        return AIMED[data][0]
    if kind == "rows":
        return rows.get(method, total)
    return rest if (method, kind) == ("prer", "wider") else ROUNDS[kind][0]


def sweeps(data, method, path, kind):
    """A round of a search, with a part for each optimiser."""
    wider, budget, draw = kind not in ("first", "more"), budget_of(data, method, kind), ROUNDS[kind][1]
    optimisers, rates = (tuple(WIDER), WIDER) if wider else (OPTIMISERS[data], RATES)
    epochs = [EPOCHS[data] // n for n in ((4, 2, 1) if wider else (2, 1))]
    file = FOLDER / (kind if wider else "") / f"{data if kind == 'aimed' else method}.toml"
    draws = tomllib.loads(file.read_text())
    above = {
        "stream": {"data": path, "validation": 0.2},
        "seeds": list(range(AIMED[data][1]) if kind == "aimed" else SEEDS),
    }
    if method == "prer-literal":  # everything else is stated
        tables = merged(literal(data, {}), above, {})
        yield Sweep.parse(tables | {"budget": budget, "random_seed": draw, "draws": draws})
        return
    for number, optimiser in enumerate(optimisers):
        own = {"learner.lr": rates[optimiser], "learner.epochs": epochs} | draws
        tables = merged(base(data, method), above, {})
        tables["learner"] |= {"optimiser": optimiser} | SHORT.get(method, {})
        yield Sweep.parse(tables | {"budget": budget // len(optimisers), "random_seed": draw + number, "draws": own})


def by_hand(data, path):
    """The points that were tried by hand and may win, with the settings that all tries on a data set had."""
    of_all = {"temperature": 0.8} if data == "cifar10" else {}
    above = {"stream": {"data": path, "validation": 0.2}, "seeds": list(SEEDS), "learner": of_all}
    tries = json.loads((RECORDS / "tries_paper.json").read_text())["tries"]
    for name in BEST_BY_HAND[data]:
        settings = [word.replace("epochs_flow", "density.epochs") for word in tries[name]["settings"]]
        yield Experiment.parse(merged(base(data, "prer"), above, {}), settings)


def finalists(path):
    """PRER's winner on CIFAR10, and the best point by hand that was ahead of it, with ten seeds."""
    above = {"stream": {"data": path, "validation": 0.2}, "seeds": list(range(10))}
    found = json.loads((RECORDS / "search_paper.json").read_text())["searches"]["cifar10-prer"]
    settings = [f"{key}={json.dumps(value)}" for key, value in ranked(found)[0]["settings"].items()]
    yield Experiment.parse(merged(base("cifar10", "prer"), above, {}), settings)
    best = next(
        point for point in by_hand("cifar10", path) if point.learner.labels == "head" and point.learner.anchor == 1
    )
    yield Experiment.parse(best.tables() | {"seeds": above["seeds"]}, presets=False)


def points_of(options):
    """The points of a round with the name of their search, and the settings that vary in each search."""
    paths = dict(word.split("=", 1) for word in options.paths)
    only = options.only.split(",") if options.only else []
    of_round = {"rows": (*ROWS, "prer-literal"), "rows-wider": ("prer-distilled",), "aimed": ("prer-distilled",)}
    methods = of_round.get(options.round, METHODS)
    methods = ("prer",) if options.round in ("hand", "finalists") else methods
    data_sets = tuple(AIMED) if options.round == "aimed" else DATA
    data_sets, methods = ([n for n in names if n in only] or names for names in (data_sets, methods))
    owner, keys = {}, {}
    if options.round == "more":
        methods = [method for method in methods if method != "prer"]
    for method in sorted(methods, key=SLOW.index):
        for data in reversed(data_sets):
            name, path = f"{data}-{method}", paths.get(data, data)
            if options.round in ("hand", "finalists"):
                tried = by_hand(data, path) if options.round == "hand" else finalists(path) if data == "cifar10" else ()
                owner |= {point.hash: (point, name) for point in tried}
                keys[name] = BY_HAND_KEYS
                continue
            for sweep in sweeps(data, method, path, options.round):
                owner |= {point.hash: (point, name) for point in sweep.points()}
                keys[name] = sweep.keys if method == "prer-literal" else ("learner.optimiser", *sweep.keys)
    return owner, keys


def search(options):
    """Run the missing points, and print and record the results."""
    owner, keys = points_of(options)
    before = json.loads(options.json.read_text())["seconds"] if options.json and options.json.exists() else 0
    found, begin = {name: [] for _, name in owner.values()}, time.perf_counter() - before
    reached = run([point for point, _ in owner.values()], options.out, options.workers)
    for done, (point, entry) in enumerate(reached, 1):
        name = owner[point.hash][1]
        found[name].append({"settings": settings_of(point, keys[name])} | entry)
        print(f"{done}/{len(owner)} {name} {entry.get('accuracy')} {entry['error']}", flush=True)
        if options.json and (done % 20 == 0 or done == len(owner)):
            write_record(options.json, found, len(owner), time.perf_counter() - begin)
    for name, entries in found.items():
        winner = ranked(entries)[0]
        print(f"{name:<14} {winner['accuracy']:6.2f} {winner['bwt']:7.2f}  {winner['settings']}")


def ranked(entries):
    """Points from best to worst; failed ones last."""
    return sorted(entries, key=lambda entry: -entry.get("accuracy", -1.0))


def write_record(path, found, total, seconds):
    record = {
        "command": " ".join(["python", "benchmarks/search_paper.py", *sys.argv[1:]]),
        "environment": environment(),
        "points": total,
        "seconds": round(seconds),
        "searches": {name: ranked(entries) for name, entries in sorted(found.items()) if entries},
    }
    path.write_text(json.dumps(record, indent=1) + "\n")


def write_files(records):
    """Write the paper's experiments from the winners; a row without a record has no file."""
    found = entries_of(records)
    for data in DATA:
        for method in (*METHODS, *ROWS):
            points = found[f"{data}-{method}"]
            if points:
                write_file(data, method, points, method)
            without = [point for point in points if point["settings"].get("learner.labels", "none") == "none"]
            if method == "prer" and without and ranked(points)[0] is not ranked(without)[0]:
                write_file(data, method, without, "prer-unlabelled")
        if won := won_by(found[f"{data}-prer-literal"]):
            tables = {"name": f"{data}-prer-literal", "seeds": 5, "device": "auto"} | literal(data, won)
            remarks = remarks_of(data) | dict.fromkeys(won, "found by the search")
            file_of(data, "prer-literal").write_text(remarked(tables, stated(data), IMPLIED, remarks))


def write_file(data, method, points, name):
    """Write the file of a data set with this name, from the points of a method."""
    won = won_by(points)
    tables = {"name": f"{data}-{method}", "seeds": 5, "device": "auto"}
    tables |= merged(base(data, method), {"learner": in_tables(won)}, {})
    implied = IMPLIED if method in OF_PRER else {}
    found_here = dict.fromkeys(won, "tried by hand" if ranked(points)[0]["by hand"] else "found by the search")
    file_of(data, name).write_text(remarked(tables, stated(data), implied, remarks_of(data) | found_here))


def entries_of(records):
    """All points of each search; those of more seeds replace the others, and PRER's without the anchor count twice.

    A point's entry "by hand" is true if it was tried by hand, and false for points of the search, also if they ran again.
    """
    found, last = defaultdict(list), {}
    for record in records:
        about = json.loads(record.read_text())
        for name, entries in about["searches"].items():
            if "--round finalists" in about["command"]:
                last[name] = entries
            else:
                found[name] += entries
    for name, entries in (*found.items(), *last.items()):
        drawn = [p["settings"].items() for p in found[name] if not set(p["settings"]) >= set(BY_HAND_KEYS)]
        for point in entries:
            point["by hand"] = not any(settings <= point["settings"].items() for settings in drawn)
    for data in DATA:
        if f"{data}-prer-no-anchor" in found:
            found[f"{data}-prer-no-anchor"] += [p for p in found[f"{data}-prer"] if is_plain(p["settings"])]
    return found | last


def is_plain(settings):
    """Whether PRER has these settings without the anchor and without labels in phase 1."""
    return settings["learner.anchor"] == 0 and settings.get("learner.labels", "none") == "none"


def won_by(entries):
    """The winner's settings of the learner, by dotted names."""
    won = ranked(entries)[0]["settings"] if entries else {}
    return {key.partition(".")[2]: rounded(value) for key, value in won.items()}


def literal(data, found):
    """PRER with everything that the paper states or implies, and what was found for the rest."""
    own = {"density", *(f.name for f in fields(PRERVariant))}
    says = {key: value for key, value in (stated(data) | IMPLIED).items() if key.partition(".")[0] in own}
    return merged(base(data, "prer"), {"learner": in_tables(says | found) | {"name": PRERVariant.name}}, {})


def in_tables(values):
    """Settings by their dotted names as nested tables."""
    tables = {}
    for key, value in values.items():
        tables = merged(tables, nested(key.split("."), value), {})
    return tables


def rounded(value):
    return float(f"{value:.3g}") if isinstance(value, float) else value


def remarked(tables, says, implied, others):
    """The experiment as TOML, with a remark on what the paper states or implies about each setting."""
    method = tables["name"].partition("-")[2]
    what = "of the paper's Table 1" if method in METHODS else "beside those of the paper's Table 1"
    what = "with all that the paper states" if method == "prer-literal" else what
    lines = [f"# {tables['name']}, {what}. Where no remark follows a setting's meaning, the paper is silent."]
    table = ""
    for line in Experiment.parse(tables).to_toml().splitlines():
        line = re.sub("[;,] (the paper has|the paper's does not|as in the paper).*", "", line)  # added again below
        table = line if line.startswith("[") else table
        setting, _, rest = line.partition(" = ")
        key = f"density.{setting}" if table == "[learner.density]" else setting
        remarks = [others[key]] if key in others and table != "[stream]" else []
        for known, alike, verb in ((says, "as in the paper", "has"), (implied, "as the paper implies", "implies")):
            if key in known and rest and (table == "[stream]") == (key in STREAM):
                value = tomllib.loads(line)[setting]
                other = f"the paper {verb} {json.dumps(known[key])}" + (f", {WHY[key]}" if key in WHY else "")
                remarks.append(alike if value == known[key] else other)
        lines.append("; ".join([line, *remarks]) if "  # " in line else "  # ".join([line, *remarks]))
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("paths", nargs="*", metavar="NAME=PATH")
    parser.add_argument("--only", help="data sets and methods, separated by commas")
    parser.add_argument(
        "--round", choices=(*ROUNDS, "hand", "finalists"), default="first", help="`more` is for all but PRER"
    )
    parser.add_argument("--workers", type=int, default=os.cpu_count())
    parser.add_argument("--out", type=Path, default=Path("runs"))
    parser.add_argument("--json", type=Path)
    parser.add_argument("--write", type=Path, nargs="*", metavar="RECORD")
    options = parser.parse_args()
    search(options) if options.write is None else write_files(options.write)


if __name__ == "__main__":
    main()
