"""prer reproduce."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import click

from prer.cli.engines import with_engine

if TYPE_CHECKING:
    from prer.sweeps.engines import Engine

PARTS = ("table1", "table2", "figure2", "claims", "significance", "class", "features", "all")


@click.command()
@click.argument("part", type=click.Choice(PARTS))
@click.option(
    "--only", default="", metavar="NAME,...", help="Data sets and methods, in any order: mnist,prer.  [default: all]"
)
@click.option("--device", help="auto, cpu or cuda.  [default: auto]")
@click.option(
    "--out", default="runs", show_default=True, type=click.Path(path_type=Path), help="Folder of runs and tables."
)
@click.option("--seeds", help="Number of seeds, or a list: 5, or 0,1,7.  [default: 5; 20 for significance]")
@with_engine(1)
@click.option("--fast", is_flag=True, help="Smoke test on the built-in digits with three seeds.")
@click.option("--finished", is_flag=True, help="Use only finished runs, and run nothing.")
@click.option("--data", "paths", multiple=True, metavar="NAME=PATH", help="Read a data set from a path; repeatable.")
def reproduce(
    part: str,
    only: str,
    device: str | None,
    out: Path,
    seeds: str | None,
    workers: int | None,
    engine: Callable[[int | None], Engine],
    fast: bool,
    finished: bool,
    paths: tuple[str, ...],
) -> None:
    """Reproduce the paper's tables and figure. Our numbers are beside the paper's; finished runs are not repeated.

    Two parts are not in the paper: "class", every learner if nobody tells the task of a sample, and "features",
    the same over features of pretrained networks.

    \b
    prer reproduce table1 --fast
    prer reproduce table1 --only mnist,prer
    prer reproduce table1 --data kmnist=my/kmnist10k --workers 2
    prer reproduce class --fast --workers 2
    prer reproduce features --data clinc150=clinc150.csv --only clinc150
    """
    from prer.paper.plan import Request, places
    from prer.paper.reproduce import reproduce
    from prer.paper.variants import NAMES
    from prer.terminal.console import new_console

    names = tuple(filter(None, map(str.strip, only.split(","))))
    request = Request(names, device, seeds, fast, places(paths), NAMES, finished)
    reproduce(new_console(), part, request, out, workers, engine)
