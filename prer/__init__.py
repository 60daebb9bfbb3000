"""Continual learning without keeping one sample of the past.

from prer import PRER, Stream, learn
result = learn(Stream.split(x, y, classes_per_task=2), PRER(), seeds=5)
"""

from importlib import import_module
from typing import TYPE_CHECKING

from prer.version import __version__

if TYPE_CHECKING:
    from prer.learners import PRER, Joint, Learner, Naive
    from prer.result import Result
    from prer.run import learn
    from prer.stream import Stream, arriving
    from prer.task import Task

__all__ = ["PRER", "Joint", "Learner", "Naive", "Result", "Stream", "Task", "__version__", "arriving", "learn"]

_HOMES = {
    "prer.learners": ("PRER", "Joint", "Learner", "Naive"),
    "prer.result": ("Result",),
    "prer.run": ("learn",),
    "prer.stream": ("Stream", "arriving"),
    "prer.task": ("Task",),
}


def __getattr__(name: str) -> object:
    """Import a public name when it is first asked for, so that `prer --help` need not wait for torch."""
    for home, names in _HOMES.items():
        if name in names:
            return getattr(import_module(home), name)
    raise AttributeError(f"module 'prer' has no attribute {name!r}")
