"""Default epochs and batch size: enough steps for the samples and classes of a task.

The numbers were tuned on validation data, with 77 to 10,000 samples and 2 to 10 classes in a task
(`benchmarks/own_data.py search`). More classes need more steps: head and encoder learn their boundaries.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from prer.settings import Auto

EPOCHS = 10  # minimum epochs of a phase
STEPS_OF_A_CLASS, FEWEST, MOST = 500, 1000, 5000  # minimum steps of a phase: for each class, within these bounds
FEW_STEPS = 150  # a shorter phase hardly learns anything; on the digits the shortest has 160
SMALL = 2000  # with fewer samples in a task, small batches learn more in the same time


def embedding_of(embedding: int | Auto, shape: Sequence[int]) -> int:
    """Size of the embedding for samples of this shape.

    Example:
        >>> embedding_of("auto", (1, 28, 28)), embedding_of("auto", (3, 32, 32)), embedding_of(50, (16,))
        (100, 200, 50)
    """
    if embedding != "auto":
        return embedding
    return 100 if len(shape) == 3 and shape[0] == 1 else 200


def batch_of(batch: int | Auto, samples: int) -> int:
    """Batch size for a task of `samples` samples.

    Example:
        >>> batch_of("auto", 240), batch_of("auto", 10_000), batch_of(64, 50)
        (32, 64, 50)
    """
    chosen = batch if batch != "auto" else 32 if samples < SMALL else 64
    return min(chosen, samples)


def epochs_of(epochs: int | Auto, batch: int | Auto, samples: int, classes: int) -> int:
    """Number of epochs of a phase for this many samples and classes.

    Example:
        >>> epochs_of("auto", "auto", 240, 2), epochs_of("auto", "auto", 10_000, 2), epochs_of(3, "auto", 240, 2)
        (143, 10, 3)
    """
    if epochs != "auto":
        return epochs
    steps = min(max(STEPS_OF_A_CLASS * classes, FEWEST), MOST)
    return max(EPOCHS, math.ceil(steps / (samples // batch_of(batch, samples))))


def too_few_steps(phases: Mapping[str, int], batch: int | Auto, samples: int) -> str:
    """Warning if a task of `samples` samples has too few training steps; empty if there are enough."""
    if not phases:
        return ""  # nothing is trained
    batches = samples // batch_of(batch, samples)
    phase, epochs = min(phases.items(), key=lambda item: item[1])
    if epochs * batches >= FEW_STEPS:
        return ""
    return (
        f"a task has {samples} samples to learn from, so that phase {phase!r} has only {epochs * batches} steps; "
        "raise the epochs, or leave them (and `like`) out: then they fit the number of samples"
    )
