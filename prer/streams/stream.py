"""Tasks in order. One copy of the data serves all seeds and all tasks; a split is a list of rows."""

# S seeds, N samples in all, n training samples of a task, B batch, C channels, H and W image

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from prer.address import Address
from prer.data.arrays import Data
from prer.data.reading import Missing, Reading
from prer.errors import InputError
from prer.streams.making import places_in, task_of
from prer.streams.pool import Pool, as_pool, check_parts
from prer.streams.task import Label, Scenario, Split, Task, moved
from prer.streams.transforms import Moves, Permuted, Rotated, View


@dataclass(frozen=True, eq=False)
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
        x: Any,
        y: Any = None,
        *,
        classes_per_task: int = 2,
        tasks: Sequence[Sequence[Label]] | None = None,
        order: Sequence[Label] | None = None,
        shuffle: int | None = None,
        scenario: Scenario = "task",
        test: Any = None,
        resplit: float | None = None,
        missing: Missing = "error",
        name: str = "arrays",
    ) -> Stream:
        """Divide the classes into tasks, in the order of their labels; the last may have fewer.

        Args:
            x: images (N, H, W) or (N, H, W, C), as uint8 or as floats in [0, 1]; or vectors (N, features). Also a
                torch `Dataset` of pairs, rows such as Hugging Face's, or a pandas frame.
            y: one label for each sample, numbers from 0 up or strings; for rows or a frame, the label's name.
            classes_per_task: number of classes in each task; at least two, but one will do in the scenario "class".
            tasks: the labels of each task, to choose them; labels not named are left out.
            order: the labels in the order in which they arrive; labels not named are left out.
            shuffle: seed to shuffle the order of the labels.
            scenario: "task" tests each task with its own head; "class" does not tell the task, and one head grows.
            test: a given test part, as (x, y) or in the form of x.
            resplit: test share of a balanced split per seed over all the data; None uses the given test part, or
                0.2 if there is none.
            missing: "error", or "median" to fill missing numbers of frames and vectors by the median of their column.
            name: name of the data in results.
        """
        check_scenario(scenario)
        pool = as_pool(x, y, test, resplit, missing)
        names = [_as_label(label) for label in (pool.order if order is None else order)]
        if shuffle is not None and shuffle is not False:
            drawn = (Address((int(shuffle),)) / "classes").permutation(len(names))[0]
            names = [names[i] for i in drawn.tolist()]
        groups = _groups(pool, names, classes_per_task, tasks, scenario)
        y, made = places_in(pool, groups), []
        for group in groups:
            made.append(task_of(pool, y, group, made, sum(len(task.labels) for task in made), scenario))
        return cls(tuple(made), name)

    @classmethod
    def permuted(
        cls,
        x: Any,
        y: Any = None,
        *,
        tasks: int = 10,
        seed: int = 0,
        test: Any = None,
        resplit: float | None = None,
        missing: Missing = "error",
        name: str = "arrays",
    ) -> Stream:
        """All classes in every task, with one head; from the second task on, each task permutes the pixels.

        Args:
            x: as in `split`.
            y: as in `split`.
            tasks: number of tasks.
            seed: seed of the random permutations.
            test: as in `split`.
            resplit: as in `split`.
            missing: as in `split`.
            name: as in `split`.
        """
        pool = as_pool(x, y, test, resplit, missing)
        _check_count(tasks)
        shape, address = tuple(pool.x.shape[1:]), Address((seed,)) / "pixels"
        views = [Permuted.drawn(shape, address / t) for t in range(1, tasks)]
        return cls(_seen_through(pool, [None, *views]), name)

    @classmethod
    def rotated(
        cls,
        x: Any,
        y: Any = None,
        *,
        tasks: int = 10,
        degrees: float = 180.0,
        test: Any = None,
        resplit: float | None = None,
        name: str = "arrays",
    ) -> Stream:
        """All classes in every task, with one head; the images rotate in equal steps from 0 to `degrees`."""
        pool = as_pool(x, y, test, resplit)
        if pool.x.dim() == 2:
            raise InputError("only images can be rotated, and these are vectors; permute them instead")
        _check_count(tasks)
        if not math.isfinite(degrees):
            raise InputError(f"degrees={degrees}: expected a finite number")
        views = [Rotated(degrees * t / (tasks - 1)) for t in range(1, tasks)]
        return cls(_seen_through(pool, [None, *views]), name)

    @classmethod
    def of(
        cls,
        sources: Iterable[Any],
        *,
        scenario: Scenario = "task",
        resplit: float | None = None,
        missing: Missing = "error",
        name: str = "arrays",
    ) -> Stream:
        """One task for each (x, y), or (x, y, x_test, y_test); see `arriving`.

        Example:
            >>> day = lambda: (np.random.rand(30, 4), np.repeat(["cat", "dog"], 15))
            >>> stream = Stream.of([day(), day()])
            >>> [task.head for task in stream]  # the second brings more of known classes: the head goes on
            [0, 0]
        """
        tasks = tuple(arriving(sources, scenario=scenario, resplit=resplit, missing=missing))
        if not tasks:
            raise InputError("there are no tasks; give at least one (x, y)")
        return cls(tasks, name)

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
    def reading(self) -> Reading:
        """How the samples were read; this is the same for all tasks of a stream."""
        return self.tasks[0].reading

    @property
    def sha256(self) -> str:
        """A checksum of the data, so that a result can be traced to it."""
        sha, seen = hashlib.sha256(), set()
        for task in self.tasks:
            if id(task.x) not in seen:
                seen.add(id(task.x))
                sha.update(f"{task.x.dtype} {tuple(task.x.shape)}".encode())
                sha.update(task.x.cpu().numpy().data)  # in place: a copy would double the data for a moment
            split = _split(task)
            for label, rows in zip(task.labels, split.rows, strict=True):
                sha.update(repr(label).encode())
                sha.update(rows.data)
            if split.held is not None:
                sha.update(split.held.data)
        return sha.hexdigest()

    def to(self, device: str) -> Stream:
        """Return the stream with its data on a device, if the data fits there."""
        return replace(self, tasks=tuple(moved(self.tasks, device)))

    def validated(self, share: float) -> Stream:
        """Return the stream with this share of the training part as its test part; the real test part is not used.

        A search for settings must not see the data that they are tested on later.
        """
        splits = {id(task.split): task for task in self.tasks}  # tasks that differ only in their views share a split
        for task in splits.values():
            if min(np.bincount(task.y[task.train_rows([0])[0]])) < 2:
                raise InputError(
                    f"task {task.index + 1} has a class with one training sample, so none can be held out; "
                    "add samples, or leave out stream.validation"
                )
        held_out = {key: replace(_split(task), validation=share) for key, task in splits.items()}
        return replace(self, tasks=tuple(replace(task, split=held_out[id(task.split)]) for task in self.tasks))

    def balanced(self) -> Stream:
        """Return the stream with training samples of small classes repeated, so that a task has as many of each."""
        splits = {id(task.split): replace(_split(task), balance=True) for task in self.tasks}
        return replace(self, tasks=tuple(replace(task, split=splits[id(task.split)]) for task in self.tasks))

    def augmented(self, *, crop: int = 0, flip: bool = False) -> Stream:
        """Return the stream with random crops and flips of its images in training.

        Args:
            crop: maximum shift of an image in each direction, in pixels.
            flip: mirror images with probability 1/2.
        """
        if len(self.shape) == 1:
            raise InputError("only images can be cropped and flipped, and these are vectors; leave out crop and flip")
        if not 0 <= crop < min(self.shape[1:]):
            raise InputError(
                f"crop={crop}: must be at least 0 and less than the {min(self.shape[1:])} pixels of an image"
            )
        return replace(self, tasks=tuple(replace(task, moves=Moves(crop, flip)) for task in self.tasks))


