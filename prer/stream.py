"""Tasks in order, made from arrays. One copy of the data serves all seeds; a split is a list of rows."""

# S seeds, N samples in all, n training samples of a task, C channels, H and W image

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import torch
from torch import Tensor

from prer.address import Address
from prer.data.arrays import as_pair
from prer.errors import InputError


@dataclass(frozen=True)
class Task:
    """One batch of data that arrives together.

    Attributes:
        index: its place in the stream.
        classes: the ids of its classes; ids are numbered in the order of arrival.
        labels: the same classes by the names the user gave them.
        x: samples [N, C, H, W] or [N, features], shared by all tasks of a stream.
        y: the class id of every sample [N].
        rows: which samples are this task's, class by class.
        given_test: which samples the given test part holds [N]; None asks for a split of our own.
        test_share: the share of every class that a split of our own keeps for testing.
    """

    index: int
    classes: range
    labels: tuple[str | int, ...]
    x: Tensor = field(repr=False)
    y: Tensor = field(repr=False)
    rows: tuple[np.ndarray, ...] = field(repr=False)
    given_test: np.ndarray | None = field(repr=False)
    test_share: float

    def train(self, seeds: Sequence[int]) -> Tensor:
        """Rows to learn from [S, n]."""
        return torch.stack([torch.from_numpy(self._split(seed)[0]) for seed in seeds]).to(self.x.device)

    def test(self, seeds: Sequence[int]) -> Tensor:
        """Rows to be tested on [S, m]."""
        return torch.stack([torch.from_numpy(self._split(seed)[1]) for seed in seeds]).to(self.x.device)

    def _split(self, seed: int) -> tuple[np.ndarray, np.ndarray]:
        train, test = [], []
        for class_id, rows in zip(self.classes, self.rows, strict=True):
            if self.given_test is not None:
                held = self.given_test[rows]
                train.append(rows[~held])
                test.append(rows[held])
                continue
            order = (Address((seed,)) / "split" / class_id).permutation(len(rows))[0].numpy()
            kept = min(max(round(self.test_share * len(rows)), 1), len(rows) - 1)
            test.append(rows[order[:kept]])
            train.append(rows[order[kept:]])
        return np.concatenate(train), np.concatenate(test)


