"""The command `prer`: its subcommands, and their exit codes and last messages."""

from __future__ import annotations

import shlex
import sys
import warnings
from contextlib import suppress
from typing import NoReturn, TextIO

import click

from prer.cli import bench, compare, data, model, report, reproduce, run, sweep
from prer.cli.echo import echo
from prer.errors import NO_MEMORY, InputError, Interrupted, RunError, out_of_memory
from prer.terminal.streams import standard_streams
from prer.text import sentence
from prer.version import __version__


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="prer")
def commands() -> None:
    """Continual learning that stores no samples of past tasks."""


for command in (
    run.run,
    run.resume,
    run.show,
    model.teach,
    model.predict,
    model.score,
    model.sample,
    model.undo,
    model.privacy,
    compare.compare,
    report.report,
    report.track,
    sweep.sweep,
    reproduce.reproduce,
    data.data,
    bench.bench,
):
    commands.add_command(command)


def main(arguments: list[str] | None = None) -> None:
    """Run a command; invalid input ends with one sentence and exit code 2, a failed run with 1."""
    with standard_streams(), warnings.catch_warnings():
        other = warnings.showwarning

        def show(
            message: Warning | str,
            category: type[Warning],
            filename: str,
            lineno: int,
            file: TextIO | None = None,
            line: str | None = None,
        ) -> None:
            if category is UserWarning:  # of this package, for the user
                echo(f"warning: {message}", err=True)
            else:
                other(message, category, filename, lineno, file, line)

        warnings.showwarning = show
        _main(arguments)


def _main(arguments: list[str] | None) -> None:
    try:
        commands.main(arguments, prog_name="prer", standalone_mode=False)
    except click.ClickException as error:
        with suppress(RunError):
            error.show()
        sys.exit(error.exit_code)
    except Interrupted as interrupted:
        folder, same = interrupted.folder, sys.argv[1:] if arguments is None else arguments
        how = shlex.join(["prer", *(["resume", folder, *interrupted.options] if folder else same)])
        _end(f"interrupted and saved; resume with: {how}", 128 + interrupted.number)
    except (click.Abort, KeyboardInterrupt):
        _end("interrupted; run the same command again", 130)
    except (InputError, RunError) as error:
        _end(f"prer: {sentence(error)}", 2 if isinstance(error, InputError) else 1)
    except (RuntimeError, MemoryError) as error:
        if not out_of_memory(error):
            raise
        _end(f"prer: {NO_MEMORY}", 1)


def _end(why: str, code: int) -> NoReturn:
    with suppress(RunError):  # standard error cannot be written either: the exit code must suffice
        echo(why, err=True)
    sys.exit(code)
