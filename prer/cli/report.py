"""prer report, track."""

from __future__ import annotations

from pathlib import Path

import click

from prer.cli.echo import echo
from prer.errors import InputError


@click.command()
@click.argument("runs", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="RUN...")
@click.option(
    "--logdir", default="tensorboard", show_default=True, type=click.Path(path_type=Path), help="Output folder."
)
@click.option("--follow", is_flag=True, help="Follow one run until it ends.")
def track(runs: tuple[Path, ...], logdir: Path, follow: bool) -> None:
    """Export runs to TensorBoard. This requires the extra `track`.

    \b
    prer track runs/* && tensorboard --logdir tensorboard
    """
    from prer.interop.tensorboard import replay

    if follow and len(runs) > 1:
        raise InputError("--follow works with one run only; start one command per run")
    for run in runs:
        echo(f"{run}: {replay(run, logdir, follow)} values written to {logdir}")


@click.command()
@click.argument("runs", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="RUN...")
@click.option(
    "-o",
    "file",
    default="report.html",
    show_default=True,
    type=click.Path(path_type=Path, dir_okay=False),
    help="Output file.",
)
@click.option("--watch", is_flag=True, help="Update the page until all runs are finished.")
def report(runs: tuple[Path, ...], file: Path, watch: bool) -> None:
    """Write a report about runs. It is one self-contained HTML file; a folder stands for all runs in it.

    \b
    prer report runs/digits-prer-3361c516
    prer report runs -o report.html --watch
    """
    from prer.report.plotting import import_unconfigured
    from prer.report.watch import report
    from prer.terminal.console import new_console, say

    import_unconfigured()
    console = new_console()
    report(runs, file, lambda line: say(console, line), watch=watch)