@dataclass(frozen=True)
class Stream:
    """Tasks in order.

    Example:
        >>> x, y = np.random.rand(60, 20), np.repeat(["ant", "bee", "cat", "dog"], 15)
        >>> stream = Stream.split(x, y, classes_per_task=2)
        >>> [task.labels for task in stream]
        [('ant', 'bee'), ('cat', 'dog')]
    """

    tasks: tuple[Task, ...]
    name: str = "arrays"

    @classmethod
    def split(
        cls,
        x: np.ndarray | Tensor,
        y: np.ndarray | Tensor | Sequence,
        *,
        classes_per_task: int = 2,
        tasks: Sequence[Sequence[str | int]] | None = None,
        test: tuple[np.ndarray | Tensor, np.ndarray | Tensor | Sequence] | None = None,
        resplit: float | None = None,
        name: str = "arrays",
    ) -> Stream:
        """Classes in the order of their labels, so many for each task; the last may have fewer, but two at least.

        Args:
            x: images (N, H, W) or (N, H, W, C), as uint8 or as floats in [0, 1]; or vectors (N, features).
            y: one label for each sample: numbers from 0 up, or strings.
            classes_per_task: how many classes a task brings.
            tasks: the labels each task brings, where they are to be chosen; labels not named are left out.
            test: a given test part (x, y).
            resplit: test share of a balanced split per seed over all the data; None uses the given test part, or
                0.2 where there is none.
            name: what results call this data.
        """
        samples, labels = as_pair(x, y)
        held = None
        if test is not None:
            more, more_labels = as_pair(*test)
            if more.shape[1:] != samples.shape[1:] or more.dtype != samples.dtype:
                raise InputError("the test part has other shapes or types than the training part; make them alike")
            if labels.dtype.kind != more_labels.dtype.kind:
                raise InputError("the labels of one part are numbers and of the other strings; make them alike")
            held = np.arange(len(samples) + len(more)) >= len(samples)
            samples, labels = torch.cat([samples, more]), np.concatenate([labels, more_labels])
        held, share = (held, 0.2) if resplit is None else (None, resplit)
        if not 0 < share < 1:
            raise InputError(f"resplit={share:g}: the test share must lie between 0 and 1")
        groups = _groups(np.unique(labels).tolist(), classes_per_task, tasks)
        order = [label for group in groups for label in group]
        _check_parts(labels, order, held)
        y_ids = np.full(len(labels), -1)
        for class_id, label in enumerate(order):
            y_ids[labels == label] = class_id
        made, ids = [], torch.from_numpy(y_ids)
        for index, group in enumerate(groups):
            first = sum(map(len, groups[:index]))
            classes = range(first, first + len(group))
            rows = tuple(np.flatnonzero(y_ids == c) for c in classes)
            made.append(Task(index, classes, tuple(group), samples, ids, rows, held, share))
        return cls(tuple(made), name)

    def __iter__(self) -> Iterator[Task]:
        """The tasks, in order."""
        return iter(self.tasks)

    def __len__(self) -> int:
        """The number of tasks."""
        return len(self.tasks)

    def __getitem__(self, index: int) -> Task:
        """One task."""
        return self.tasks[index]

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of one sample: (C, H, W) or (features,)."""
        return tuple(self.tasks[0].x.shape[1:])

    @property
    def sha256(self) -> str:
        """A checksum of the data, so that a result can be traced to it."""
        sha = hashlib.sha256()
        for tensor in (self.tasks[0].x, self.tasks[0].y):
            sha.update(f"{tensor.dtype} {tuple(tensor.shape)}".encode())
            sha.update(tensor.cpu().numpy().data)  # in place: a copy would double the data for a moment
        return sha.hexdigest()

    def to(self, device: str) -> Stream:
        """The same stream with its one copy of the data on a device."""
        x, y = self.tasks[0].x.to(device), self.tasks[0].y.to(device)
        return replace(self, tasks=tuple(replace(task, x=x, y=y) for task in self.tasks))


def merge(tasks: Sequence[Task]) -> Task:
    """Several tasks of one stream as one task, for a learner that may see everything."""
    classes = range(tasks[0].classes.start, tasks[-1].classes.stop)
    labels = tuple(label for task in tasks for label in task.labels)
    return replace(tasks[-1], classes=classes, labels=labels, rows=tuple(r for task in tasks for r in task.rows))


def _groups(names: list, per_task: int, tasks: Sequence[Sequence] | None) -> list[list]:
    """The labels each task brings."""
    if tasks is None:
        if per_task < 2:
            raise InputError(f"classes_per_task={per_task}: a task needs two classes at least")
        tasks = [names[i : i + per_task] for i in range(0, len(names), per_task)]
    groups = [list(group) for group in tasks]
    if not groups:
        raise InputError("there are no tasks; name the labels of one at least")
    seen: set = set()
    for index, group in enumerate(groups):
        if len(group) < 2:
            fits = [k for k in range(2, len(names) + 1) if len(names) % k != 1]
            hint = f"; with classes_per_task take one of {', '.join(map(str, fits[:6]))}" if fits else ""
            few = f"one class, {group[0]!r}" if group else "no class"
            raise InputError(f"task {index + 1} has {few}: there is nothing to tell apart{hint}")
        for label in group:
            if label not in names:
                raise InputError(f"task {index + 1} asks for class {label!r}, which no sample has")
            if label in seen:
                raise InputError(f"class {label!r} is in two tasks; in a split stream a class belongs to one")
            seen.add(label)
    return groups


def _check_parts(labels: np.ndarray, names: Sequence, held: np.ndarray | None) -> None:
    """Every class has something to learn from and something to be tested on."""
    for name in names:
        of_class = labels == name
        if held is None and of_class.sum() < 2:
            raise InputError(
                f"class {name!r} has one sample; two are needed, one to learn from and one to be tested on"
            )
        for part, where in () if held is None else ((~held, "training"), (held, "test")):
            if not (of_class & part).any():
                raise InputError(f"class {name!r} has no sample in the {where} part; set stream.resplit, 0.2 say")
