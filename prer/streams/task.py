"""One batch of data that arrives together, and its split into training and test rows."""

# S seeds, N samples in all, n training samples of a task, B batch, C channels, H and W image

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np
import torch
from torch import Tensor

from prer.address import Address
from prer.data.reading import Reading
from prer.data.resizing import IMAGES_AS_FLOATS
from prer.streams.transforms import Moves, View

Label = str | int
# What is asked at test time. "task": the task is given, and each has a head. "class": it is not given, and one head
# grows by the new classes. "domain": the same classes come again in other inputs, with one head.
Scenario = Literal["task", "class", "domain"]


@dataclass(frozen=True, eq=False)
class Split:
    """The training rows and test rows of a task."""

    rows: tuple[np.ndarray, ...]  # of each class
    first: int  # number of the first class, a part of the address of random draws
    held: np.ndarray | None  # mask of the given test part [N]; None: each seed makes its own split
    share: float  # test share of every class in such a split
    validation: float = 0.0  # share of the training part that replaces the test part
    balance: bool = False  # repeat training rows of small classes until every class has as many as the largest

    def __call__(self, seed: int) -> tuple[np.ndarray, np.ndarray]:
        """Training and test rows of a seed, class by class."""
        parts = [self._of_class(rows, Address((seed,)), number) for number, rows in enumerate(self.rows, self.first)]
        train, test = zip(*parts, strict=True)
        if self.balance:
            most = max(map(len, train))
            train = tuple(np.resize(rows, most) for rows in train)  # repeats the rows in their order
        return np.concatenate(train), np.concatenate(test)

    def everything(self) -> np.ndarray:
        """All rows, whatever part they are in for some seed."""
        return np.concatenate(self.rows)

    def _of_class(self, rows: np.ndarray, address: Address, number: int) -> tuple[np.ndarray, np.ndarray]:
        if self.held is not None:
            train, test = rows[~self.held[rows]], rows[self.held[rows]]
        else:
            train, test = _cut(rows, self.share, address / "split" / number)
        return _cut(train, self.validation, address / "validation" / number) if self.validation else (train, test)


def _cut(rows: np.ndarray, share: float, address: Address) -> tuple[np.ndarray, np.ndarray]:
    """Split rows at random into two parts, the second with this share of them; neither is empty."""
    order = address.permutation(len(rows))[0].numpy()
    kept = min(max(round(share * len(rows)), 1), len(rows) - 1)
    return rows[order[kept:]], rows[order[:kept]]


@dataclass(frozen=True, eq=False)
class Task:
    """One batch of data that arrives together.

    Attributes:
        index: its position in the stream.
        labels: its classes, as the user named them.
        x: samples [N, C, H, W] or [N, features]; tasks may share them. They may stay on the host.
        y: index of each sample's class in `labels` [N].
        split: the training rows and test rows.
        head: number of the head that predicts; a task whose classes a head already knows uses that head.
        outputs: the head's output index of each label.
        width: number of classes that the head knows after this task.
        scenario: what is asked at test time.
        view: transform of this task's samples; None: they stay as they are.
        moves: random augmentation in training.
        reading: how the samples were read.
    """

    index: int
    labels: tuple[Label, ...]
    x: Tensor = field(repr=False)
    y: Tensor = field(repr=False)
    split: Split | Chosen | Together = field(repr=False)
    head: int
    outputs: tuple[int, ...] = field(repr=False)
    width: int = field(repr=False)
    scenario: Scenario = field(default="task", repr=False)
    view: View | None = field(default=None, repr=False)
    moves: Moves = field(default=Moves(), repr=False)
    reading: Reading = field(default=Reading(), repr=False)

    @property
    def size(self) -> tuple[int, int]:
        """Number of training samples, and number of classes."""
        return self.train_rows([0]).shape[1], len(self.labels)

    def train_rows(self, seeds: Sequence[int]) -> Tensor:
        """Training rows [S, n]."""
        return self._rows(seeds, 0)

    def test_rows(self, seeds: Sequence[int]) -> Tensor:
        """Test rows [S, m]."""
        return self._rows(seeds, 1)

    def _rows(self, seeds: Sequence[int], part: int) -> Tensor:
        return torch.stack([torch.from_numpy(self.split(seed)[part]) for seed in seeds]).to(self.y.device)

    @property
    def targets(self) -> Tensor:
        """The head's output index of each class, on the device of y; y indexes it."""
        return torch.tensor(self.outputs, device=self.y.device)

    def gather(self, rows: Tensor) -> tuple[Tensor, Tensor]:
        """Raw samples and their y by rows [S, B], on the device of the rows, wherever the data is."""
        return self.x[rows.to(self.x.device)].to(rows.device), self.y[rows]

    def gatherer(self, rows: Tensor) -> Callable[[Tensor], tuple[Tensor, Tensor, Tensor]]:
        """A function of positions among these rows [S, n]: returns the positions, the raw samples and their y."""
        return lambda at: (at, *self.gather(rows.gather(1, at.flatten(1)).view_as(at)))

    def transformed(self, x: Tensor, drawn: Tensor | None = None) -> Tensor:
        """Apply this task's view to raw samples, then random augmentation if numbers are drawn for it."""
        x = x if self.view is None else self.view(x)
        return x if drawn is None else self.moves(x, drawn)

    def samples(self, rows: Tensor) -> tuple[Tensor, Tensor]:
        """Samples after this task's view, and their y."""
        x, y = self.gather(rows)
        return self.transformed(x), y

    def everything(self) -> Tensor:
        """All samples after this task's view [N, ...], computed in chunks, since a view may need memory for floats."""
        return (
            self.x
            if self.view is None
            else torch.cat([self.transformed(part) for part in self.x.split(IMAGES_AS_FLOATS)])
        )

    def to(self, device: str) -> Task:
        """Return the task on a device; data that would fill the device stays where it is, and batches are copied."""
        return moved([self], device)[0]


