"""The options that choose an engine, which several commands share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial, wraps
from typing import TYPE_CHECKING, Any

import click

from prer.errors import InputError

if TYPE_CHECKING:
    from prer.sweeps.engines import Engine

OWN = {"sbatch": ("--sbatch", "slurm"), "per_job": ("--per-job", "slurm")}  # options of one engine


def with_engine(usual: int | None = None) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Add the options of engines to a command.

    The command gets the number of `workers`, and `engine`, a function that makes an engine with so many workers.

    Args:
        usual: the number of workers on this machine; None: one for each GPU or core.
    """
    most = f"Number of parallel runs, or jobs.  [default: {usual or 'one per GPU or core'}]"
    options = (
        click.option("--engine", "name", default="local", show_default=True, help="Where to run: local, slurm."),
        click.option("--workers", type=click.IntRange(1), help=most),
        click.option("--per-gpu", type=click.IntRange(1), help="Number of runs that share a GPU.  [default: 1]"),
        click.option("--sbatch", multiple=True, metavar="KEY=VALUE", help="An option of sbatch; repeatable."),
        click.option("--per-job", type=click.IntRange(1), help="Number of runs in a job of Slurm.  [default: 1]"),
    )

    def with_options(command: Callable[..., None]) -> Callable[..., None]:
        @wraps(command)
        def wrapped(*arguments: Any, name: str, workers: int | None, per_gpu: int | None, **others: Any) -> None:
            own = {key: value for key in OWN if (value := others.pop(key))}
            for key in own:
                if name != OWN[key][1]:
                    raise InputError("{} applies only to --engine {}; leave it out".format(*OWN[key]))
            if name == "local" and per_gpu and workers:
                raise InputError("--workers and --per-gpu both say how many runs there are at a time; give one of them")
            if name == "local" and not per_gpu:
                workers = workers or usual
            if "sbatch" in own:
                own["sbatch"] = _table(own["sbatch"])
            command(*arguments, workers=workers, engine=partial(_engine, name, per_gpu or 1, own), **others)

        for option in reversed(options):
            wrapped = option(wrapped)
        return wrapped

    return with_options


def _table(settings: Sequence[str]) -> dict[str, str]:
    for word in settings:
        if "=" not in word:
            raise InputError(f"--sbatch {word}: give KEY=VALUE, such as partition=gpu")
    return dict(word.split("=", 1) for word in settings)


def _engine(name: str, per_gpu: int, own: dict[str, Any], workers: int | None) -> Engine:
    from prer.cli.overrides import plugin_options
    from prer.sweeps.engines import engine

    return engine(name, workers, plugin_options(), per_gpu, **own)
