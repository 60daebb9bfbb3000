"""Accuracy and BWT of PRER with distilled labels on the paper's data, five seeds, without what they do not depend on.

python benchmarks/distilled_accuracy.py RUNS [--only mnist,cifar10] [--workers N] [--seeds N] [--quick]

With `labels="distilled"` encoder and head learn without generated samples, so the decoder and the density can be left out. That
makes the runs short enough for a CPU. The other settings are those of `prer/presets/<data>-prer-distilled.toml`, which the search
found. KMNIST-10k and SVHN-46k are read from the folders kmnist10k and svhn46k of PRER_DATA.
"""

import json
import os
from pathlib import Path

from recorded_runs import chosen, options_of, quickened, recorded

from prer.paper import DATA, file_of
from prer.runs.experiment import Experiment

PARTS = {"kmnist": "kmnist10k", "svhn": "svhn46k"}
SHORT = ["learner.epochs_autoencoder=0", "learner.density=gaussian"]


def experiment(data, options):
    """The run on a data set."""
    whole = Experiment.read(file_of(data, "prer-distilled"), SHORT).tables()
    path = Path(os.environ.get("PRER_DATA", "")) / PARTS[data] if data in PARTS else data
    tables = quickened(whole | {"seeds": list(range(options.seeds))}, options.quick)
    return Experiment.parse(tables, [f"stream.data={json.dumps(str(path))}"], presets=False)


def main():
    options = options_of(__doc__, 5)
    recorded([experiment(data, options) for data in chosen(options, DATA)], options, "accuracy")


if __name__ == "__main__":
    main()
