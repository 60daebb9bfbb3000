"""Accuracy and BWT of PRER with distilled labels on the paper's data, five seeds, without what they hardly depend on.

python benchmarks/distilled_accuracy.py RUNS [key=value ...] [--only mnist,cifar10] [--workers N] [--seeds N] [--quick]

With `labels="distilled"` encoder and head learn without generated samples. So the density and the decoder's own phase can be left
out, as in the search, which makes the runs short enough for a CPU. If `autoencoder` is not 0, the decoder then learns beside the
encoder only, and results differ a little from those of whole runs. The other settings are those of
`prer/presets/<data>-prer-distilled.toml`, which the search found, or those that are given. KMNIST-10k and SVHN-46k are read from
the folders kmnist10k and svhn46k of PRER_DATA.
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
    whole = Experiment.read(file_of(data, "prer-distilled"), [*SHORT, *options.settings]).tables()
    path = Path(os.environ.get("PRER_DATA", "")) / PARTS[data] if data in PARTS else data
    tables = quickened(whole | {"seeds": list(range(options.seeds))}, options.quick)
    return Experiment.parse(tables, [f"stream.data={json.dumps(str(path))}"], presets=False)


def main():
    options = options_of(__doc__, 5, settings=True)
    recorded([experiment(data, options) for data in chosen(options, DATA)], options, "accuracy")


if __name__ == "__main__":
    main()
