"""An engine computes the points of a sweep. A run writes its own folder; an engine only starts runs and waits."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from prer.errors import InputError
from prer.runs.experiment import Experiment
from prer.runs.folder import RunFolder


@dataclass(frozen=True)
class Outcome:
    """How a point ended.

    Attributes:
        experiment: the point.
        folder: its folder.
        error: why it failed; empty where it did not.
        trained: whether it ran now; False where it had ended before.
    """

    experiment: Experiment
    folder: RunFolder
    error: str = ""
    trained: bool = True


class Runs(Iterator[Outcome], ABC):
    """The outcomes of runs, each when it ends; whoever closes or interrupts this stops the runs.

    Attributes:
        waiting: the experiments that have not begun.
    """

    waiting: Collection[Experiment]

    @property
    @abstractmethod
    def running(self) -> Sequence[RunFolder]:
        """The folders of those that run now."""

    @abstractmethod
    def close(self) -> None:
        """Stop the runs."""


class Engine(ABC):
    """Runs experiments, each in its folder."""

    @abstractmethod
    def run(self, experiments: Iterable[Experiment], out: Path) -> Runs:
        """Run the experiments that are not finished, and tell of each when it ends; one that fails stops no other."""


def ended_before(experiment: Experiment, out: Path) -> Outcome | None:
    """The outcome of a point that is finished, or whose folder cannot be used; None where it must run."""
    folder = RunFolder(experiment.path(out))
    if not os.path.lexists(folder.path):  # as of most points of a large sweep
        return None
    try:
        folder.claim(experiment.is_same)
        return None if folder.result is None else Outcome(experiment, folder, trained=False)
    except InputError as error:
        return Outcome(experiment, folder, str(error), trained=False)
