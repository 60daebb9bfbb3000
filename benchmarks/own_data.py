"""Compare PRER with default settings on a user's own data with the settings of every catalogue data set (`like`).

python benchmarks/own_data.py prepare DATA
python benchmarks/own_data.py search DATA [--workers N] [--out runs] [--json FILE]
python benchmarks/own_data.py show DATA [--workers N] [--out runs] [--json FILE]

`prepare` writes the data as a user would have it: two CSV tables, three .npz files, and a folder of images; MNIST and
CIFAR10 are downloaded. `search` compares numbers of steps and batch sizes on a fifth of the training part, with seeds that
`show` does not use. `show` tests `prer run stream.data=FILE` and compares it with each `like`: the paired difference over
seeds with its standard error.
"""

import argparse
import json
import math
import time
from pathlib import Path

import numpy as np

from prer.data.catalogue import CATALOGUE, load_named
from prer.runs.environment import environment
from prer.runs.experiment import Experiment
from prer.sweeps.engines.local import Local

SEEDS, SEEDS_OF_MNIST = 20, 5
OF_SEARCH = 100  # the first seed of the search
STEPS, BATCHES = (250, 500, 1000, 2000), (16, 32, 64)
STEPS_OF_MANY = (1000, 2000, 4000, 8000)  # of tasks with more than three classes, in batches of 32
MARGIN = 1.5  # points by which default settings may be below the best `like`, beyond two standard errors

DATA = {  # name: (file, samples of a task to learn from in the search, more settings)
    "wine": ("wine.csv", 114, ["stream.classes_per_task=3"]),
    "table": ("table.csv", 128, []),
    "digits": ("digits.npz", 230, []),
    "folder": ("folder", 77, []),
    "mnist-300": ("mnist-300.npz", 240, []),
    "mnist-2500": ("mnist-2500.npz", 2000, []),
    "mnist-10000": ("mnist-10000.npz", 8000, []),
    "digits-10": ("digits.npz", 1150, ["stream.classes_per_task=10"]),
    "digits-5": ("digits.npz", 575, ["stream.classes_per_task=5"]),
    "table-6": ("table.csv", 384, ["stream.classes_per_task=6"]),
    "folder-8": ("folder", 307, ["stream.classes_per_task=8"]),
    "mnist-1500": ("mnist-300.npz", 1200, ["stream.classes_per_task=10"]),
}


