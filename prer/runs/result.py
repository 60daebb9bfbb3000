"""The result of a run: the accuracy matrix, the memory it keeps, and the metrics."""

# S seeds, M tasks, C classes

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from prer.disk import finite
from prer.errors import InputError
from prer.learners.base import Learner
from prer.models.model import Model
from prer.runs import metrics as evaluation
from prer.streams.task import Label, Scenario, Task
from prer.training.computing import rows_at_once
from prer.version import __version__

if TYPE_CHECKING:
    from prer.models.classifier import ContinualClassifier

KEPT = ("memory_floats", "memory_samples", "memory_bytes", "transient_floats")


@dataclass(frozen=True)
class Result:
    """The result of a run; `to_json` defines the format of `result.json`.

    Attributes:
        seeds: the seeds of the run.
        matrix: accuracies [S, M, M] in per cent; NaN where not evaluated.
        untrained: accuracy on each task before anything is learned [S, M]; NaN where its head did not exist.
        scenario: what is asked at test time.
        classes: the labels, in order of arrival.
        matrix_task_given: the same accuracies if the task of a sample is given, in the scenario "class" [S, M, M].
        confusion: test samples of each true class (rows) by predicted class after the last task, in the scenario
            "class" [S, C, C].
        test_samples: number of test samples of each task, for one seed.
        memory_floats: scalars kept of the past after each task, for one seed.
        memory_samples: raw samples kept after each task.
        memory_bytes: bytes that these scalars have on disk; None where an earlier version did not count them.
        transient_floats: scalars in temporary copies during the training of each task.
        seconds: time by phase.
        digest: sha256 over the final state and the matrix.
        state_digest: sha256 over the final state alone.
        learner: its name.
        stream: its name.
        device: where it ran.
        learned: the learner with what it has learned; `model` is for users.
    """

    seeds: tuple[int, ...]
    matrix: np.ndarray
    untrained: np.ndarray
    scenario: Scenario
    classes: list[Label]
    matrix_task_given: np.ndarray | None
    confusion: np.ndarray | None
    test_samples: list[int]
    memory_floats: list[int]
    memory_samples: list[int]
    memory_bytes: list[int | None]
    transient_floats: list[int]
    seconds: dict[str, float]
    digest: str
    state_digest: str
    learner: str
    stream: str
    device: str
    learned: Model | None = field(default=None, repr=False, compare=False)

    @property
    def model(self) -> ContinualClassifier:
        """The trained model: it predicts, generates, can be saved, and learns more."""
        from prer.models.classifier import ContinualClassifier  # imports scikit-learn, which most runs do not need

        if self.learned is None:
            raise InputError("this result has no model; load it from the folder of its run: prer.load(folder)")
        return ContinualClassifier.of(self.learned)

    @property
    def metrics(self) -> dict[str, dict | None]:
        """Accuracy, BWT and the others by name, each with mean, std and values."""
        found = evaluation.summary(self.matrix, self.untrained)
        if self.confusion is None or self.matrix_task_given is None:
            return found
        # Over all test samples, since tasks may differ in size.
        given = np.average(self.matrix_task_given[:, -1], axis=1, weights=self.test_samples)
        shares = [evaluation.share_right(C) for C in self.confusion]
        accuracies = {"final_accuracy": shares, "final_accuracy_task_given": given.tolist()}
        return found | {name: evaluation.spread(values) for name, values in accuracies.items()}

    @property
    def class_accuracy(self) -> dict[str, list[float | None]] | None:
        """Accuracy of each seed on each class after the last task, by label; None except in the scenario "class"."""
        if self.confusion is None:
            return None
        of_class = np.stack([evaluation.class_accuracy(C) for C in self.confusion], axis=1)  # [C, S]
        return {str(label): finite(values.tolist()) for label, values in zip(self.classes, of_class, strict=True)}

    def to_json(self) -> dict[str, Any]:
        """The result as plain values, with every metric."""
        names = ("matrix", "untrained", "matrix_task_given", "confusion")
        found = {name: getattr(self, name) for name in names}
        arrays = {name: None if array is None else finite(array.tolist()) for name, array in found.items()}
        plain = {name: value for name, value in vars(self).items() if name not in ("seeds", "learned", *arrays)}
        metrics = self.metrics | {"class_accuracy": self.class_accuracy}
        return {"seeds": list(self.seeds)} | arrays | metrics | plain | {"version": __version__}


