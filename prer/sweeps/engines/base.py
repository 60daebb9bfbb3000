"""An engine computes the points of a sweep. A run writes its own folder; an engine only starts runs and waits."""

from __future__ import annotations

import os
import signal
from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from queue import Empty, SimpleQueue

from prer.errors import InputError
from prer.learners.registry import code_of
from prer.runs.experiment import Experiment
from prer.runs.folder import RunFolder
from prer.signals import on_stop

PAUSE = 0.05  # seconds until a signal is obeyed at the latest


@dataclass(frozen=True)
class Outcome:
    """The outcome of one point of a sweep.

    Attributes:
        experiment: the point.
        folder: its folder.
        error: why it failed; empty if it did not.
        trained: whether it ran now; False if it had ended before.
        lines: the last lines of a failed run; the last one is the error.
    """

    experiment: Experiment
    folder: RunFolder
    error: str = ""
    trained: bool = True
    lines: Sequence[str] = ()


class Engine(ABC):
    """Starts experiments, each in its folder. The folder is all that is known of the progress of a run."""

    @abstractmethod
    def submit(self, experiment: Experiment, out: Path) -> Future[None]:
        """Run an experiment as soon as there is room for it.

        The future is `running()` while the run is active. If the run fails, its exception holds the run's last lines.
        """

    def start(self) -> None:
        """Called after the last `submit`; an engine that sends runs in batches sends them now."""

    @abstractmethod
    def close(self) -> None:
        """Stop what still runs, so that it can be resumed, and start nothing more."""

    def script(self, experiments: int, out: Path) -> str:
        """The batch script for so many experiments, if the engine sends one."""
        raise InputError("--dry-run applies only to --engine slurm; leave it out")

    def run(self, experiments: Iterable[Experiment], out: Path, *, retry: bool = True) -> Runs:
        """Run the unfinished experiments and yield each outcome as it ends; a failed run does not stop the others.

        The engine is closed at the end. Without `retry`, runs that failed before are not run again.
        """
        return Runs(self, experiments, out, retry)


class Runs(Iterator[Outcome]):
    """Iterator over the outcomes of runs, each as it ends; closing or interrupting it stops the runs.

    Attributes:
        waiting: the experiments that must run.
    """

    def __init__(self, engine: Engine, experiments: Iterable[Experiment], out: Path, retry: bool = True) -> None:
        known = [(experiment, ended_before(experiment, out, retry=retry)) for experiment in experiments]
        self.waiting = [experiment for experiment, ended in known if not ended]
        self._active: dict[Future[None], Outcome] = {}
        self._outcomes = self._run(engine, out, [ended for _, ended in known if ended])

    @property
    def running(self) -> list[RunFolder]:
        """The folders of the active runs."""
        return [outcome.folder for future, outcome in list(self._active.items()) if future.running()]

    def __next__(self) -> Outcome:
        """The outcome of the next run that ends."""
        return next(self._outcomes)

    def close(self) -> None:
        """Stop the runs."""
        self._outcomes.close()

    def _run(self, engine: Engine, out: Path, ended: Sequence[Outcome]) -> Generator[Outcome]:
        yield from ended
        done: SimpleQueue[Future[None]] = SimpleQueue()
        with noted_signals() as obey:
            try:
                for experiment in self.waiting:
                    future = engine.submit(experiment, out)
                    self._active[future] = Outcome(experiment, RunFolder(experiment.path(out)))
                    future.add_done_callback(done.put)
                    obey()
                engine.start()
                while self._active:
                    obey()
                    try:
                        future = done.get(timeout=PAUSE)
                    except Empty:
                        continue
                    yield with_error(self._active.pop(future), future.exception())
            finally:
                engine.close()


def with_error(outcome: Outcome, error: BaseException | None) -> Outcome:
    """The outcome of a run that ended with this error, if any."""
    if error is None:
        return outcome
    lines = str(error).splitlines() or [repr(error)]
    return Outcome(outcome.experiment, outcome.folder, lines[-1].removeprefix("prer: "), lines=lines)


def ended_before(experiment: Experiment, out: Path, *, retry: bool = True) -> Outcome | None:
    """The outcome of a point that has ended, or whose folder cannot be used; None if it must run.

    Without `retry`, a point that failed has ended.
    """
    folder = RunFolder(experiment.path(out))
    if not os.path.lexists(folder.path):  # the case for most points of a large sweep
        return None
    try:
        folder.claim(experiment.is_same)
        if folder.result is None:
            failure = "" if retry else folder.failure
            return Outcome(experiment, folder, failure, trained=False) if failure else None
        folder.check_code(code_of(type(experiment.learner)))
        return Outcome(experiment, folder, trained=False)
    except InputError as error:
        return Outcome(experiment, folder, str(error), trained=False)


@contextmanager
def noted_signals() -> Iterator[Callable[[], None]]:
    """Defer Ctrl-C and SIGTERM until the yielded function is called, so that no run is started unrecorded."""
    noted: list[int] = []

    def obey() -> None:
        if noted:
            raise KeyboardInterrupt if noted[0] == signal.SIGINT else SystemExit(128 + signal.SIGTERM)

    with on_stop(noted.append):
        yield obey
