"""An engine computes the points of a sweep. A run writes its own folder; an engine only starts runs and waits."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from prer.errors import InputError
from prer.learners.registry import code_of
from prer.runs.experiment import Experiment
from prer.runs.folder import RunFolder


@dataclass(frozen=True)
class Outcome:
    """The outcome of one point of a sweep.

    Attributes:
        experiment: the point.
        folder: its folder.
        error: why it failed; empty if it did not.
        trained: whether it ran now; False if it had ended before.
    """

    experiment: Experiment
    folder: RunFolder
    error: str = ""
    trained: bool = True


class Runs(Iterator[Outcome], ABC):
    """Iterator over the outcomes of runs, each as it ends; closing or interrupting it stops the runs.

    Attributes:
        waiting: the experiments that have not started.
    """

    waiting: Collection[Experiment]

    @property
    @abstractmethod
    def running(self) -> Sequence[RunFolder]:
        """The folders of the active runs."""

    @abstractmethod
    def close(self) -> None:
        """Stop the runs."""


class Engine(ABC):
    """Runs experiments, each in its folder."""

    @abstractmethod
    def run(self, experiments: Iterable[Experiment], out: Path) -> Runs:
        """Run the unfinished experiments and yield each outcome as it ends; a failed run does not stop the others."""


def ended_before(experiment: Experiment, out: Path) -> Outcome | None:
    """The outcome of a point that is finished, or whose folder cannot be used; None if it must run."""
    folder = RunFolder(experiment.path(out))
    if not os.path.lexists(folder.path):  # the case for most points of a large sweep
        return None
    try:
        folder.claim(experiment.is_same)
        if folder.result is None:
            return None
        folder.check_code(code_of(type(experiment.learner)))
        return Outcome(experiment, folder, trained=False)
    except InputError as error:
        return Outcome(experiment, folder, str(error), trained=False)
