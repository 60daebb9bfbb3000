"""Progress of downloads: a bar on a terminal, lines in a log."""

from __future__ import annotations

from rich.console import Console
from rich.filesize import decimal
from rich.progress import BarColumn, DownloadColumn, Progress, TaskID, TextColumn, TimeRemainingColumn
from rich.progress import TransferSpeedColumn as SpeedColumn

from prer.terminal.console import say


class Downloads:
    """Shows downloads: a bar on a terminal, one line for each file in a log. Use it as a context manager."""

    def __init__(self, console: Console) -> None:
        self.console = console
        columns = (TextColumn("{task.description}", markup=False), BarColumn(), DownloadColumn(), SpeedColumn())
        off = not console.is_terminal
        self.bars = Progress(*columns, TimeRemainingColumn(), console=console, transient=True, disable=off)
        self.known: dict[str, TaskID] = {}

    def __enter__(self) -> Downloads:
        """Start the display."""
        self.bars.start()
        return self

    def __exit__(self, *error: object) -> None:
        """Stop the display and clear it."""
        self.bars.stop()

    def __call__(self, what: str, done: int, total: int) -> None:
        """Show the progress of a download."""
        if what not in self.known:
            self.known[what] = self.bars.add_task(what, total=total, completed=done)
            if not self.console.is_terminal:
                say(self.console, f"{what}: downloading {decimal(total)}")
        self.bars.update(self.known[what], completed=done)
