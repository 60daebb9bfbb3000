"""What a person sees of a run: what it is about, a live line or a log while it goes, downloads, what to try next."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from rich.console import Console
from rich.filesize import decimal
from rich.live import Live
from rich.progress import BarColumn, DownloadColumn, Progress, TaskID, TextColumn, TimeRemainingColumn
from rich.progress import TransferSpeedColumn as SpeedColumn
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from prer.console import clock, say, warn
from prer.data.guard import shown
from prer.fading import Fading

if TYPE_CHECKING:
    from prer.stream import Stream


def next_steps(settings: Sequence[str], options: Sequence[str], out: Path, new: Callable[[Sequence[str]], bool]) -> str:
    """What to try next, with the data and seeds of this run, so that its results are shown beside.

    Args:
        settings: what the run was told.
        options: with what it was called beyond that.
        out: where its folder is.
        new: whether settings make an experiment, and one that has not been run.
    """
    tries = {
        (*_fitting(settings, "prer"), "learner.name=prer"): "PRER: old tasks are remembered, and no sample is kept",
        (*_fitting(settings, "naive"), "learner.name=naive"): "what is lost when nothing is done about forgetting",
        (*_fitting(settings, "joint"), "learner.name=joint"): "the upper reference: all data of all tasks at once",
        (*settings, "learner.density=gaussian"): "a Gaussian for each class instead of the flow",
    }
    steps = {shlex.join(["prer", "run", *words, *options]): what for words, what in tries.items() if new(words)}
    if not any(word.startswith("stream.data=") for word in settings):
        steps["prer run stream.data=PATH"] = "your own data: .npz, images, CSV"
    steps[f"prer show {shlex.quote(str(out))}/*"] = "all results, one line each"
    lines = [f"  {command}\n      {what}" for command, what in steps.items()]
    return "\n".join(["What to try next (from scripts/run: write scripts/run in place of prer):", *lines])


def _fitting(settings: Sequence[str], learner: str) -> list[str]:
    """The settings without those that this learner does not have."""
    from prer.learners import LEARNERS  # only here: who fetches data need not wait for torch

    own = {f"learner.{f.name}" for f in fields(LEARNERS[learner])}
    keys = [word.partition("=")[0].strip() for word in settings]
    return [word for key, word in zip(keys, settings, strict=True) if not key.startswith("learner.") or key in own]


def describe(stream: Stream) -> str:
    """What is about to be learned."""
    x, tasks = stream[0].x, [" ".join(shown(label, 20) for label in task.labels) for task in stream]
    order = " | ".join(tasks[:8]) + (" | ..." if len(tasks) > 8 else "")
    shape, classes = "x".join(map(str, x.shape[1:])), len({label for task in stream for label in task.labels})
    what = "vectors of" if x.dim() == 2 else "images"
    return f"{len(x):,} {what} {shape}, {classes} classes; {len(stream)} tasks: {order[:400]}"


def time_left(event: dict[str, Any], tasks: int, phases: dict[str, int], pace: dict[str, float]) -> float:
    """Seconds to the end, each phase at the pace of its newest epoch (unknown ones at the mean of the known)."""
    names = list(phases)
    at = names.index(event["phase"])
    usual = sum(pace.values()) / len(pace)
    ahead = {name: epochs * (tasks - 1 - event["task"]) for name, epochs in phases.items()}
    ahead[event["phase"]] += event["epochs"] - 1 - event["epoch"]
    for name in names[at + 1 :]:
        ahead[name] += phases[name]
    return sum(epochs * pace.get(name, usual) for name, epochs in ahead.items())


class Display:
    """Follows a run. Use it as a context and give it the run's events.

    Args:
        console: where to write.
        title: the run's name.
        tasks: how many there are.
        phases: each phase's epochs.
        quiet: say nothing but warnings.
        verbose: without a terminal, write a line for every epoch instead of every phase of a task.
    """

    def __init__(
        self,
        console: Console,
        title: str,
        tasks: int,
        phases: Mapping[str, int],
        quiet: bool = False,
        verbose: bool = False,
    ) -> None:
        self.console, self.title, self.tasks, self.quiet, self.verbose = console, title, tasks, quiet, verbose
        self.phases = dict(phases)
        self.pace: dict[str, float] = {}  # the newest epoch's seconds, by phase
        self.fading = Fading()
        self.live = (
            Live(console=console, refresh_per_second=8, transient=True) if console.is_terminal and not quiet else None
        )

    def __enter__(self) -> Display:
        """Begin to show."""
        if self.live:
            self.live.start()
            self.live.update(Text(f"{self.title}: starting"))
        return self

    def __exit__(self, *error: object) -> None:
        """Leave the terminal as it was."""
        if self.live:
            self.live.stop()

    def __call__(self, event: dict[str, Any]) -> None:
        """Show an event."""
        if event["event"] == "epoch":
            self._epoch(event)
        warn(self.console, self.fading.warnings(event))

    def _epoch(self, event: dict[str, Any]) -> None:
        self.pace[event["phase"]] = event["seconds"]
        self.phases[event["phase"]] = event["epochs"]  # a task of another size may have others than the first
        if self.quiet:
            return
        text = self.line(event)
        if self.live:
            grid = Table.grid(padding=(0, 2))
            each, before = sum(self.phases.values()), list(self.phases).index(event["phase"])
            done = event["task"] * each + sum(list(self.phases.values())[:before]) + event["epoch"] + 1
            grid.add_row(ProgressBar(total=self.tasks * each, completed=done, width=12), text)
            self.live.update(grid)
        elif self.verbose or event["epoch"] + 1 == event["epochs"]:
            say(self.console, text)

    def line(self, event: dict[str, Any]) -> str:
        """How far the run is after an epoch, and how long it will take."""
        place = f"task {event['task'] + 1}/{self.tasks}  {event['phase']:<11}"
        progress = f"epoch {event['epoch'] + 1:>3}/{event['epochs']}  loss {np.mean(event['loss']):>9.3f}"
        return f"{place} {progress}  {clock(time_left(event, self.tasks, self.phases, self.pace))} left"


class Downloads:
    """Follows downloads: a bar on a terminal, one line for each file in a log. Use it as a context."""

    def __init__(self, console: Console) -> None:
        self.console = console
        columns = (TextColumn("{task.description}", markup=False), BarColumn(), DownloadColumn(), SpeedColumn())
        off = not console.is_terminal
        self.bars = Progress(*columns, TimeRemainingColumn(), console=console, transient=True, disable=off)
        self.known: dict[str, TaskID] = {}

    def __enter__(self) -> Downloads:
        """Begin to show."""
        self.bars.start()
        return self

    def __exit__(self, *error: object) -> None:
        """Leave the terminal as it was."""
        self.bars.stop()

    def __call__(self, what: str, done: int, total: int) -> None:
        """Show how far a download is."""
        if what not in self.known:
            self.known[what] = self.bars.add_task(what, total=total, completed=done)
            if not self.console.is_terminal:
                say(self.console, f"{what}: fetching {decimal(total)}")
        self.bars.update(self.known[what], completed=done)
