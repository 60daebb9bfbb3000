"""Progress of reading data, that is, of downloads and of features: a bar on a terminal, lines in a log."""

from __future__ import annotations

from rich.console import Console
from rich.filesize import decimal
from rich.progress import BarColumn, DownloadColumn, Progress, Task, TaskID, TextColumn, TimeRemainingColumn
from rich.progress import TransferSpeedColumn as SpeedColumn
from rich.text import Text

from prer.terminal.console import say


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
    """Shows what is read: a bar on a terminal, one line for each file in a log. Use it as a context manager."""

    def __init__(self, console: Console) -> None:
        self.console = console
        columns = (TextColumn("{task.description}", markup=False), BarColumn(), Amount(), Speed())
        off = not console.is_terminal
        self.bars = Progress(*columns, TimeRemainingColumn(), console=console, transient=True, disable=off)
        self.known: dict[str, TaskID] = {}

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
        self.bars.update(self.known[what], completed=done)
