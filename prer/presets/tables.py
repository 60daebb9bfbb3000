"""Recommended settings by data set, as plain tables: for the stream, for any learner, and for one learner.

Settings that are not listed keep their defaults. The paper's methods on its data sets have their own files here.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

Table = Mapping[str, Mapping[str, Any]]

PAIRS = {"classes_per_task": 2, "resplit": 0.2}
TEN = {
    "learner": {"batch": 64, "epochs": 10},
    "prer": {"epochs_autoencoder": 10, "density": {"name": "flow", "epochs": 10}},
    "dgr": {"epochs_generator": 10},
}
# Colour images need wider networks; the extra epochs are PRER's.
CIFAR = TEN | {
    "learner": {"channels": (24, 48, 96), "embedding": 200, "batch": 128, "epochs": 10},
    "prer": {
        "epochs_autoencoder": 20,
        "epochs": 20,
        "temperature": 0.8,
        "density": {"name": "flow", "epochs": 20},
    },
}

DIGITS: Table = {
    "stream": PAIRS,
    "learner": {"batch": 32, "epochs": 20},
    # Found by benchmarks/search.py on validation data. A memory of 500 samples per task would hold the whole task,
    # hence 50 of 287; 1,400 images need a smaller flow than MNIST, and more epochs.
    "naive": {"lr": 0.00058},
    "joint": {"lr": 0.00345},
    "lwf": {"size": 50, "lr": 0.00785, "weight": 0.293, "softness": 4.0, "memory_batch": 128},
    "ewc": {"lr": 0.000359, "weight": 40.4, "form": "online", "epochs": 40},
    "si": {"lr": 0.00241, "weight": 0.333, "damping": 0.00683, "epochs": 100},
    "gem": {"size": 50, "lr": 0.0183, "margin": 1.0, "memory_batch": 16},
    "agem": {"size": 50, "lr": 0.00058, "memory_batch": 64},
    "er": {"size": 50, "lr": 0.026, "weight": 14.0},
    "replay": {"size": 250, "lr": 0.00771, "weight": 0.684},
    "der": {"size": 250, "lr": 0.0019, "weight": 0.00173, "label_weight": 0.541, "memory_batch": 128},
    "dgr": {"lr": 0.00658, "weight": 7.33, "lr_generator": 0.00677, "epochs_generator": 20, "latent": 16},
    "prer": {
        "embedding": 32,
        "epochs_autoencoder": 60,
        "lr_autoencoder": 0.00855,
        "decay_autoencoder": True,
        "epochs": 60,
        "lr": 0.00779,
        "weight": 0.732,
        "sparsity": 0.00139,
        "temperature": 0.8,
        "density": {"name": "flow", "epochs": 30, "lr": 0.00492, "blocks": 4},
    },
}
SVHN: Table = {"learner": {**TEN["learner"], "channels": (24, 48, 96), "embedding": 100}}

TABLES: Mapping[str, Table] = {
    "digits": DIGITS,
    "mnist": {"stream": PAIRS, **TEN},
    "kmnist": {"stream": PAIRS, **TEN},
    "fashion_mnist": {"stream": PAIRS, **TEN},
    "svhn": {"stream": PAIRS, **TEN, **SVHN},
    "cifar10": {"stream": PAIRS, **CIFAR},
    "cifar100": {"stream": {"classes_per_task": 10, "resplit": 0.2}, **CIFAR},
}
