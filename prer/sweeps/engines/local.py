"""Runs as processes on this machine."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from prer.runs.experiment import Experiment
from prer.runs.folder import RunFolder
from prer.signals import on_stop
from prer.sweeps.engines.base import Engine, Outcome, Runs, ended_before

PAUSE = 0.05  # seconds between two looks at the workers: nothing beside the seconds that a run takes


GRACE = 10  # seconds in which a worker that is asked to end must do so


@dataclass(frozen=True)
class Local(Engine):
    """Processes on this machine, so many at a time."""

    workers: int

    def run(self, experiments: Iterable[Experiment], out: Path) -> Runs:
        """Run the experiments that are not finished, each in a process of its own."""
        return Processes(experiments, out, self.workers)


class Processes(Runs):
    """Runs as processes."""

    def __init__(self, experiments: Iterable[Experiment], out: Path, workers: int) -> None:
        known = [(experiment, ended_before(experiment, out)) for experiment in experiments]
        self.waiting: deque[Experiment] = deque(experiment for experiment, ended in known if not ended)
        self._workers: list[Worker] = []
        self._outcomes = self._run([ended for _, ended in known if ended], out, workers)

    @property
    def running(self) -> list[RunFolder]:
        """The folders of those that run now."""
        return [worker.folder for worker in self._workers]

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
                while self.waiting or self._workers:
                    while self.waiting and len(self._workers) < workers:
                        self._workers.append(Worker(self.waiting.popleft(), out, Path(folder)))
                    for worker in [worker for worker in self._workers if worker.process.poll() is not None]:
                        self._workers.remove(worker)
                        yield worker.outcome()
                    obey()
                    time.sleep(PAUSE)
            finally:
                end(self._workers)


class Worker:
    """A process that runs one experiment."""

    def __init__(self, experiment: Experiment, out: Path, folder: Path) -> None:
        self.experiment, self.folder = experiment, RunFolder(experiment.path(out))
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
        return Outcome(self.experiment, self.folder, error if code else "")


def command(file: Path, out: Path) -> list[str]:
    """The command that runs an experiment; -P, so that what lies in the current folder is not imported."""
    return [sys.executable, "-P", "-m", "prer.cli.worker", str(file), "--quiet", "--out", str(out)]


def environment() -> dict[str, str]:
    """A worker has one thread, as the others have the other cores, and runs our own code, wherever that is."""
    paths = [str(Path(__file__).parents[3]), *filter(None, [os.environ.get("PYTHONPATH")])]
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


@contextmanager
def noted_signals() -> Iterator[Callable[[], None]]:
    """Note Ctrl-C and SIGTERM, to be obeyed by a call: none may come between a process's start and our knowing it."""
    noted: list[int] = []

    def obey() -> None:
        if noted:
            raise KeyboardInterrupt if noted[0] == signal.SIGINT else SystemExit(128 + signal.SIGTERM)

    with on_stop(noted.append):
        yield obey


def cores() -> int:
    """How many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
