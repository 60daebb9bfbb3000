"""prer report, track."""

from __future__ import annotations

from pathlib import Path

import click

from prer.cli.echo import echo
from prer.errors import InputError


@click.command()
@click.argument("runs", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="RUN...")
@click.option("--logdir", default="tensorboard", show_default=True, type=click.Path(path_type=Path), help="Where to.")
@click.option("--follow", is_flag=True, help="Go on until the run ends; of one run.")
def track(runs: tuple[Path, ...], logdir: Path, follow: bool) -> None:
    """Write losses, accuracies and health of runs for TensorBoard (needs the extra `track`).

    \b
    prer track runs/* && tensorboard --logdir tensorboard
    """
    from prer.interop.tensorboard import replay

    if follow and len(runs) > 1:
        raise InputError("--follow follows one run; start it once for each")
    for run in runs:
        echo(f"{run}: {replay(run, logdir, follow)} numbers, below {logdir}")


@click.command()
@click.argument("runs", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="RUN...")
@click.option(
    "-o",
    "file",
    default="report.html",
    show_default=True,
    type=click.Path(path_type=Path, dir_okay=False),
    help="Where to.",
)
@click.option("--watch", is_flag=True, help="Renew the page while runs go on.")
def report(runs: tuple[Path, ...], file: Path, watch: bool) -> None:
    """Make one page about runs, or about all runs in a folder: a file that needs nothing else and can be sent.

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
