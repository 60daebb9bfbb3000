"""The result of a run: the accuracy matrix, the memory it keeps, and the metrics."""

# S seeds, M tasks

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np
import torch
from torch import Tensor

from prer.disk import finite
from prer.errors import InputError
from prer.learners.base import Learner
from prer.runs import metrics as evaluation
from prer.streams.task import Task
from prer.training.computing import rows_at_once
from prer.version import __version__

KEPT = ("memory_floats", "memory_samples", "transient_floats")


@dataclass(frozen=True)
class Result:
    """The result of a run; `to_json` defines the format of `result.json`.

    Attributes:
        seeds: the seeds of the run.
        matrix: accuracies [S, M, M] in per cent; NaN where not evaluated.
        untrained: accuracy on each task before anything is learned [S, M]; NaN where its head did not exist.
        memory_floats: scalars kept of the past after each task, for one seed.
        memory_samples: raw samples kept after each task.
        transient_floats: scalars in temporary copies during the training of each task.
        seconds: time by phase.
        digest: sha256 over the final state and the matrix.
        learner: its name.
        stream: its name.
        device: where it ran.
    """

    seeds: tuple[int, ...]
    matrix: np.ndarray
    untrained: np.ndarray
    memory_floats: list[int]
    memory_samples: list[int]
    transient_floats: list[int]
    seconds: dict[str, float]
    digest: str
    learner: str
    stream: str
    device: str

    @property
    def metrics(self) -> dict[str, dict | None]:
        """Accuracy, BWT and the others by name, each with mean, std and values."""
        return evaluation.summary(self.matrix, self.untrained)

    def to_json(self) -> dict[str, Any]:
        """The result as plain values, with every metric."""
        arrays = {"matrix": finite(self.matrix.tolist()), "untrained": finite(self.untrained.tolist())}
        plain = {name: value for name, value in vars(self).items() if name not in ("seeds", *arrays)}
        return {"seeds": list(self.seeds)} | arrays | self.metrics | plain | {"version": __version__}


@dataclass
class Measurements:
    """The measurements of a run so far. Arrays are replaced, never modified, so copying the lists is enough."""

    rows: list[np.ndarray] = field(default_factory=list)  # rows of the matrix: accuracies [S, tasks tested]
    untrained: list[np.ndarray] = field(default_factory=list)  # [S]
    memory_floats: list[int] = field(default_factory=list)
    memory_samples: list[int] = field(default_factory=list)
    transient_floats: list[int] = field(default_factory=list)

    @classmethod
    def of(cls, values: dict[str, Any], tasks: int, seeds: int) -> Measurements:
        """Validated measurements of a checkpoint after `tasks` tasks."""
        try:
            rows, untrained = ([np.array(row, float) for row in values[key]] for key in ("rows", "untrained"))
            kept = {key: list(values[key]) for key in KEPT}
        except (KeyError, TypeError, ValueError, OverflowError):
            rows, untrained, kept = [], [], {}
        widths = [row.shape in ((seeds, i), (seeds, i + 1)) for i, row in enumerate(rows, 1)]
        whole = all(widths) and all(a.shape == (seeds,) for a in untrained)
        whole = whole and not any((a < 0).any() or (a > 100).any() for a in [*rows, *untrained])
        whole = whole and all(type(n) is int and n >= 0 for counts in kept.values() for n in counts)
        if not whole or {len(rows), len(untrained), *map(len, kept.values())} != {tasks} or len(kept) != len(KEPT):
            raise InputError("the saved results are inconsistent; delete the checkpoint to start over")
        return cls(rows, untrained, **kept)

    def copied(self) -> dict[str, list]:
        """A snapshot as plain lists."""
        return {f.name: list(getattr(self, f.name)) for f in fields(self)}

    def test(self, learner: Learner, tasks: Sequence[Task]) -> dict[str, Any]:
        """Append the accuracy on every task seen and the size of the memory; return them as plain values."""
        self.rows.append(np.stack([tested(learner, seen) for seen in tasks], axis=1))
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
        R = np.full((len(self.rows[0]), len(self.rows), len(self.rows)), np.nan)
        for i, row in enumerate(self.rows):
            R[:, i, : row.shape[1]] = row
        return R


def tested(learner: Learner, task: Task) -> np.ndarray:
    """The accuracy on a task [S]; the time it took is added to the learner's seconds."""
    begin = time.perf_counter()
    accuracy = accuracy_of(learner, task).double().cpu().numpy()
    learner.loop_.seconds["evaluation"] += time.perf_counter() - begin
    return accuracy


@torch.no_grad()
def accuracy_of(learner: Learner, task: Task) -> Tensor:
    """Test accuracy of each seed on a task, in per cent [S]."""
    targets, right = task.targets, []
    for rows in task.test_rows(learner.address_.seeds).split(rows_at_once(learner.address_), 1):
        x, y = task.samples(rows)
        right.append((learner.predict(x, task.head) == targets[y]).float())
    return 100 * torch.cat(right, dim=1).mean(1)
