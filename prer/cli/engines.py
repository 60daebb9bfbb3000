"""The options that choose an engine, which several commands share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial, wraps
from typing import TYPE_CHECKING, Any

import click

from prer.errors import InputError

if TYPE_CHECKING:
    from prer.sweeps.engines import Engine

OWN = {  # options of one engine
    "address": ("--address", "ray"),
    "resources": ("--resource", "ray"),
    "apart": ("--apart", "ray"),
    "sbatch": ("--sbatch", "slurm"),
    "per_job": ("--per-job", "slurm"),
}
EXAMPLES = {"--resource": "CPU=2", "--sbatch": "partition=gpu"}


def with_engine(usual: int | None = None) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Add the options of engines to a command.

    The command gets the number of `workers`, and `engine`, a function that makes an engine with so many workers.

    Args:
        usual: the number of workers on this machine; None: one for each GPU or core.
    """
    most = f"Number of parallel runs, or jobs.  [default: {usual or 'one per GPU or core'}]"
    options = (
        click.option("--engine", "name", default="local", show_default=True, help="Where to run: local, ray, slurm."),
        click.option("--workers", type=click.IntRange(1), help=most),
        click.option("--per-gpu", type=click.IntRange(1), help="Number of runs that share a GPU.  [default: 1]"),
        click.option("--address", help="The Ray cluster.  [default: RAY_ADDRESS, or a new one on this machine]"),
        click.option(
            "--resource",
            "resources",
            multiple=True,
            metavar="NAME=AMOUNT",
            help="What each run needs on Ray; repeatable.",
        ),
        click.option(
            "--apart", is_flag=True, help="The nodes of Ray share no folder; an actor keeps their checkpoints."
        ),
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
                own["sbatch"] = _table("--sbatch", own["sbatch"])
            if "resources" in own:
                own["resources"] = _amounts(_table("--resource", own["resources"]))
            command(*arguments, workers=workers, engine=partial(_engine, name, per_gpu or 1, own), **others)

        for option in reversed(options):
            wrapped = option(wrapped)
        return wrapped

    return with_options


def _table(option: str, words: Sequence[str]) -> dict[str, str]:
    for word in words:
        if "=" not in word:
            raise InputError(f"{option} {word}: give KEY=VALUE, such as {EXAMPLES[option]}")
    return dict(word.split("=", 1) for word in words)


def _amounts(table: dict[str, str]) -> dict[str, float]:
    try:
        return {name: float(amount) for name, amount in table.items()}
    except ValueError as error:
        raise InputError(f"--resource: {error}; give a number, such as {EXAMPLES['--resource']}") from None


def _engine(name: str, per_gpu: int, own: dict[str, Any], workers: int | None) -> Engine:
    from prer.cli.overrides import plugin_options
    from prer.sweeps.engines import engine

    return engine(name, workers, plugin_options(), per_gpu, **own)
