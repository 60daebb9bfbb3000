"""Engines: who computes the points of a sweep. A run writes its own folder; an engine only starts runs and waits."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from prer.errors import InputError, did_you_mean
from prer.experiment import Experiment
from prer.record import Record

PAUSE = 0.05  # seconds between two looks at the workers: nothing beside the seconds that a run takes
GRACE = 10  # seconds in which a worker that is asked to end must do so


@dataclass(frozen=True)
class Outcome:
    """How a point ended.

    Attributes:
        experiment: the point.
        record: its folder.
        error: why it failed; empty where it did not.
        trained: whether it ran now; False where it had ended before.
    """

    experiment: Experiment
    record: Record
    error: str = ""
    trained: bool = True


class Engine(ABC):
    """Runs experiments, each in its folder."""

    @abstractmethod
    def run(self, experiments: Iterable[Experiment], out: Path) -> Runs:
        """Run the experiments that are not finished, and tell of each when it ends; one that fails stops no other."""


@dataclass(frozen=True)
class Local(Engine):
    """Processes on this machine, so many at a time."""

    workers: int

    def run(self, experiments: Iterable[Experiment], out: Path) -> Runs:
        """Run the experiments that are not finished, each in a process of its own."""
        return Runs(experiments, out, self.workers)


class Runs(Iterator[Outcome]):
    """The outcomes of runs, each when it ends; whoever closes or interrupts this ends the processes.

    Attributes:
        waiting: the experiments that have not begun.
        running: those that run now.
    """

    def __init__(self, experiments: Iterable[Experiment], out: Path, workers: int) -> None:
        known = [(experiment, ended_before(experiment, out)) for experiment in experiments]
        self.waiting = deque(experiment for experiment, ended in known if not ended)
        self.running: list[Worker] = []
        self._outcomes = self._run([ended for _, ended in known if ended], out, workers)

    def __next__(self) -> Outcome:
        """The next one that ends."""
        return next(self._outcomes)

    def close(self) -> None:
        """End the processes."""
        self._outcomes.close()

    def _run(self, ended: Sequence[Outcome], out: Path, workers: int) -> Generator[Outcome]:
        yield from ended
        with TemporaryDirectory(prefix="prer-sweep-") as folder, noted_signals() as obey:
            try:
                while self.waiting or self.running:
                    while self.waiting and len(self.running) < workers:
                        self.running.append(Worker(self.waiting.popleft(), out, Path(folder)))
                    for worker in [worker for worker in self.running if worker.process.poll() is not None]:
                        self.running.remove(worker)
                        yield worker.outcome()
                    obey()
                    time.sleep(PAUSE)
            finally:
                end(self.running)


class Worker:
    """A process that runs one experiment."""

    def __init__(self, experiment: Experiment, out: Path, folder: Path) -> None:
        self.experiment, self.record = experiment, Record(out / experiment.folder)
        file, self.errors = folder / f"{experiment.folder}.toml", folder / f"{experiment.folder}.err"
        file.write_text(experiment.to_toml(), "utf-8")
        # Not of our group: a terminal's Ctrl-C would reach it, too, and our SIGTERM, a second signal, end its saving.
        # Nothing is ever written to its standard input: when this process ends, that is closed, and so the worker ends.
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.DEVNULL, "start_new_session": True}
        with self.errors.open("wb") as errors:
            self.process = subprocess.Popen(command(file, out), stderr=errors, env=environment(), **pipes)

    def outcome(self) -> Outcome:
        """How the process ended."""
        self.process.communicate()
        code, lines = self.process.returncode, self.errors.read_text("utf-8", "replace").splitlines()
        error = lines[-1].removeprefix("prer: ") if lines else f"its process ended with {code}"
        if code < 0:
            error = f"its process was ended by {signal.Signals(-code).name}"
        return Outcome(self.experiment, self.record, error if code else "")


def command(file: Path, out: Path) -> list[str]:
    """The command that runs an experiment; -P, so that what lies in the current folder is not imported."""
    return [sys.executable, "-P", "-m", "prer.worker", str(file), "--quiet", "--out", str(out)]


def environment() -> dict[str, str]:
    """A worker has one thread, as the others have the other cores, and runs our own code, wherever that is."""
    paths = [str(Path(__file__).parents[1]), *filter(None, [os.environ.get("PYTHONPATH")])]
    return os.environ | {"OMP_NUM_THREADS": "1", "PYTHONPATH": os.pathsep.join(paths)}


def end(workers: Sequence[Worker]) -> None:
    """End the processes, those first that listen."""
    for worker in workers:
        worker.process.terminate()
    for worker in workers:
        try:
            worker.process.wait(GRACE)
        except subprocess.TimeoutExpired:
            worker.process.kill()
        worker.process.communicate()  # not before: a worker whose standard input is closed would be told to end twice


def ended_before(experiment: Experiment, out: Path) -> Outcome | None:
    """The outcome of a point that is finished, or whose folder cannot be used; None where it must run."""
    record = Record(out / experiment.folder)
    if not os.path.lexists(record.path):  # as of most points of a large sweep
        return None
    try:
        record.claim(experiment.to_toml())
        return None if record.result is None else Outcome(experiment, record, trained=False)
    except InputError as error:
        return Outcome(experiment, record, str(error), trained=False)


@contextmanager
def noted_signals() -> Iterator[Callable[[], None]]:
    """Note Ctrl-C and SIGTERM, to be obeyed by a call: none may come between a process's start and our knowing it."""
    noted: list[int] = []
    numbers = (signal.SIGINT, signal.SIGTERM)
    before = {number: signal.signal(number, lambda number, _: noted.append(number)) for number in numbers}

    def obey() -> None:
        if noted:
            raise KeyboardInterrupt if noted[0] == signal.SIGINT else SystemExit(128 + signal.SIGTERM)

    try:
        yield obey
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def engine(name: str, workers: int | None = None) -> Engine:
    """The engine of this name, with so many workers or one for each core that is ours."""
    if name in ("ray", "slurm"):
        raise InputError(f"the engine {name} comes later; take --engine local")
    if name != "local":
        raise InputError(f"unknown engine {name!r}{did_you_mean(name, ['local', 'ray', 'slurm'])}")
    return Local(workers or cores())


def cores() -> int:
    """How many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
