"""A run that is computed elsewhere; its folder tells when it starts."""

from __future__ import annotations

from concurrent.futures import Future
from dataclasses import dataclass, field

from prer.runs.experiment import Experiment
from prer.runs.folder import RunFolder


@dataclass
class Watched:
    """A run that is computed elsewhere."""

    experiment: Experiment
    run: RunFolder
    future: Future[None] = field(default_factory=Future)

    def __post_init__(self) -> None:
        """Note when the run last started, to notice that it starts again."""
        self._before = started(self.run)

    def notice(self) -> None:
        """Mark the future as running once the run has started or resumed."""
        if not self.future.running() and not self.future.done() and started(self.run) != self._before:
            self.future.set_running_or_notify_cancel()


def started(run: RunFolder) -> int:
    """When the run last started or resumed, by the clock of the machine that did; 0 if never."""
    try:
        return (run.path / "environment.json").stat().st_mtime_ns
    except OSError:
        return 0