def prepare(folder):
    from PIL import Image
    from sklearn.datasets import load_digits, load_wine, make_classification

    folder.mkdir(parents=True, exist_ok=True)
    wine, digits = load_wine(), load_digits()
    table(folder / "wine.csv", wine.data, wine.target)
    shape = {"n_features": 20, "n_informative": 8, "n_classes": 6, "class_sep": 1.5}
    table(folder / "table.csv", *make_classification(600, **shape, random_state=0))
    np.savez_compressed(folder / "digits.npz", x=digits.images / 16, y=digits.target)
    mnist = load_named("mnist")
    x, y, last = np.asarray(mnist.x), np.asarray(mnist.y), -mnist.tests
    for size in (300, 2500, 10_000):
        few = np.sort(np.concatenate([np.flatnonzero(y[:last] == c)[: size // 2] for c in range(10)]))
        arrays = {"x_train": x[few], "y_train": y[few], "x_test": x[last:], "y_test": y[last:]}
        np.savez_compressed(folder / f"mnist-{size}.npz", **arrays)
    cifar = load_named("cifar10")
    for name in cifar.order[:8]:
        (folder / "folder" / name).mkdir(parents=True, exist_ok=True)
        for i, at in enumerate(np.flatnonzero(np.asarray(cifar.y) == name)[:60]):
            Image.fromarray(np.moveaxis(np.asarray(cifar.x[at]), 0, -1)).save(folder / "folder" / name / f"{i:02}.png")


def table(file, x, y):
    names = [f"feature {i + 1}" for i in range(x.shape[1])]
    rows = [",".join([*(f"{value:.6g}" for value in row), f"class {label}"]) for row, label in zip(x, y, strict=True)]
    file.write_text("\n".join([",".join([*names, "label"]), *rows]) + "\n")


def experiment(folder, name, *more):
    file, _, settings = DATA[name]
    return Experiment.parse({}, [f"stream.data={folder / file}", *settings, *more])


def seeds(name, first=0):
    count = SEEDS_OF_MNIST if name.startswith("mnist") else SEEDS
    return f"seeds={list(range(first, first + count))}"


def to_search(folder):
    """Each data set with several numbers of steps and batch sizes, and with every `like`."""
    for name, (_, samples, _) in DATA.items():
        held_out = "stream.validation=0.2", seeds(name, OF_SEARCH)
        many = name in ("digits-10", "digits-5", "table-6", "folder-8", "mnist-1500")
        for batch in (32,) if many else BATCHES:
            for steps in STEPS_OF_MANY if many else STEPS:
                if not many and samples > 1000 and (steps < 1000 or batch < 64):
                    continue  # an epoch has more
                epochs = math.ceil(steps / max(samples // batch, 1))
                each = (f"learner.epochs{of}={epochs}" for of in ("", "_autoencoder", "_flow"))
                yield (
                    name,
                    f"{steps} steps of {batch}",
                    experiment(folder, name, *held_out, *each, f"learner.batch={batch}"),
                )
        for like in CATALOGUE:
            yield name, f"like {like}", experiment(folder, name, *held_out, f"like={like}", "stream.resplit=0")


def to_show(folder):
    """Each data set with default settings, and with every `like`."""
    for name in DATA:
        yield name, "nothing set", experiment(folder, name, seeds(name))
        for like in CATALOGUE:
            yield name, f"like {like}", experiment(folder, name, seeds(name), f"like={like}", "stream.resplit=0")


def entry_of(name, setting, outcome):
    entry = {"data": name, "setting": setting, "hash": outcome.experiment.hash, "error": outcome.error}
    if outcome.error:
        return entry
    result = outcome.folder.result
    metrics = {key: result[key]["values"] for key in ("accuracy", "bwt", "final_accuracy")}
    return entry | {"seeds": result["seeds"], **metrics, "seconds": result["seconds"]["total"]}


def verdicts(entries):
    """Default settings against the best `like` of each data set: the paired difference with its standard error."""
    found = {(entry["data"], entry["setting"]): entry for entry in entries if not entry["error"]}
    for name in dict.fromkeys(entry["data"] for entry in entries):
        ours = found[name, "nothing set"]
        likes = [entry for (data, setting), entry in found.items() if data == name and setting.startswith("like")]
        best = max(likes, key=lambda entry: np.mean(entry["accuracy"]))
        apart = np.subtract(ours["accuracy"], best["accuracy"])
        error = apart.std(ddof=1) / math.sqrt(len(apart))
        yield {
            "data": name,
            "nothing set": round(np.mean(ours["accuracy"]), 2),
            "best": best["setting"],
            "of the best": round(np.mean(best["accuracy"]), 2),
            "difference": round(apart.mean(), 2),
            "standard error": round(error, 2),
            "holds": bool(apart.mean() >= -MARGIN - 2 * error),
        }


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("part", choices=("prepare", "search", "show"))
    parser.add_argument("data", type=Path)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--out", type=Path, default=Path("runs"))
    parser.add_argument("--only", default="", help="data sets, separated by commas")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    if options.part == "prepare":
        prepare(options.data)
        return
    begin = time.perf_counter()
    plan = list((to_search if options.part == "search" else to_show)(options.data))
    plan = [point for point in plan if not options.only or point[0] in options.only.split(",")]
    plan.sort(key=lambda point: point[1])  # so that an interrupted search has all data sets of some settings
    unique = {point.hash: point for _, _, point in plan}  # a `like` may bring the classes per task of another stream
    entries = []
    for outcome in Local(options.workers).run(list(unique.values()), options.out):
        same = [(name, setting) for name, setting, point in plan if point.hash == outcome.experiment.hash]
        entries += [entry_of(name, setting, outcome) for name, setting in same]
        new = entries[-1]
        line = new["error"] or f"{np.mean(new['accuracy']):.2f} in {new['seconds']:.0f} s"
        print(f"{new['data']:>12} {new['setting']:<20} {line}", flush=True)
        if options.json:
            about = {"command": f"python benchmarks/own_data.py {options.part} DATA --workers {options.workers}"}
            about |= {"environment": environment(), "seconds": round(time.perf_counter() - begin, 1)}
            options.json.write_text(json.dumps(about | {"entries": entries}) + "\n")
    if options.part == "show":
        for verdict in verdicts(entries):
            print(verdict)


if __name__ == "__main__":
    main()
