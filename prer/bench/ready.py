"""A learner that is ready to learn a task, as often as one likes, and the data that it learns."""

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
    """Two classes a task, each with bright pixels of its own; so many samples of a task are to be learned from."""
    rng, each = np.random.default_rng(0), per_task // 2
    patterns = rng.integers(0, 2, (2 * tasks, side, side), np.uint8) * np.uint8(180)
    y = np.repeat(np.arange(2 * tasks), each + 2)
    x = patterns[y] + rng.integers(0, 75, (len(y), side, side), np.uint8)
    test = np.arange(len(y)) % (each + 2) >= each
    return Stream.split(x[~test], y[~test], test=(x[test], y[test]), name="made up")


class Ready:
    """A learner as it is now, and a task. Every turn learns it on a copy, so that no turn changes another."""

    def __init__(self, learner: Learner, task: Task) -> None:
        self.learner, self.task = copy.deepcopy(learner), task

    def turn(self) -> float:
        """Learn the task and say how many seconds a step took, all phases together."""
        return learned(copy.deepcopy(self.learner), self.task)


def after(past: int, learner: Learner, stream: Stream, seeds: int = 1, device: str = "cpu") -> Ready:
    """A learner that has learned so many tasks of a stream, and the next one."""
    tasks = list(stream.to(device))
    learner.start(stream.shape, tuple(range(seeds)), device)
    for task in tasks[:past]:
        learner.learn(task)
    return Ready(learner, tasks[past])


def learned(learner: Learner, task: Task, whole: bool = False) -> float:
    """Seconds of a step while a task is learned; unless `whole`, nothing is remembered of it afterwards."""
    seconds: dict[str, list[float]] = defaultdict(list)

    def observe(event: dict[str, Any]) -> None:
        if event["event"] == "epoch":
            seconds[event["phase"]].append(event["seconds"])

    learner.observe_ = observe
    if not whole:
        learner.after_task = lambda task: None  # EWC's takes longer than what is measured
    learner.learn(task)
    # A first epoch has the optimiser make its state, and on a GPU the step is captured in it.
    return sum(statistics.median(of_phase[1:]) for of_phase in seconds.values()) / steps_of(learner, task)


def steps_of(learner: Learner, task: Task) -> int:
    """The steps of an epoch."""
    n = task.train_rows(learner.address_.seeds[:1]).shape[1]
    return n // batch_of(learner.batch, n)
