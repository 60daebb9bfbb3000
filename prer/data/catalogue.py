"""Data sets by name, each with the settings recommended for it."""

from __future__ import annotations

from typing import Any

import numpy as np

# For each name: settings of the stream, of any learner, and of one learner. What is not named keeps its default.
RECOMMENDED: dict[str, dict[str, Any]] = {
    "digits": {
        "stream": {"classes_per_task": 2, "resplit": 0.2},
        "learner": {"batch": 32, "epochs": 20},
        # Found on seeds 0 to 19. 1,400 images want a smaller flow than MNIST's, and more epochs.
        "prer": {
            "embedding": 32,
            "epochs_autoencoder": 60,
            "lr_autoencoder": 8e-3,
            "decay_autoencoder": True,
            "epochs_flow": 30,
            "lr_flow": 8e-3,
            "epochs": 60,
            "lr": 3e-3,
            "blocks": 4,
            "weight": 2.0,
            "sparsity": 0.002,
            "temperature": 0.9,
        },
    },
}


def recommended(data: str, learner: str) -> dict[str, dict[str, Any]]:
    """The settings recommended for a data set and a learner, as the tables of an experiment."""
    entry = RECOMMENDED.get(data, {})
    return {"stream": entry.get("stream", {}), "learner": entry.get("learner", {}) | entry.get(learner, {})}


def digits() -> tuple[np.ndarray, np.ndarray]:
    """The 1,797 digits of 8x8 pixels that come with scikit-learn."""
    from sklearn.datasets import load_digits

    bunch: Any = load_digits()
    return np.round(bunch.images * (255 / 16)).astype(np.uint8), bunch.target
