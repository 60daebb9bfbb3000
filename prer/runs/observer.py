"""The observer of a run. A run does not print anything itself: its caller passes an observer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import NamedTuple

from prer.data.entry import Progress, silent
from prer.learners.base import Observer
from prer.streams.stream import Stream


class Start(NamedTuple):
    """A run that is about to train."""

    name: str
    folder: Path
    stream: Stream
    phases: Mapping[str, int]  # the epochs of each phase of the first task
    warnings: Sequence[str]
    learned: int | None  # tasks learned before the run was interrupted; None for a new run
    encoding: str = ""  # how vectors become embeddings, if no encoder is trained


class RunObserver:
    """Observes a run; this base class shows nothing."""

    def fetching(self) -> AbstractContextManager[Progress]:
        """A context manager around reading the data; yields a callback for download progress."""
        return nullcontext(silent)

    def training(self, start: Start) -> AbstractContextManager[Observer]:
        """A context manager around training; yields a callback for every event."""
        return nullcontext(lambda event: None)
