"""Epochs and batch size where the user sets none: enough steps for the samples and classes of a task.

The numbers were chosen on validation data, from 77 samples of a task to 10,000 and from 2 classes to 10
(`benchmarks/own_data.py search`). More classes need more steps: their borders are learned by head and encoder.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from prer.settings import Auto

EPOCHS = 10  # of a phase, at least
STEPS_OF_A_CLASS, FEWEST, MOST = 500, 1000, 5000  # steps of a phase, at least
FEW_STEPS = 150  # a phase that is shorter hardly learns anything; on the digits the shortest has 160
SMALL = 2000  # samples of a task, below which small batches learn more in the same time


def batch_of(batch: int | Auto, samples: int) -> int:
    """The number of samples in a batch, of so many samples in all.

    Example:
        >>> batch_of("auto", 240), batch_of("auto", 10_000), batch_of(64, 50)
        (32, 64, 50)
    """
    chosen = batch if batch != "auto" else 32 if samples < SMALL else 64
    return min(chosen, samples)


def epochs_of(epochs: int | Auto, batch: int | Auto, samples: int, classes: int) -> int:
    """The number of epochs of a phase on so many samples of so many classes.

    Example:
        >>> epochs_of("auto", "auto", 240, 2), epochs_of("auto", "auto", 10_000, 2), epochs_of(3, "auto", 240, 2)
        (143, 10, 3)
    """
    if epochs != "auto":
        return epochs
    steps = min(max(STEPS_OF_A_CLASS * classes, FEWEST), MOST)
    return max(EPOCHS, math.ceil(steps / (samples // batch_of(batch, samples))))


def too_few_steps(phases: Mapping[str, int], batch: int | Auto, samples: int) -> str:
    """What to say where a task of so many samples makes too few training steps; empty where they are enough."""
    batches = samples // batch_of(batch, samples)
    phase, epochs = min(phases.items(), key=lambda item: item[1])
    if epochs * batches >= FEW_STEPS:
        return ""
    return (
        f"a task has {samples} samples to learn from, so that phase {phase!r} has only {epochs * batches} steps; "
        "raise the epochs, or leave them (and `like`) out: then they fit the number of samples"
    )
