"""The options that choose an engine, which several commands share."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial, wraps
from typing import TYPE_CHECKING, Any

import click

from prer.errors import InputError

if TYPE_CHECKING:
    from prer.sweeps.engines import Engine


def with_engine(usual: int | None = None) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Add the options of engines to a command.

    The command gets the number of `workers`, and `engine`, a function that makes an engine with so many workers.

    Args:
        usual: the number of workers on this machine; None: one for each GPU or core.
    """

    def with_options(command: Callable[..., None]) -> Callable[..., None]:
        @click.option("--engine", "name", default="local", show_default=True, help="Where runs are computed: local.")
        @click.option(
            "--workers",
            type=click.IntRange(1),
            help=f"Number of parallel runs.  [default: {usual or 'one per GPU or core'}]",
        )
        @click.option("--per-gpu", type=click.IntRange(1), help="Number of runs that share a GPU.  [default: 1]")
        @wraps(command)
        def wrapped(*arguments: Any, name: str, workers: int | None, per_gpu: int | None, **options: Any) -> None:
            if per_gpu and workers:
                raise InputError("--workers and --per-gpu both say how many runs there are at a time; give one of them")
            if name == "local" and not per_gpu:
                workers = workers or usual
            command(*arguments, workers=workers, engine=partial(_engine, name, per_gpu or 1), **options)

        return wrapped

    return with_options


def _engine(name: str, per_gpu: int, workers: int | None) -> Engine:
    from prer.cli.overrides import plugin_options
    from prer.sweeps.engines import engine

    return engine(name, workers, plugin_options(), per_gpu)
