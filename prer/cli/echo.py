"""Lines that commands print."""

from __future__ import annotations

import sys

import click

from prer.text import printable


def echo(line: str, err: bool = False) -> None:
    """Print a line: names in it cannot control a terminal, and reach a file or a pipe as they are."""
    stream = sys.stderr if err else sys.stdout
    if stream is None:  # it was closed before we began
        return
    # Without `color` click would change names in a pipe.
    click.echo(printable(line) if stream.isatty() else line, err=err, color=True)
