"""What a run tells while it goes. A run knows no terminal: whoever starts it passes an observer."""

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
    learned: int | None  # tasks that were learned before a stop; None where the run has not begun yet


class RunObserver:
    """Observes a run; this one shows nothing."""

    def fetching(self) -> AbstractContextManager[Progress]:
        """A context for the time in which data is read; what it gives is told how far a download is."""
        return nullcontext(silent)

    def training(self, start: Start) -> AbstractContextManager[Observer]:
        """A context for the time in which the run trains; what it gives is told every event."""
        return nullcontext(lambda event: None)
