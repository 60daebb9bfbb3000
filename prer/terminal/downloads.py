"""Progress of reading data, that is, of downloads and of features: a bar on a terminal, lines in a log."""

from __future__ import annotations

from rich.console import Console
from rich.filesize import decimal
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeRemainingColumn

from prer.terminal.console import say


class Downloads:
    """Shows what is read: a bar on a terminal, one line for each file in a log. Use it as a context manager."""

    def __init__(self, console: Console) -> None:
        self.console = console
        columns = (TextColumn("{task.description}", markup=False), BarColumn(), TextColumn("{task.fields[amount]}"))
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

    def __call__(self, what: str, done: int, total: int, unit: str = "bytes") -> None:
        """Show progress."""
        in_bytes = unit == "bytes"
        amount = f"{decimal(done)} of {decimal(total)}" if in_bytes else f"{done:,} of {total:,} {unit}"
        if what not in self.known:
            self.known[what] = self.bars.add_task(what, total=total, completed=done, amount=amount)
            if not self.console.is_terminal:
                doing = f"downloading {decimal(total)}" if in_bytes else f"computing those of {total:,} {unit}"
                say(self.console, f"{what}: {doing}")
        self.bars.update(self.known[what], completed=done, amount=amount)