@dataclass(frozen=True)
class Chosen:
    """The training rows of each seed, as they were when a model was saved; there are no test rows."""

    rows: Mapping[int, np.ndarray]

    def __call__(self, seed: int) -> tuple[np.ndarray, np.ndarray]:
        """Training rows of a seed, those of the first if this seed did not train, and no test rows."""
        return self.rows.get(seed, next(iter(self.rows.values()))), np.empty(0, np.int64)

    def everything(self) -> np.ndarray:
        """The rows of all seeds."""
        return np.unique(np.concatenate(list(self.rows.values())))


@dataclass(frozen=True)
class Together:
    """The splits of several tasks as one, each with the offset of its rows."""

    parts: tuple[tuple[Split | Chosen | Together, int], ...]

    def __call__(self, seed: int) -> tuple[np.ndarray, np.ndarray]:
        """Training and test rows of a seed, task by task."""
        train, test = zip(*([rows + first for rows in split(seed)] for split, first in self.parts), strict=True)
        return np.concatenate(train), np.concatenate(test)

    def everything(self) -> np.ndarray:
        """All rows, whatever part they are in for some seed."""
        return np.concatenate([split.everything() + first for split, first in self.parts])


def merge(tasks: Sequence[Task]) -> Task:
    """Merge tasks into one, for a learner that may see everything; its y numbers the outputs of all heads."""
    one_pool = all(task.x is tasks[0].x and task.view is None for task in tasks)
    x = tasks[0].x if one_pool else torch.cat([task.everything() for task in tasks])
    firsts = [0 if one_pool else sum(len(task.x) for task in tasks[:i]) for i in range(len(tasks))]
    widths = {task.head: task.width for task in tasks}
    y = torch.full((len(x),), -1, device=tasks[0].y.device)
    for task, first in zip(tasks, firsts, strict=True):
        rows = task.split.everything()
        outputs = torch.tensor(task.outputs, device=y.device)
        y[rows + first] = outputs[task.y[rows]] + sum(width for head, width in widths.items() if head < task.head)
    split = Together(tuple(zip((task.split for task in tasks), firsts, strict=True)))
    labels = tuple(label for task in tasks for label in task.labels)
    total = sum(widths.values())
    return replace(tasks[-1], labels=labels, x=x, y=y, split=split, outputs=tuple(range(total)), width=total, view=None)


def moved(tasks: Sequence[Task], device: str) -> list[Task]:
    """Return the tasks on a device; shared data is moved once, and data that would fill the device is not moved."""
    pools = {id(task.x): task.x for task in tasks}
    if device == "cpu" or _fits(sum(x.nbytes for x in pools.values() if x.device.type != device)):
        pools = {key: x.to(device) for key, x in pools.items()}
    labels = {id(task.y): task.y.to(device) for task in tasks}
    views = {id(task.view): task.view and task.view.to(device) for task in tasks}
    return [replace(t, x=pools[id(t.x)], y=labels[id(t.y)], view=views[id(t.view)]) for t in tasks]


def _fits(size: int) -> bool:
    """Whether `size` bytes leave at least half of the free GPU memory to the networks."""
    return size < torch.cuda.mem_get_info()[0] // 2
