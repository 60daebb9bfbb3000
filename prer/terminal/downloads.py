"""Progress of reading data, that is, of downloads and of features: a bar on a terminal, lines in a log."""

from __future__ import annotations

import time

from rich.console import Console
from rich.filesize import decimal
from rich.progress import BarColumn, DownloadColumn, Progress, Task, TaskID, TextColumn, TimeRemainingColumn
from rich.progress import TransferSpeedColumn as SpeedColumn
from rich.text import Text

from prer.terminal.console import say
from prer.text import clock

EVERY = 10  # seconds between two lines in a log


class Amount(DownloadColumn):
    """What is done: bytes, or samples."""

    def render(self, task: Task) -> Text:
        """As in "1.0/4.0 MB", or "512/13,083 texts"."""
        unit = task.fields["unit"]
        return super().render(task) if unit == "bytes" else Text(f"{task.completed:,.0f}/{task.total:,.0f} {unit}")


class Speed(SpeedColumn):
    """Bytes in a second, of downloads alone."""

    def render(self, task: Task) -> Text:
        """As in "1.2 MB/s"."""
        return super().render(task) if task.fields["unit"] == "bytes" else Text("")


class Downloads:
    """Shows what is read: a bar on a terminal, in a log a line every ten seconds. Use it as a context manager."""

    def __init__(self, console: Console) -> None:
        self.console = console
        columns = (TextColumn("{task.description}", markup=False), BarColumn(), Amount(), Speed())
        off = not console.is_terminal
        self.bars = Progress(*columns, TimeRemainingColumn(), console=console, transient=True, disable=off)
        self.known: dict[str, TaskID] = {}
        self.begun, self.said = (0.0, 0), 0.0  # of the newest: when, how much was done, and when a line was written

    def __enter__(self) -> Downloads:
        """Begin; the display starts when there is something to show."""
        return self

    def __exit__(self, *error: object) -> None:
        """Stop the display and clear it."""
        self.bars.stop()

    def __call__(self, what: str, done: int, total: int, unit: str = "bytes") -> None:
        """Show progress."""
        if what not in self.known:
            self.bars.start()
            self.known[what] = self.bars.add_task(what, total=total, completed=done, unit=unit)
            if not self.console.is_terminal:
                doing = f"downloading {decimal(total)}" if unit == "bytes" else f"computing those of {total:,} {unit}"
                say(self.console, f"{what}: {doing}")
            self.said = time.monotonic()
            self.begun = self.said, done
        elif not self.console.is_terminal and self.begun[1] < done < total and time.monotonic() - self.said >= EVERY:
            self.said = time.monotonic()
            left = (self.said - self.begun[0]) / (done - self.begun[1]) * (total - done)
            amount = f"{decimal(done)} of {decimal(total)}" if unit == "bytes" else f"{done:,} of {total:,} {unit}"
            say(self.console, f"{what}: {amount}, {clock(left)} left")
        self.bars.update(self.known[what], completed=done)