def _split(task: Task) -> Split:
    assert isinstance(
        task.split, Split
    )  # only merged tasks have another kind of split, and they are never part of a stream
    return task.split


def arriving(
    sources: Iterable[Any],
    *,
    scenario: Scenario = "task",
    resplit: float | None = None,
    missing: Missing = "error",
) -> Iterator[Task]:
    """Yield tasks as they arrive, each from (x, y) or (x, y, x_test, y_test); their number and classes may be unknown.

    They may differ in size and in classes. In the scenario "task", if one head knows all classes of a task, the task
    brings more data for them, or another domain, and uses that head; any other task gets a new head. In the scenario
    "class" there is one head, which grows by the classes that are new; a task may bring a single class.

    Args:
        sources: any iterable, a generator for instance.
        scenario: "task" or "class", as in `Stream.split`.
        resplit: as in `Stream.split`.
        missing: as in `Stream.split`; later tasks are filled by the medians of the first.
    """
    check_scenario(scenario)
    seen: list[Task] = []
    for source in sources:
        parts = source if isinstance(source, tuple) and not isinstance(source, Data) else (source, None)
        if len(parts) not in (2, 4):
            raise InputError(f"task {len(seen) + 1}: give (x, y) or (x, y, x_test, y_test)")
        test = (parts[2], parts[3]) if len(parts) == 4 else None
        pool = as_pool(parts[0], parts[1], test, resplit, missing, seen[0].reading if seen else None)
        if not isinstance(source, Data) and getattr(getattr(parts[0], "flags", None), "writeable", True):
            pool = pool._replace(x=pool.x.clone())  # the caller may reuse the same array for the next task
        if seen and pool.reading.columns:
            pool = pool._replace(x=seen[0].reading.arranged(pool.x, pool.reading))
        if seen and (pool.x.shape[1:] != seen[0].x.shape[1:] or pool.x.dtype != seen[0].x.dtype):
            raise InputError(
                f"task {len(seen) + 1} differs from the first task in the shape or type of its samples; convert them"
            )
        y, first = places_in(pool, [pool.order]), sum(len(task.labels) for task in seen)
        seen.append(task_of(pool, y, pool.order, seen, first, scenario))
        yield seen[-1]


