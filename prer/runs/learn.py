"""The loop over the tasks of a stream."""

# S seeds, M tasks

from __future__ import annotations

import copy
import time
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from prer.address import as_device, as_seeds
from prer.errors import InputError
from prer.learners.base import Learner
from prer.models.model import Model, digest_of
from prer.presets.auto import too_few_steps
from prer.runs.autosave import Autosave
from prer.runs.result import KEPT, Measurements, Result, classes_of, confusion_of, tested
from prer.streams.stream import Stream
from prer.streams.task import Task
from prer.training.computing import computing
from prer.training.fading import Health
from prer.training.loop import Observer


def learn(
    stream: Iterable[Task],
    learner: Learner,
    *,
    seeds: int | Sequence[int] = 5,
    device: str = "auto",
    observe: Observer | None = None,
    autosave: Autosave | None = None,
    warned: bool = False,
) -> Result:
    """Learn the tasks of a stream one after another, all seeds together, testing every task seen after each.

    It computes with one thread, unless OMP_NUM_THREADS is set, and leaves torch's settings as they were.

    Args:
        stream: the tasks; a `Stream`, or tasks that are not known in advance (`prer.arriving`).
        learner: what learns them; it starts from scratch, or from the autosave's checkpoint.
        seeds: the number of seeds (0, 1, ...), or the seeds themselves.
        device: "cpu", "cuda" or "auto".
        observe: called with a dictionary for every epoch, task and health event.
        autosave: saves checkpoints during training, and resumes from them.
        warned: whether the user already knows that tasks are too small for the settings; else a warning is issued.

    Example:
        >>> from prer import Naive
        >>> x, y = np.random.default_rng(0).normal(size=(80, 4)), np.repeat(["a", "b", "c", "d"], 20)
        >>> result = learn(Stream.split(x, y), Naive(epochs=1), seeds=2, device="cpu")
        >>> result.matrix.shape
        (2, 2, 2)
    """
    seeds, device = as_seeds(seeds), as_device(device)
    with computing(device):
        return learn_tasks(stream, learner, seeds, device, observe, autosave, warned)


def learn_tasks(
    stream: Iterable[Task],
    learner: Learner,
    seeds: tuple[int, ...],
    device: str,
    observe: Observer | None,
    autosave: Autosave | None,
    warned: bool,
) -> Result:
    """Do what `learn` does without setting up torch; with an autosave, resume from its checkpoint."""
    begin, name = autosave.begin if autosave else time.perf_counter(), getattr(stream, "name", "arriving")
    met: list[Task] = []
    health = Health(observe)
    ledger, done = Measurements(), autosave.before.about["tasks"] if autosave and autosave.before else 0
    for task in stream.to(device) if isinstance(stream, Stream) else (task.to(device) for task in stream):
        if met and task.scenario != met[0].scenario:
            raise InputError(f"task {task.index + 1} has the scenario {task.scenario!r}, not {met[0].scenario!r}")
        if not met:
            learner.start(task.x.shape[1:], seeds, device, health)
        met.append(task)
        if len(met) <= done:
            continue  # learned before the checkpoint
        phases = learner.phases(*task.size)
        few = "" if warned else too_few_steps(phases, learner.batch, task.size[0])
        if few:
            warnings.warn(few, stacklevel=3)  # points at the caller of `learn`
            warned = True
        if autosave and autosave.before:
            ledger = Measurements.of(autosave.restore(learner, met[:-1])["ledger"], done, len(seeds))
        elif autosave:
            autosave.follow(learner, {"tasks": done, "ledger": ledger.copied(), "notes": copy.deepcopy(learner.notes_)})
            if done and not phases and autosave.pace.due():
                autosave.save()  # without epochs, a run can be resumed between tasks only
        ledger.untrained.append(np.full(len(seeds), np.nan))
        if task.scenario != "class" and task.head in learner.head_of_:  # test an existing head before it is trained
            ledger.foresee(tested(learner, task), tested(_beginner(learner, met), task))
        learner.learn(task)
        learner.loop_.trained, done = {}, len(met)
        learner.loop_.observe({"event": "task", "task": task.index} | ledger.test(learner, met))
    if not met:
        raise InputError("the stream has no tasks")
    if autosave and autosave.before:
        raise InputError(f"{autosave.checkpoint.path} has more tasks than the stream; delete it to start over")
    return _result(learner, met, ledger, name, begin, health)


def _result(
    learner: Learner, tasks: Sequence[Task], ledger: Measurements, name: str, begin: float, health: Health
) -> Result:
    """The result of a run that has learned these tasks."""
    matrix, scenario = ledger.matrix(), tasks[-1].scenario
    kept: dict[str, Any] = {key: getattr(ledger, key) for key in KEPT}
    return Result(
        learner.address_.seeds,
        matrix,
        np.stack(ledger.untrained, axis=1),
        scenario=scenario,
        classes=classes_of(tasks),
        matrix_task_given=ledger.matrix_task_given(),
        confusion=confusion_of(learner, tasks) if scenario == "class" else None,
        test_samples=[task.test_rows(learner.address_.seeds[:1]).shape[1] for task in tasks],
        **kept,
        seconds={**learner.loop_.seconds, "total": time.perf_counter() - begin},
        digest=digest_of(learner, matrix),
        state_digest=digest_of(learner),
        learner=learner.name,
        stream=name,
        device=learner.address_.device,
        learned=Model.learned(learner, tasks, health),
    )


def _beginner(learner: Learner, met: Sequence[Task]) -> Learner:
    """An untrained copy of the learner, with the same initial weights, since these depend on addresses alone."""
    beginner = replace(learner)
    beginner.start(met[0].x.shape[1:], learner.address_.seeds, learner.address_.device)
    for task in met:
        if task.head not in beginner.head_of_:
            beginner.meet(task)
    return beginner
