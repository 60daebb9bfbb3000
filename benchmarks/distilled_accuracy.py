"""Accuracy and BWT of PRER with distilled labels on the paper's data, five seeds, without what they hardly depend on.

python benchmarks/distilled_accuracy.py RUNS [key=value ...] [--only mnist,cifar10] [--workers N] [--seeds N] [--quick]

With `labels="distilled"` encoder and head learn without generated samples. So the density and the decoder's own phase can be left
out, as in the search, which makes the runs short enough for a CPU. If `autoencoder` is not 0, the decoder then learns beside the
encoder only, and results differ a little from those of whole runs. The other settings are those of
`prer/presets/<data>-prer-distilled.toml`, which the search found, or those that are given. KMNIST-10k and SVHN-46k are read from
the folders kmnist10k and svhn46k of PRER_DATA.

`--aimed RECORD`, once or more often, runs instead the best points of `search_paper.py --round aimed`, with all phases: of the points whose BWT on
validation data is at least what was asked for, the one with the highest Accuracy; if there is none, the one that lacks the fewest
points of both together. Settings that are given then change these.
"""

import json
import os
from pathlib import Path

from recorded_runs import chosen, options_of, quickened, recorded
from search_paper import won_by

from prer.paper import DATA, file_of
from prer.runs.experiment import Experiment

PARTS = {"kmnist": "kmnist10k", "svhn": "svhn46k"}
# The Accuracy and the BWT that were asked for.
ASKED = {"mnist": (99.7, -0.03), "kmnist": (98.0, -0.1), "svhn": (95.0, -0.15), "cifar10": (86.7, 0.0)}
SHORT = ["learner.epochs_autoencoder=0", "learner.density=gaussian"]


def aimed(record):
    """The best point of each data set in a record of the search, as overrides of its file."""
    found = {}
    for name, points in json.loads(record.read_text("utf-8"))["searches"].items():
        data = name.partition("-")[0]
        best = chosen_of(points, *ASKED[data])
        found[data] = [f"learner.{key}={json.dumps(value)}" for key, value in won_by([best]).items()]
    return found


def chosen_of(points, accuracy, bwt):
    """The most accurate point with at least this BWT; if there is none, the one that lacks the fewest points."""
    points = [point for point in points if "bwt" in point]
    if kept := [point for point in points if point["bwt"] >= bwt]:
        return max(kept, key=lambda point: point["accuracy"])
    return min(points, key=lambda p: max(accuracy - p["accuracy"], 0) + max(bwt - p["bwt"], 0))


def experiment(data, options, settings=None):
    """The run on a data set; with `settings`, a whole run with these."""
    file = file_of(data, "prer-distilled")
    given = SHORT if settings is None else settings
    whole = Experiment.read(file, [*given, *options.settings]).tables()
    whole["name"] += "" if settings is None else "-aimed"
    path = Path(os.environ.get("PRER_DATA", "")) / PARTS[data] if data in PARTS else data
    tables = quickened(whole | {"seeds": list(range(options.seeds))}, options.quick)
    return Experiment.parse(tables, [f"stream.data={json.dumps(str(path))}"], presets=False)


def main():
    records = {"type": Path, "action": "append", "default": [], "metavar": "RECORD"}
    options = options_of(__doc__, 5, settings=True, aimed=records)
    best = {data: found for record in options.aimed for data, found in aimed(record).items()}
    experiments = [experiment(data, options, best.get(data)) for data in chosen(options, best or DATA)]
    recorded(experiments, options, "accuracy")


if __name__ == "__main__":
    main()