@dataclass
class Measurements:
    """The measurements of a run so far. Arrays are replaced, never modified, so copying the lists is enough."""

    rows: list[np.ndarray] = field(default_factory=list)  # rows of the matrix: accuracies [S, tasks tested]
    given: list[np.ndarray] = field(default_factory=list)  # the same with the task given (scenario "class")
    untrained: list[np.ndarray] = field(default_factory=list)  # [S]
    memory_floats: list[int] = field(default_factory=list)
    memory_samples: list[int] = field(default_factory=list)
    memory_bytes: list[int | None] = field(default_factory=list)
    transient_floats: list[int] = field(default_factory=list)

    @classmethod
    def of(cls, values: dict[str, Any], tasks: int, seeds: int) -> Measurements:
        """Validated measurements of a checkpoint after `tasks` tasks."""
        values = {"given": [], "memory_bytes": [None] * tasks} | values  # earlier versions did not have these
        kept: dict[str, list[Any]] = {}
        try:
            arrays = ([np.array(row, float) for row in values[key]] for key in ("rows", "given", "untrained"))
            rows, given, untrained = arrays
            kept |= {key: list(values[key]) for key in KEPT}
        except (KeyError, TypeError, ValueError, OverflowError):
            rows, given, untrained = [], [], []
        widths = [row.shape in ((seeds, i), (seeds, i + 1)) for of in (rows, given) for i, row in enumerate(of, 1)]
        whole = all(widths) and all(a.shape == (seeds,) for a in untrained) and len(given) in (0, len(rows))
        whole = whole and not any((a < 0).any() or (a > 100).any() for a in [*rows, *given, *untrained])
        counts = [n for key, of in kept.items() for n in of if not (key == "memory_bytes" and n is None)]
        whole = whole and all(type(n) is int and n >= 0 for n in counts)
        if not whole or {len(rows), len(untrained), *map(len, kept.values())} != {tasks} or len(kept) != len(KEPT):
            raise InputError("the saved results are inconsistent; delete the checkpoint to start over")
        return cls(rows, given, untrained, **kept)

    def copied(self) -> dict[str, list]:
        """A snapshot as plain lists."""
        return {f.name: list(getattr(self, f.name)) for f in fields(self)}

    def test(self, learner: Learner, tasks: Sequence[Task]) -> dict[str, Any]:
        """Append the accuracy on every task seen and the size of the memory; return them as plain values."""
        self.rows.append(np.stack([tested(learner, seen) for seen in tasks], axis=1))
        if tasks[-1].scenario == "class":
            self.given.append(np.stack([tested(learner, seen, given=True) for seen in tasks], axis=1))
        kept = (*learner.memory_size(), learner.transient_floats_)
        for key, value in zip(KEPT, kept, strict=True):
            getattr(self, key).append(value)
        return {"accuracy": self.rows[-1].tolist()} | dict(zip(KEPT, kept, strict=True))

    def foresee(self, accuracy: np.ndarray, untrained: np.ndarray) -> None:
        """Record the accuracy on the next task before it is learned, and that of an untrained learner."""
        self.rows[-1] = np.column_stack([self.rows[-1], accuracy])
        self.untrained[-1] = untrained

    def matrix(self) -> np.ndarray:
        """R [S, M, M], NaN where not evaluated."""
        return _square(self.rows)

    def matrix_task_given(self) -> np.ndarray | None:
        """The same with the task given; None except in the scenario "class"."""
        return _square(self.given) if self.given else None


def _square(rows: Sequence[np.ndarray]) -> np.ndarray:
    R = np.full((len(rows[0]), len(rows), len(rows)), np.nan)
    for i, row in enumerate(rows):
        R[:, i, : row.shape[1]] = row
    return R


def tested(learner: Learner, task: Task, given: bool = False) -> np.ndarray:
    """The accuracy on a task [S]; the time it took is added to the learner's seconds."""
    begin = time.perf_counter()
    accuracy = accuracy_of(learner, task, given).double().cpu().numpy()
    learner.loop_.seconds["evaluation"] += time.perf_counter() - begin
    return accuracy


@torch.no_grad()
def accuracy_of(learner: Learner, task: Task, given: bool = False) -> Tensor:
    """Test accuracy of each seed on a task, in per cent [S]; if `given`, only the task's classes are candidates."""
    among = task.outputs if given else None
    return 100 * torch.cat([(p == y).float() for p, y in predictions(learner, task, among)], dim=1).mean(1)


def predictions(learner: Learner, task: Task, among: Sequence[int] | None = None) -> Iterator[tuple[Tensor, Tensor]]:
    """Predicted and correct outputs [S, m] of a task's test samples, in parts."""
    for rows in task.test_rows(learner.address_.seeds).split(rows_at_once(learner.address_), 1):
        x, y = task.samples(rows)
        yield (
            (learner.predict(x, task.head) if among is None else learner.predict(x, task.head, among)),
            task.targets[y],
        )


@torch.no_grad()
def confusion_of(learner: Learner, tasks: Sequence[Task]) -> np.ndarray:
    """Number of test samples of each true class (rows) by predicted class, of tasks with one head [S, C, C]."""
    begin, C = time.perf_counter(), tasks[-1].width
    counts = torch.zeros(len(learner.address_.seeds), C * C, dtype=torch.long, device=learner.address_.device)
    for task in tasks:
        for predicted, correct in predictions(learner, task):
            cell = correct * C + predicted
            counts.scatter_add_(1, cell, torch.ones_like(cell))
    learner.loop_.seconds["evaluation"] += time.perf_counter() - begin
    return counts.unflatten(1, (C, C)).cpu().numpy()


def classes_of(tasks: Sequence[Task]) -> list[Label]:
    """The labels of all tasks in order of arrival, each once."""
    return list(dict.fromkeys(label for task in tasks for label in task.labels))
