"""The view into a model: real samples, reconstructions, generated samples, and embeddings of both kinds."""

# S seeds, n samples, D embedding, K classes

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from prer.text import excerpt

if TYPE_CHECKING:
    from torch import Tensor

    from prer.learners.base import Learner
    from prer.streams.stream import Stream

SHOWN = 8  # samples of a class
POINTS = 60  # embeddings of a class, real and sampled
MOST_CLASSES = 20  # classes whose samples are shown


@dataclass
class Class:
    """Samples, embeddings and accuracy of one class.

    Attributes:
        label: its name, with its task if another task has a class of that name.
        rows: samples by where they come from: real, reconstructed, after each task; uint8 [n, C, H, W] or floats
            [n, features].
        real: two principal components of real embeddings [n, 2].
        sampled: the same of sampled embeddings.
        accuracy: final test accuracy of each seed in per cent [S].
    """

    label: str
    rows: dict[str, np.ndarray] = field(default_factory=dict)
    real: np.ndarray | None = None
    sampled: np.ndarray | None = None
    accuracy: list[float] | None = None


@dataclass
class MemoryView:
    """All classes of a memory, and notes on what is missing and why."""

    classes: list[Class]
    notes: list[str] = field(default_factory=list)
    generates: bool = False


def named(tasks: list[list[str]]) -> list[str]:
    """The names of the classes of all tasks, in order; a name that occurs several times includes its task.

    Example:
        >>> named([["cat", "dog"], ["cat", "cow"]])
        ['cat, task 1', 'dog', 'cat, task 2', 'cow']
    """
    names = [label for labels in tasks for label in labels]
    of = [(label, f"{label}, task {task}") for task, labels in enumerate(tasks, 1) for label in labels]
    return [long if names.count(label) > 1 else label for label, long in of]


def look(learner: Learner, stream: Stream) -> MemoryView:
    """The memory view of a learner: the classes of its stream, real and generated."""
    import torch

    from prer.learners.interfaces import Generates

    with torch.no_grad():
        classes = [Class(name) for name in named([[excerpt(label) for label in task.labels] for task in stream])]
        for number, class_, accuracy in zip(range(len(classes)), classes, _accuracies(learner, stream), strict=True):
            class_.accuracy = accuracy
            if number < MOST_CLASSES:
                class_.rows["real"] = _shown(learner, _real(learner, stream, number))
        if isinstance(learner, Generates):
            _add_generated(learner, stream, classes[:MOST_CLASSES])
    return MemoryView(classes, generates=isinstance(learner, Generates))


def _accuracies(learner: Learner, stream: Stream) -> Iterator[list[float]]:
    """Test accuracy of each class in per cent, a value for each seed [S]."""
    import torch

    from prer.training.computing import rows_at_once

    for task in stream:
        parts, outputs = [], task.targets
        for rows in task.test_rows(learner.address_.seeds).split(rows_at_once(learner.address_), 1):
            x, y = task.samples(rows)
            parts.append(torch.stack([y, (learner.predict(x, task.head) == outputs[y]).long()]))
        y, right = torch.cat(parts, dim=2)
        for place in range(len(task.labels)):
            yield [100 * float(right[seed, y[seed] == place].float().mean()) for seed in range(len(y))]


def _real(learner: Learner, stream: Stream, number: int) -> Tensor:
    """Some test samples of a class in the first seed's split, as inputs repeated for every seed [S, n, ...]."""
    task_of = [task for task, classes in enumerate(learner.tasks_) for _ in classes]
    task = stream[task_of[number]]
    place = number - learner.tasks_[task_of[number]].start
    rows = task.test_rows(learner.address_.seeds[:1])
    chosen = rows[0, task.y[rows[0]] == place][:POINTS]
    return learner.inputs_(task.samples(chosen.expand(len(learner.address_.seeds), -1))[0])


def _add_generated(learner: Learner, stream: Stream, classes: list[Class]) -> None:
    """Add reconstructions, new samples, and the first two principal components of real and sampled embeddings."""
    import torch

    from prer.learners.interfaces import generator_of

    real, sampled = [], []
    decoder, density = getattr(learner, "decoder_", None), getattr(learner, "density_", None)
    for number, class_ in enumerate(classes):
        x, address = _real(learner, stream, number), learner.address_ / "report" / number
        z, ids = learner.encoder_(x), torch.tensor([number], device=address.device).expand(len(x), POINTS)
        if decoder is not None:
            class_.rows["rebuilt"] = _shown(learner, decoder(z[:, :SHOWN]))
        made = generator_of(learner).generate(ids, address)
        class_.rows["samples"] = _shown(learner, made)
        generated = (
            density.sample(ids, address, getattr(learner, "temperature", 1.0)) if density else learner.encoder_(made)
        )
        real.append(z[0])
        sampled.append(generated[0])
    mean = torch.cat(real).mean(0)
    # With torch, whose threads are limited; NumPy would use all cores, and its threads wait for one another.
    axes = torch.linalg.svd(torch.cat(real) - mean, full_matrices=False)[2][:2].T
    for class_, z, generated in zip(classes, real, sampled, strict=True):
        class_.real, class_.sampled = ((z - mean) @ axes).numpy(), ((generated - mean) @ axes).numpy()


def _shown(learner: Learner, x: Tensor) -> np.ndarray:
    """Inputs of the first seed, converted back to the format of the data, as in the samples that runs save."""
    from prer.models.model import as_data

    return as_data(learner, x)[0, :SHOWN].numpy()
