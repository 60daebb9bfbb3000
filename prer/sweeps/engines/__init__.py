"""Engines, which run the points of a sweep."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from prer.errors import InputError
from prer.sweeps.engines.base import Engine
from prer.sweeps.engines.local import Local
from prer.text import did_you_mean

REQUIRED = {"ray": "ray", "slurm": "submitit"}  # the package that an engine needs; its extra is named after the engine


def engine(name: str, workers: int | None = None, options: Sequence[str] = (), per_gpu: int = 1, **own: Any) -> Engine:
    """The engine of this name.

    Args:
        name: local, ray or slurm.
        workers: the most runs at a time, or jobs of Slurm; None: as many as there is room for.
        options: options of each `prer run`.
        per_gpu: the number of runs that share a GPU.
        own: more arguments of the engine's class.
    """
    if name == "local":
        return Local(workers, options, per_gpu)
    if name not in REQUIRED:
        raise InputError(f"unknown engine {name!r}{did_you_mean(name, ['local', *REQUIRED])}")
    if not find_spec(REQUIRED[name]):
        raise InputError(f"the engine {name} is not installed; install it with: pip install 'prer[{name}]'")
    # Imported only here, as it imports its package.
    kind = getattr(import_module(f"prer.sweeps.engines.{name}"), name.capitalize())
    return kind(workers, options, per_gpu, **own)
