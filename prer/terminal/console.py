"""The console of a command: plain lines, warnings, tables at full width."""

from __future__ import annotations

from collections.abc import Iterable

from rich.console import Console
from rich.measure import Measurement
from rich.table import Table

from prer.text import shown

MOST_TEXT = 100_000  # maximum characters of a line


def new_console(stderr: bool = False) -> Console:
    """The console of a command, on standard output or standard error."""
    return Console(emoji=False, highlight=False, stderr=stderr)


def say(console: Console, text: str, style: str | None = None) -> None:
    """Print text as it is, however wide."""
    console.print(shown(text, MOST_TEXT), style=style, soft_wrap=True, highlight=False, markup=False, emoji=False)


def warn(console: Console, warnings: Iterable[str]) -> None:
    """Print warnings, one line each."""
    for text in warnings:
        say(console, f"warning: {text}", "yellow")


def whole(console: Console, table: Table) -> None:
    """Print a table at its full width: a log has 80 columns, and truncated numbers are useless."""
    usual = console.width
    needed = Measurement.get(console, console.options.update(max_width=10_000), table).maximum
    console.width = max(usual, needed)
    console.print(table, crop=False)
    console.width = usual