def check_scenario(scenario: str) -> None:
    """Raise an error unless this is a scenario that a user may ask for."""
    if scenario not in ("task", "class"):
        raise InputError(f"scenario={scenario!r}: choose one of task, class")


def _seen_through(pool: Pool, views: Sequence[View | None]) -> tuple[Task, ...]:
    """Make a task for each view of one pool; all tasks share one split."""
    y, made = places_in(pool, [pool.order]), []
    for view in views:
        task = task_of(pool, y, pool.order, made, 0, "domain")
        made.append(replace(task, view=view, split=made[0].split if made else task.split))
    return tuple(made)


def _groups(
    pool: Pool,
    order: Sequence[Label],
    per_task: int,
    tasks: Sequence[Sequence[Label]] | None,
    scenario: Scenario,
) -> list[list[Label]]:
    """The labels of each task."""
    groups = [[_as_label(label) for label in group] for group in tasks] if tasks is not None else [list(order)]
    if not groups:
        raise InputError("there are no tasks; name the labels of at least one")
    seen: set[Label] = set()
    for label in (label for group in groups for label in group):
        if label not in pool.rows:
            raise InputError(f"class {label!r} is requested, but no sample has this label")
        if label in seen:
            raise InputError(f"class {label!r} is named twice; in a split stream a class belongs to one task")
        seen.add(label)
        check_parts(pool, [label])
    return _cut(order, per_task, 1 if scenario == "class" else 2) if tasks is None else groups


def _cut(order: Sequence[Label], per_task: int, least: int) -> list[list[Label]]:
    """Divide the labels into groups of `per_task`; the last may have fewer, but not fewer than `least`."""
    if per_task < least:
        need = "a task needs at least two classes, or scenario='class'" if least == 2 else "take 1 or more"
        raise InputError(f"classes_per_task={per_task}: {need}")
    if len(order) % per_task == 1 < least and len(order) > 1:
        fits = ", ".join(str(k) for k in range(2, min(len(order), 9) + 1) if len(order) % k != 1)
        last = f"task {len(order) // per_task + 1} has one class, {order[-1]!r}"
        raise InputError(f"{last}; at least two are needed: set classes_per_task to one of {fits}")
    return [list(order[i : i + per_task]) for i in range(0, len(order), per_task)]


def _as_label(label: Any) -> Label:
    """Convert a NumPy or torch scalar to a Python label."""
    return label.item() if hasattr(label, "item") else label


def _check_count(tasks: int) -> None:
    if tasks < 1:
        raise InputError(f"tasks={tasks}: must be at least 1")
