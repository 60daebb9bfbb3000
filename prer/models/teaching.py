"""Teach a model: from validated samples to a learned task, with warnings in words."""

# N samples, C channels, H and W image

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import numpy as np
import torch
from torch import Tensor

from prer.data.arrays import Data
from prer.errors import InputError
from prer.models.model import Model
from prer.presets.auto import too_few_steps
from prer.streams.making import lesson_of
from prer.streams.pool import pool_of
from prer.streams.task import Label, Task
from prer.text import shown
from prer.training.computing import rows_at_once
from prer.training.loop import Observer

FEW = 10  # samples; what is learned of a class from fewer rarely holds for new samples
RECOGNISED = 0.5  # share of new samples of a known class; below it they look unlike what is remembered
LOOKED_AT = 500  # samples of a class that are compared with the memory


@dataclass(frozen=True)
class Taught:
    """What came of a lesson.

    Attributes:
        samples: number of samples that were learned.
        seconds: time it took.
        held_out: share of the held-out samples that are predicted correctly; None if there are none.
        warnings: what the user should know, in words.
    """

    samples: int
    seconds: float
    held_out: float | None
    warnings: list[str]


def teach(
    model: Model,
    data: Data,
    *,
    task: int | None = None,
    validation: float = 0.0,
    balance: bool = False,
    begin: Callable[[Task], Observer] = lambda task: lambda event: None,
) -> Taught:
    """Learn one lesson. If it fails, the model is as it was.

    Args:
        model: the model.
        data: validated samples, read as the model's data was, and their labels.
        task: as in `lesson_of`.
        validation: as in `lesson_of`.
        balance: as in `lesson_of`.
        begin: called with the task that is to be learned; returns the observer of its events.
    """
    data = data._replace(x=_alike(model, data.x))
    lesson = lesson_of(
        pool_of(data, data.y), model.tasks, model.scenario, validation=validation, balance=balance, task=task
    )
    clock, said = time.perf_counter(), [*_too_little(model, lesson), *_unlike(model, lesson)]
    said += model.learn(lesson, begin(lesson))
    about, held_out = model.lessons[-1], _held_out(model, lesson)
    about |= {"when": now(), "held_out": held_out}
    return Taught(sum(about["samples"]), time.perf_counter() - clock, held_out, said)


def now() -> str:
    """The present time, as it is written into a model's history."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def count_right(model: Model, x: Any, labels: Sequence[Label], task: int | None = None) -> dict[Label, list[int]]:
    """For each label: how many of its samples are predicted correctly, and how many there are."""
    answers = {str(label): label for label in model.answers(task)}
    unknown = sorted({str(label) for label in labels} - answers.keys())
    if unknown:
        what = f"the model has not learned class {shown(unknown[0], 40)!r}"
        raise InputError(f"{what}; teach it first, or leave out these samples")
    counts: dict[Label, list[int]] = {answers[label]: [0, 0] for label in sorted({*map(str, labels)})}
    for label, predicted in zip(map(str, labels), model.predict(x, task)[0], strict=True):
        counts[answers[label]][0] += label == str(predicted)
        counts[answers[label]][1] += 1
    return dict(sorted(counts.items(), key=lambda item: list(answers).index(str(item[0]))))


def _alike(model: Model, x: np.ndarray | Tensor) -> Tensor:
    """Samples of the shape and type that the model has learned."""
    assert isinstance(x, Tensor)
    if model.tasks:
        x = model.fitted(x)
    if model.dtype not in (None, x.dtype):  # bytes stand for the numbers from 0 to 1
        x = x.float() / 255 if model.dtype == torch.float32 else (x * 255).round().to(torch.uint8)
    return x.clone() if model.learner.keeps_tasks else x  # the caller may use the same array again


@torch.no_grad()
def _held_out(model: Model, lesson: Task) -> float | None:
    """Mean accuracy of the seeds on the held-out part, of which each has its own."""
    lesson = lesson.to(model.device)
    right = []
    for rows in lesson.test_rows(model.seeds).split(rows_at_once(model.learner.address_), 1):
        x, y = lesson.samples(rows)
        right.append((model.learner.predict(x, lesson.head) == lesson.targets[y]).double())
    found = torch.cat(right, dim=1)
    return float(found.mean()) if found.numel() else None


def _too_little(model: Model, lesson: Task) -> list[str]:
    """Warnings about too few samples or steps."""
    counts = np.bincount(lesson.y[np.unique(lesson.split(model.seeds[0])[0])], minlength=len(lesson.labels))
    few = [f"{shown(label, 30)!r} ({n})" for label, n in zip(lesson.labels, counts, strict=True) if n < FEW]
    more = f" and {len(few) - 5} more" if len(few) > 5 else ""
    said = [f"some classes have fewer than {FEW} samples to learn from: {', '.join(few[:5])}{more}"] if few else []
    steps = too_few_steps(model.learner.phases(*lesson.size), model.learner.batch, lesson.size[0])
    return [*said, steps] if steps else said


def _unlike(model: Model, lesson: Task) -> list[str]:
    """Warnings about known classes whose new samples the model does not recognise."""
    owner = next((task for task in model.tasks if task.head == lesson.head), None)  # whose head learns more
    if owner is None:  # with a new head, all its classes are new
        return []
    task, said = owner.index + 1 if model.scenario == "task" else None, []
    known = [label for label in lesson.labels if label in model.answers(task)]
    for label in known:
        rows = np.flatnonzero(lesson.y.numpy() == lesson.labels.index(label))[:LOOKED_AT]
        share = recognised(model, lesson.x[rows], label, task)
        if share < RECOGNISED:
            said.append(f"{share:.0%} of {shown(label, 30)!r}")
    if not said:
        return []
    return [
        f"new samples of known classes look unlike what is remembered (recognised: {', '.join(said[:5])}"
        f"{f' and {len(said) - 5} more' if len(said) > 5 else ''}); check their labels and how they were made"
    ]


def recognised(model: Model, x: Tensor, label: Label, task: int | None = None) -> float:
    """Share of samples that a model takes for this class; if the task is given, among the classes of its head."""
    return sum(predicted == label for predicted in model.predict(x, task)[0]) / len(x)
