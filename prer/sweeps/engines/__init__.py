"""Engines, which run the points of a sweep."""

from __future__ import annotations

from collections.abc import Sequence

from prer.errors import InputError
from prer.sweeps.engines.base import Engine
from prer.sweeps.engines.local import Local
from prer.text import did_you_mean


def engine(name: str, workers: int | None = None, options: Sequence[str] = (), per_gpu: int = 1) -> Engine:
    """The engine of this name.

    Args:
        name: local.
        workers: the most runs at a time; None: as many as there is room for.
        options: options of each `prer run`.
        per_gpu: the number of runs that share a GPU.
    """
    if name in ("ray", "slurm"):
        raise InputError(f"the engine {name} is not implemented yet; use --engine local")
    if name != "local":
        raise InputError(f"unknown engine {name!r}{did_you_mean(name, ['local', 'ray', 'slurm'])}")
    return Local(workers, options, per_gpu)
