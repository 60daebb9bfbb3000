"""Streams of many lessons, of 100 classes, and of classes of very different sizes; nobody tells the task.

    python benchmarks/many_classes.py RUNS cifar100=cifar100-40k letter=letter.csv [--workers N] [--minutes M]
                                      [--seeds N] [--only letter,uneven]
    python benchmarks/paper_records.py pack RUNS FILE

The record is `records/many_classes.jsonl`; of the paths of data it has only the names.

The streams are `letter` (13 tasks of two letters), `lessons` (MNIST, ten lessons of one digit), `cifar100` (10 tasks of ten
classes) and `uneven`: MNIST with 5,000 images of class 0 and, falling by the same factor from class to class, 50 of class 9.
Its test part is the official one. PRER has its defaults, as all learners have on the letters. Elsewhere the others have the
settings that a search found on a similar data set (`LIKE`). After `--minutes`, no run is started.
"""

import argparse
import time
from pathlib import Path

import numpy as np

from prer.presets import CLOSED_FORMS, recommended
from prer.runs.experiment import Experiment
from prer.streams.config import StreamConfig
from prer.sweeps.engines.local import Local

MOST, LEAST = 5000, 50  # images of the largest and of the smallest class
LIKE = {"lessons": "mnist", "cifar100": "cifar10", "uneven": "mnist"}
STREAM = {"letter": 2, "lessons": 1, "cifar100": 10, "uneven": 2}  # classes in a task
KINDS = {  # what the second part of a method's name sets, and "prer"
    "prer": {"epochs_autoencoder": 0},  # no prediction depends on the decoder
    "patches": {"encoder": "patches", "embedding": "auto"},
    "small": {"embedding": 100, "density": {"name": "mixture", "components": 1}},
    "balanced": {},  # with `stream.balance`
}
AS_PRER = {"lr": 1e-3, "batch": "auto", "epochs": "auto"}  # the head that PRER has
CLOSED = ("slda", "slda-patches", "ranpac", "ranpac-patches")
METHODS = {
    "letter": ("prer", "slda", "ranpac", "replay", "joint"),
    "lessons": ("prer",),
    "cifar100": ("prer", "prer-small", *CLOSED, "replay"),
    "uneven": ("prer", "prer-balanced", *CLOSED, "replay-patches", "replay-patches-balanced", "joint"),
}


def experiment(stream, method, seeds, path):
    """The experiment of a method on a stream."""
    name, *kinds = method.split("-")
    about = {"scenario": "class", "classes_per_task": STREAM[stream], "data": str(path)}
    about |= {"balance": True} if "balanced" in kinds else {}
    learner = {"name": name}
    if stream in LIKE and name != "prer":
        found = method if name in CLOSED_FORMS else name
        learner |= recommended(LIKE[stream], found, "class")["learner"]
    for kind in (name, *kinds):
        learner |= KINDS.get(kind, {})
    learner |= AS_PRER if method.startswith("replay-patches") else {}
    return Experiment.parse({"name": f"{stream}-{method}", "seeds": seeds, "stream": about, "learner": learner})


def uneven(path):
    """Write MNIST with classes of very different sizes, the first images of each class."""
    data = StreamConfig(data="mnist").read()
    x, y, trained = np.asarray(data.x)[:, 0], data.y, len(data.y) - data.tests
    sizes = np.geomspace(MOST, LEAST, 10).round().astype(int)
    kept = np.concatenate([np.flatnonzero(y[:trained] == label)[:size] for label, size in enumerate(sizes)])
    arrays = {"x_train": x[kept], "y_train": y[kept], "x_test": x[trained:], "y_test": y[trained:]}
    np.savez(path, **arrays)
    return path


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", type=Path)
    parser.add_argument("paths", nargs="*", help="NAME=PATH of cifar100 and letter")
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--minutes", type=float, default=600.0)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--only", default=",".join(STREAM))
    options = parser.parse_args()
    options.runs.mkdir(parents=True, exist_ok=True)
    paths, only = dict(text.split("=", 1) for text in options.paths), options.only.split(",")
    if "uneven" in only:
        paths["uneven"] = uneven(options.runs / "uneven.npz")
    begin = time.perf_counter()
    wanted = [(stream, method) for stream in only for method in METHODS[stream]]
    found = [experiment(*key, options.seeds, paths.get(key[0], LIKE.get(key[0]))) for key in wanted]
    runs = Local(options.workers).run(found, options.runs)
    for outcome in runs:
        result = outcome.folder.result
        figure = outcome.error or f"{result['final_accuracy']['mean']:.2f}, {result['memory_bytes'][-1] / 1000:,.0f} kB"
        print(f"{outcome.experiment.name}: {figure}, after {time.perf_counter() - begin:.0f} s", flush=True)
        if time.perf_counter() - begin > 60 * options.minutes:
            runs.waiting.clear()


if __name__ == "__main__":
    main()
