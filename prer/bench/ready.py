"""A learner that can learn the same task repeatedly, and the data that it learns."""

# S seeds

from __future__ import annotations

import copy
import statistics
from collections import defaultdict
from typing import Any

import numpy as np

from prer.learners.base import Learner
from prer.presets.auto import batch_of
from prer.streams.stream import Stream
from prer.streams.task import Task


def pictures(tasks: int, per_task: int, side: int) -> Stream:
    """A stream of made-up images: two classes a task, each with its own bright pixels; `per_task` training samples."""
    rng, each = np.random.default_rng(0), per_task // 2
    patterns = rng.integers(0, 2, (2 * tasks, side, side), np.uint8) * np.uint8(180)
    y = np.repeat(np.arange(2 * tasks), each + 2)
    x = patterns[y] + rng.integers(0, 75, (len(y), side, side), np.uint8)
    test = np.arange(len(y)) % (each + 2) >= each
    return Stream.split(x[~test], y[~test], test=(x[test], y[test]), name="made up")


class Ready:
    """A snapshot of a learner, and a task. Every turn trains a copy, so that turns do not affect each other."""

    def __init__(self, learner: Learner, task: Task) -> None:
        self.learner, self.task = copy.deepcopy(learner), task

    def turn(self) -> float:
        """Learn the task and return the seconds of a step, summed over phases."""
        return learned(copy.deepcopy(self.learner), self.task)


def after(past: int, learner: Learner, stream: Stream, seeds: int = 1, device: str = "cpu") -> Ready:
    """A learner that has learned the first `past` tasks of a stream, and the next task."""
    tasks = list(stream.to(device))
    learner.start(stream.shape, tuple(range(seeds)), device)
    for task in tasks[:past]:
        learner.learn(task)
    return Ready(learner, tasks[past])


def learned(learner: Learner, task: Task, whole: bool = False) -> float:
    """Learn a task and return the seconds of a step; unless `whole`, skip `after_task`."""
    seconds: dict[str, list[float]] = defaultdict(list)

    def observe(event: dict[str, Any]) -> None:
        if event["event"] == "epoch":
            seconds[event["phase"]].append(event["seconds"])

    learner.loop_.observe = observe
    if not whole:
        learner.after_task = lambda task: None  # EWC's takes longer than the steps measured
    learner.learn(task)
    # Skip the first epoch, which creates the optimiser's state and, on a GPU, captures the step.
    return sum(statistics.median(of_phase[1:]) for of_phase in seconds.values()) / steps_of(learner, task)


def steps_of(learner: Learner, task: Task) -> int:
    """Number of steps in an epoch."""
    n = task.train_rows(learner.address_.seeds[:1]).shape[1]
    return n // batch_of(learner.batch, n)
