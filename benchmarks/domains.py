"""Is generation needed if the task is given, and old and new inputs have nothing in common?

    PRER_DATA=DATA python benchmarks/domains.py RUNS [key=value ...] [--workers N] [--seeds N] [--only METHOD,...] [--quick]

Four domains, each with a head of its own: MNIST, KMNIST-10k, SVHN-46k and CIFAR10, all 32x32 in colour, ten classes each, 1,000
images of each class. DATA has the folders `kmnist10k` and `svhn46k`, and the files of the others.

Each method has its settings for CIFAR10, with ten epochs for each phase; rows of PRER that distil no labels have those of PRER
without the anchor. If settings are given, they change those of every method, and nothing is searched. The weight of what holds
the past is one of three, chosen by Accuracy on validation data (a fifth of the training part, two seeds). The chosen ones run
again on the test part. Parts of PRER that no prediction depends on are not trained in the search; without R the flow is never
trained, so its samples mean nothing.
"""

import os
from pathlib import Path

import numpy as np
from paper_records import result_of
from recorded_runs import QUICK, chosen, images, options_of, quickened, recorded, written

from prer.data.resizing import coloured, resized
from prer.presets import experiment_file, recommended
from prer.runs.experiment import Experiment
from prer.settings import merged

DOMAINS = ("mnist", "kmnist10k", "svhn46k", "cifar10")  # in the order in which they arrive
SIZE, EACH, EPOCHS = 32, 1000, 10
VALUES = (1.0, 4.0, 16.0)
SEARCH = {"seeds": 2, "stream": {"validation": 0.2}}
NO_FLOW = {"density": {"epochs": 0}}
NO_MEMORY = NO_FLOW | {"epochs_autoencoder": 0}
NO_REPLAY = {"share": 0.0, "weight": 0.0} | NO_FLOW
DISTILLED = {"labels": "distilled", "anchor": 0.0, "generated": 0.0, "autoencoder": 0.0}
METHODS = {  # the learner, its settings, and those that have the weight that is searched; slow ones first
    "prer-both": ("prer", {}, ("weight", "anchor")),
    "prer-distilled-generated": ("prer", DISTILLED, ("weight", "generated")),
    "prer-r": ("prer", {"anchor": 0.0}, ("weight",)),
    "prer-distilled": ("prer", DISTILLED, ("weight",)),
    "joint": ("joint", {}, ()),
    "prer-anchor": ("prer", NO_REPLAY, ("anchor",)),
    "prer-neither": ("prer", NO_REPLAY | {"anchor": 0.0}, ()),
    "lwf": ("lwf", {"size": 500}, ("weight",)),
    "lwf-classic": ("lwf", {"form": "classic"}, ("weight",)),
    "naive": ("naive", {}, ()),
}


def stream(folder, each=EACH):
    """Images [N, 3, 32, 32] of all domains as uint8, and labels 0 to 39 in the order of the domains."""
    xs, ys = [], []
    for number, name in enumerate(DOMAINS):
        x, y = images(folder / name if (folder / name).is_dir() else name, each)
        xs.append(coloured(resized(x, SIZE, "pad")))
        ys.append(10 * number + y)
    return np.concatenate(xs), np.concatenate(ys)


def start_of(method):
    """The learner of a method as on CIFAR10."""
    own = "prer-distilled" if method.startswith("prer-distilled") else method
    own = own if experiment_file("cifar10", own).exists() else "prer-no-anchor"
    return {"name": METHODS[method][0]} | recommended("cifar10", own)["learner"]


def experiment(data, method, value, seeds, search=False, quick=False, given=()):
    """The experiment of a method with this weight of what holds the past, if it has one, and with given settings."""
    name, settings, weights = METHODS[method]
    about = {"data": str(data), "classes_per_task": 10, "resplit": 0.2}
    epochs = {"epochs": EPOCHS} | (
        {"epochs_autoencoder": EPOCHS, "density": {"epochs": EPOCHS}} if name == "prer" else {}
    )
    learner = merged(start_of(method), epochs, {})
    tables = quickened({"stream": about, "learner": learner, "seeds": seeds}, quick)
    tables = merged(tables, {"learner": settings | dict.fromkeys(weights, value)}, {})
    if search:
        tables = merged(tables, SEARCH | ({"learner": NO_MEMORY} if method == "prer-distilled" else {}), {})
    weight = [f"{value:g}"] if weights and not given else []
    words = ["domains", method, *weight, *(["search"] if search else []), *(["given"] if given else [])]
    return Experiment.parse({"name": "-".join(words)} | tables, given, presets=False)


def best(points, lines):
    """The weight of each method with the highest Accuracy on validation data; the smallest of equally good ones."""
    found = {}
    for (method, value), point in sorted(points.items()):
        if "result" in lines[point.name]:
            found.setdefault(method, {})[value] = result_of(lines[point.name])["accuracy"]["mean"]
    return {method: max(of, key=of.get) for method, of in found.items()}


def main():
    options = options_of(__doc__, 5, settings=True)
    methods = chosen(options, METHODS)
    data = options.runs / f"domains{'-quick' * options.quick}.npz"
    if not data.exists():
        folder = Path(os.environ.get("PRER_DATA", "~/.cache/prer")).expanduser()
        written(data, *stream(folder, QUICK if options.quick else EACH))
    if options.settings:
        made = [
            experiment(data, m, VALUES[0], options.seeds, quick=options.quick, given=options.settings) for m in methods
        ]
        recorded(made, options, "domains-given")
        return
    points = {(m, v): experiment(data, m, v, 2, True, options.quick) for m in methods if METHODS[m][2] for v in VALUES}
    weights = best(points, recorded(points.values(), options, "domains-search"))
    print(f"chosen: {weights}", flush=True)
    final = [m for m in methods if m in weights or not METHODS[m][2]]  # not those that failed with all weights
    experiments = [experiment(data, m, weights.get(m), options.seeds, quick=options.quick) for m in final]
    recorded(experiments, options, "domains")


if __name__ == "__main__":
    main()
