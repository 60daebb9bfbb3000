"""Progress of a run: a live line on a terminal, lines in a log."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from rich.console import Console
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from prer.data.entry import Progress, silent
from prer.runs.observer import RunObserver, Start
from prer.streams.stream import Stream
from prer.terminal.console import say, warn
from prer.terminal.downloads import Downloads
from prer.text import clock, shown
from prer.training.fading import Fading
from prer.training.progress import time_left


def describe(stream: Stream) -> str:
    """A line about the samples, classes and tasks of a stream."""
    x, tasks = stream[0].x, [" ".join(shown(label, 20) for label in task.labels) for task in stream]
    order = " | ".join(tasks[:8]) + (" | ..." if len(tasks) > 8 else "")
    shape, classes = "x".join(map(str, x.shape[1:])), len({label for task in stream for label in task.labels})
    what = "vectors of" if x.dim() == 2 else "images"
    return f"{len(x):,} {what} {shape}, {classes} classes; {len(stream)} tasks: {order[:400]}"


class Display:
    """Shows a run. Use it as a context manager and call it with the run's events.

    Args:
        console: where to write.
        title: the run's name.
        tasks: the number of tasks.
        phases: the epochs of each phase.
        quiet: show only warnings.
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

    def __enter__(self) -> Self:
        """Start the display."""
        if self.live:
            self.live.start()
            self.live.update(Text(f"{self.title}: starting"))
        return self

    def __exit__(self, *error: object) -> None:
        """Stop the display and clear it."""
        if self.live:
            self.live.stop()

    def __call__(self, event: dict[str, Any]) -> None:
        """Show an event."""
        if event["event"] == "epoch":
            self._epoch(event)
        warn(self.console, self.fading.warnings(event))

    def _epoch(self, event: dict[str, Any]) -> None:
        self.pace[event["phase"]] = event["seconds"]
        self.phases[event["phase"]] = event["epochs"]  # a task of another size may have more or fewer than the first
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

    def place(self, event: Mapping[str, Any]) -> str:
        """Where the run is."""
        return f"task {event['task'] + 1}/{self.tasks}"

    def line(self, event: dict[str, Any]) -> str:
        """Progress of the run after an epoch, and the time left."""
        place = f"{self.place(event)}  {event['phase']:<11}"
        progress = f"epoch {event['epoch'] + 1:>3}/{event['epochs']}  loss {np.mean(event['loss']):>9.3f}"
        return f"{place} {progress}  {clock(time_left(event, self.tasks, self.phases, self.pace))} left"


class LessonDisplay(Display):
    """Shows a model that learns one more lesson, number `lesson`."""

    def __init__(self, console: Console, title: str, lesson: int, phases: Mapping[str, int], quiet: bool) -> None:
        super().__init__(console, title, 1, phases, quiet)
        self.lesson = lesson

    def __call__(self, event: dict[str, Any]) -> None:
        """Show an event; the time left is that of this lesson."""
        super().__call__(event | {"task": 0})

    def place(self, event: Mapping[str, Any]) -> str:
        """The lesson."""
        return f"lesson {self.lesson}"


@dataclass(frozen=True)
class RunProgress(RunObserver):
    """Shows a run on a console: its data, its warnings, its progress and the time left.

    Attributes:
        console: where to write.
        quiet: show only warnings.
        verbose: without a terminal, write a line for every epoch instead of every phase of a task.
    """

    console: Console
    quiet: bool = False
    verbose: bool = False

    def fetching(self) -> AbstractContextManager[Progress]:
        """A bar for each download."""
        return nullcontext(silent) if self.quiet else Downloads(self.console)

    def training(self, start: Start) -> AbstractContextManager[Display]:
        """Describe the run, and return a display for its events."""
        tasks = len(start.stream)
        if not self.quiet:
            say(self.console, describe(start.stream))
            if start.encoding:
                say(self.console, start.encoding)
            warn(self.console, start.warnings)
        if start.learned is not None and not self.quiet:
            say(self.console, f"resuming {start.folder} at task {start.learned + 1} of {tasks}")
        return Display(self.console, start.name, tasks, start.phases, self.quiet, self.verbose)
