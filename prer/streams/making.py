"""Make tasks from a pool of samples and the tasks before: which head predicts, and which outputs it has."""

# N samples

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import torch
from torch import Tensor

from prer.errors import InputError
from prer.streams.pool import Pool, check_parts
from prer.streams.task import Label, Scenario, Split, Task


def lesson_of(
    pool: Pool,
    earlier: Sequence[Task],
    scenario: Scenario,
    *,
    validation: float = 0.0,
    balance: bool = False,
    task: int | None = None,
) -> Task:
    """Make the task that a model learns next. Nothing is held out unless it is asked, or a test part is given.

    Args:
        pool: the samples.
        earlier: the tasks that the model has learned; their data is not needed.
        scenario: what is asked at test time.
        validation: share of every class that is held out, to be tested on.
        balance: repeat samples of small classes until every class has as many as the largest.
        task: number of a learned task, from 1, whose head learns more; by default the first one that knows the labels.
    """
    if not 0 <= validation < 1:
        raise InputError(f"validation={validation:g}: the share to hold out must be at least 0 and less than 1")
    small = next((label for label in pool.order if validation and len(pool.rows[label]) < 2), None)
    if small is not None:
        raise InputError(f"class {small!r} has only one sample, so none can be held out; leave out validation")
    owner = _asked(earlier, pool.order, scenario, task)
    if scenario == "domain" and earlier and _owner(earlier[:1], pool.order) is None:
        new = next(label for label in pool.order if label not in earlier[0].labels)
        raise InputError(f"class {new!r} is new, but all domains have the same classes; use scenario='class'")
    pool = pool if pool.held is not None else pool._replace(held=np.zeros(len(pool.x), bool))
    first = sum(len(known.labels) for known in earlier)
    made = task_of(pool, places_in(pool, [pool.order]), pool.order, earlier, first, scenario, owner, tested=False)
    label, known = pool.order[0], earlier[0].labels[0] if earlier else pool.order[0]
    if isinstance(label, str) != isinstance(known, str):  # an array of answers has one type, and 1 would become "1"
        raise InputError(
            f"label {label!r} follows label {known!r} of an earlier task; use numbers or text in all tasks"
        )
    assert isinstance(made.split, Split)
    return replace(made, split=replace(made.split, validation=validation, balance=balance))


def _asked(earlier: Sequence[Task], labels: Sequence[Label], scenario: Scenario, task: int | None) -> Task | None:
    """The learned task of this number, whose head must know all labels; None if no number is given."""
    if task is None:
        return None
    if scenario != "task":
        raise InputError(f"task={task} has no meaning in scenario={scenario!r}, which has one head; leave it out")
    if task not in range(1, len(earlier) + 1):
        raise InputError(f"task {task!r} does not exist; give 1 to {len(earlier)}, or leave it out for a new task")
    unknown = next((label for label in labels if label not in earlier[task - 1].labels), None)
    if unknown is not None:
        raise InputError(f"task {task} does not know class {unknown!r}; leave out task, and a new one is made")
    return earlier[task - 1]


def places_in(pool: Pool, groups: Sequence[Sequence[Label]]) -> Tensor:
    """Index of each sample's label in its group [N]; -1 if no group has it."""
    y = np.full(len(pool.x), -1)
    for group in groups:
        for place, label in enumerate(group):
            y[pool.rows[label]] = place
    return torch.from_numpy(y)


def task_of(
    pool: Pool,
    y: Tensor,
    labels: Sequence[Label],
    earlier: Sequence[Task],
    first: int,
    scenario: Scenario,
    owner: Task | None = None,
    tested: bool = True,
) -> Task:
    """Make the next task.

    Args:
        pool: the samples.
        y: index of each sample's label in `labels`.
        labels: the classes of the task.
        earlier: the tasks before.
        first: number of the first class.
        scenario: what is asked at test time.
        owner: the task whose head predicts; by default the first one that knows all labels.
        tested: whether every class needs test samples.
    """
    check_parts(pool, labels, tested)
    owner = owner or (earlier[-1] if earlier and scenario == "class" else _owner(earlier, labels))
    if len(labels) < (2 if owner is None and scenario != "class" else 1):
        few = f"one class, {labels[0]!r}; at least two are needed, or scenario='class'" if labels else "no class"
        raise InputError(f"task {len(earlier) + 1} has {few}")
    if owner is None or scenario == "class":  # otherwise the owner knows all labels, and there may be many tasks
        _check_types(labels, earlier)
    head = 1 + max((task.head for task in earlier), default=-1) if owner is None else owner.head
    known = earlier if scenario == "class" else [] if owner is None else [owner]
    places = {label: place for task in known for label, place in _places_of(task).items()}
    for label in labels:
        places.setdefault(label, len(places))
    split = Split(tuple(pool.rows[label] for label in labels), first, pool.held, pool.share)
    outputs = tuple(places[label] for label in labels)
    about = {"head": head, "outputs": outputs, "width": len(places), "scenario": scenario, "reading": pool.reading}
    return Task(len(earlier), tuple(labels), pool.x, y, split, **about)


def _check_types(labels: Sequence[Label], earlier: Sequence[Task]) -> None:
    """Refuse a label that is a number in one task and text in another, as 1 and "1"."""
    known = {str(label): label for task in earlier for label in task.labels}
    for label in labels:
        if known.get(str(label), label) != label:
            other = known[str(label)]
            raise InputError(f"label {label!r} was {other!r} in an earlier task; use numbers or text in all tasks")


def _owner(earlier: Sequence[Task], labels: Sequence[Label]) -> Task | None:
    """The first task whose head knows all these labels."""
    return next((task for task in earlier if set(labels) <= set(task.labels)), None)


def _places_of(task: Task) -> dict[Label, int]:
    """The head's output index of each label of a task."""
    return dict(zip(task.labels, task.outputs, strict=True))
