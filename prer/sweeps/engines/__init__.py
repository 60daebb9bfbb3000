"""Engines, which run the points of a sweep."""

from __future__ import annotations

from collections.abc import Sequence

from prer.errors import InputError
from prer.sweeps.engines.base import Engine
from prer.sweeps.engines.local import Local, cores
from prer.text import did_you_mean


def engine(name: str, workers: int | None = None, options: Sequence[str] = ()) -> Engine:
    """The engine of this name, with `workers` workers, or one for each core; `options` are those of each `prer run`."""
    if name in ("ray", "slurm"):
        raise InputError(f"the engine {name} is not implemented yet; use --engine local")
    if name != "local":
        raise InputError(f"unknown engine {name!r}{did_you_mean(name, ['local', 'ray', 'slurm'])}")
    return Local(workers or cores(), tuple(options))
