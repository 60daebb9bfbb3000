"""Output of commands, line by line."""

from __future__ import annotations

import sys

import click

from prer.text import printable


def echo(line: str, err: bool = False) -> None:
    """Print a line; control characters are escaped on a terminal, and kept in a file or a pipe."""
    stream = sys.stderr if err else sys.stdout
    if stream is None:  # closed before the command started
        return
    # Without `color`, click would strip escape codes from names in a pipe.
    click.echo(printable(line) if stream.isatty() else line, err=err, color=True)
