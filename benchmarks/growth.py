"""Time of a step and size of the memory after each task; the tenth and the hundredth task are compared in turns."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, NamedTuple

from prer.bench.clock import Turn, alternate, ratio
from prer.bench.ready import Ready, learned, pictures
from prer.bench.table import milliseconds, new_table, ratio_text
from prer.learners import LEARNERS
from prer.learners.base import Learner
from prer.streams.stream import Stream
from prer.terminal.console import whole

SETTINGS: dict[str, Any] = {"batch": 32, "epochs": 2}
OWN: dict[str, dict[str, Any]] = {
    "prer": {"epochs_autoencoder": 2, "density": {"epochs": 2, "blocks": 4}, "embedding": 32},
    "dgr": {"epochs_generator": 2},
    "replay": {"size": 200},
    "der": {"size": 200},
    "ewc": {"samples": 32},  # for the Fisher information, which is not part of a step
} | {name: {"size": 16} for name in ("gem", "agem", "er", "lwf")}


SERIES = ("milliseconds", "seconds of the task", "memory floats", "transient floats", "floats in all")


class Size(NamedTuple):
    """How much is measured."""

    learners: tuple[str, ...]
    early: int  # the task that is compared with the last
    tasks: int
    samples: int  # of a task
    repeats: int


EVERY = tuple(
    name for name in LEARNERS if name not in ("joint", "gem")
)  # joint retrains on all data, and gem grows by design
# Many steps in an epoch: with few, random numbers drawn once per epoch would look like growth.
FULL = Size(EVERY, 10, 100, 512, 15)
QUICK = Size(("naive", "prer"), 6, 12, 64, 3)


def compare(size: Size, device: str = "cpu", say: Callable[[str], object] = str) -> dict[str, Any]:
    """Measure every learner on a stream of many tasks of 8x8 images."""
    stream, results = pictures(size.tasks, size.samples, 8).to(device), {}
    for name in size.learners:
        say(f"{size.tasks} tasks of {name}")
        results[name] = of_learner(LEARNERS[name](**SETTINGS | OWN.get(name, {})), stream, size, device)
    return results


def of_learner(learner: Learner, stream: Stream, size: Size, device: str) -> dict[str, Any]:
    """Milliseconds of a step and floats of one seed after each task, and the last task against an early one."""
    series: dict[str, list] = {key: [] for key in SERIES}
    turns: dict[str, Turn] = {}
    learner.start(stream.shape, (0,), device)
    for number, task in enumerate(stream, 1):
        if number in (size.early, size.tasks):
            turns[f"task {number}"] = Ready(learner, task).turn
        begin = time.perf_counter()
        series["milliseconds"].append(1e3 * learned(learner, task, whole=True))
        series["seconds of the task"].append(time.perf_counter() - begin)
        series["memory floats"].append(learner.memory_size().floats)
        series["transient floats"].append(learner.transient_floats_)
        series["floats in all"].append(sum(t[0].numel() for t in learner.state().values()))
    times = alternate(turns, size.repeats)
    early, late = times.values()
    return series | {
        "in turn": {name: [1e3 * t for t in row] for name, row in times.items()},
        f"task {size.tasks} over task {size.early}": ratio(late, early),
        "floats of a head": sum(p[0].numel() for p in learner.head_.parameters()),
    }


SHOWN = (1, 2, 5, 10, 20, 50, 100)  # tasks


def show(console, results):
    """The table."""
    whole(console, grown(results))


def grown(results):
    """Milliseconds of a step and floats kept, task after task, and the last task over an early one."""
    tasks = len(next(iter(results.values()))["milliseconds"])
    shown, late = [t for t in SHOWN if t <= tasks], next(k for k in next(iter(results.values())) if " over " in k)
    table = new_table(
        "Task after task, 8x8 images, one seed", ["", *(f"task {t}, ms" for t in shown), late, "floats kept"]
    )
    for name, found in results.items():
        times = (milliseconds(found["milliseconds"][t - 1]) for t in shown)
        floats = found["memory floats"]
        table.add_row(name, *times, ratio_text(found[late]), f"{floats[0]:,} to {floats[-1]:,}")
    return table
