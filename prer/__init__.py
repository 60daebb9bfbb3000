"""Continual learning that stores no samples of past tasks.

from prer import PRER, Stream, learn
result = learn(Stream.split(x, y, classes_per_task=2), PRER(), seeds=5)
"""

from importlib import import_module
from typing import TYPE_CHECKING

from prer.version import __version__

if TYPE_CHECKING:
    from prer.learners import (
        AGEM,
        DER,
        DGR,
        ER,
        EWC,
        GEM,
        LWF,
        NCM,
        PRER,
        SI,
        SLDA,
        Joint,
        Learner,
        Naive,
        RanPAC,
        Replay,
    )
    from prer.learners.registry import register
    from prer.models.classifier import ContinualClassifier, load
    from prer.runs.learn import learn
    from prer.runs.result import Result
    from prer.streams.stream import Stream, arriving
    from prer.streams.task import Task

__all__ = [
    "AGEM",
    "DER",
    "DGR",
    "ER",
    "EWC",
    "GEM",
    "LWF",
    "NCM",
    "PRER",
    "SI",
    "SLDA",
    "ContinualClassifier",
    "Joint",
    "Learner",
    "Naive",
    "RanPAC",
    "Replay",
    "Result",
    "Stream",
    "Task",
    "__version__",
    "arriving",
    "learn",
    "load",
    "register",
]

_HOMES = {  # modules of the public names that are not learners
    "ContinualClassifier": "prer.models.classifier",
    "Result": "prer.runs.result",
    "Stream": "prer.streams.stream",
    "Task": "prer.streams.task",
    "arriving": "prer.streams.stream",
    "learn": "prer.runs.learn",
    "load": "prer.models.classifier",
    "register": "prer.learners.registry",
}


def __getattr__(name: str) -> object:
    """Import a public name on first use, so that `prer --help` does not wait for torch."""
    if name in __all__:
        return getattr(import_module(_HOMES.get(name, "prer.learners")), name)
    raise AttributeError(f"module 'prer' has no attribute {name!r}")


def __dir__() -> list[str]:
    """List the public names even before they are imported, for tab completion and `help`."""
    return sorted({*globals(), *__all__})
