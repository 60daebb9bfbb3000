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

PAUSE = 0.05  # seconds between two polls of the workers; short compared with a run


GRACE = 10  # seconds after SIGTERM before a worker is killed


@dataclass(frozen=True)
class Local(Engine):
    """Runs experiments as processes on this machine, `workers` at a time."""

    workers: int
    options: tuple[str, ...] = ()  # options of `prer run` for every worker

    def run(self, experiments: Iterable[Experiment], out: Path) -> Runs:
        """Run the unfinished experiments, each in its own process."""
        return Processes(experiments, out, self.workers, self.options)


class Processes(Runs):
    """The runs of a local engine."""

    def __init__(self, experiments: Iterable[Experiment], out: Path, workers: int, options: Sequence[str] = ()) -> None:
        known = [(experiment, ended_before(experiment, out)) for experiment in experiments]
        self.waiting: deque[Experiment] = deque(experiment for experiment, ended in known if not ended)
        self._workers: list[Worker] = []
        self._options = options
        self._outcomes = self._run([ended for _, ended in known if ended], out, workers)

    @property
    def running(self) -> list[RunFolder]:
        """The folders of the active runs."""
        return [worker.folder for worker in self._workers]

    def __next__(self) -> Outcome:
        """The outcome of the next run that ends."""
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
                        self._workers.append(Worker(self.waiting.popleft(), out, Path(folder), self._options))
                    for worker in [worker for worker in self._workers if worker.process.poll() is not None]:
                        self._workers.remove(worker)
                        yield worker.outcome()
                    obey()
                    time.sleep(PAUSE)
            finally:
                end(self._workers)


class Worker:
    """A process that runs one experiment."""

    def __init__(self, experiment: Experiment, out: Path, folder: Path, options: Sequence[str] = ()) -> None:
        self.experiment, self.folder = experiment, RunFolder(experiment.path(out))
        file, self.errors = folder / f"{experiment.folder}.toml", folder / f"{experiment.folder}.err"
        file.write_text(experiment.to_toml(), "utf-8")
        # In a new session: otherwise Ctrl-C would reach it, and our SIGTERM, as a second signal, would abort its save.
        # Its standard input stays empty and is closed when this process ends; then the worker ends, too.
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.DEVNULL, "start_new_session": True}
        with self.errors.open("wb") as errors:
            self.process = subprocess.Popen([*command(file, out), *options], stderr=errors, env=environment(), **pipes)

    def outcome(self) -> Outcome:
        """The outcome of the process."""
        self.process.communicate()
        code, lines = self.process.returncode, self.errors.read_text("utf-8", "replace").splitlines()
        error = lines[-1].removeprefix("prer: ") if lines else f"its process ended with exit code {code}"
        if code < 0:
            error = f"its process was killed by {signal.Signals(-code).name}"
        return Outcome(self.experiment, self.folder, error if code else "")


def command(file: Path, out: Path) -> list[str]:
    """The command that runs an experiment; -P, so that nothing is imported from the current folder."""
    return [sys.executable, "-P", "-m", "prer.cli.worker", str(file), "--quiet", "--out", str(out)]


def environment() -> dict[str, str]:
    """Environment of a worker: one thread, as other workers use the other cores, and this copy of prer on the path."""
    paths = [str(Path(__file__).parents[3]), *filter(None, [os.environ.get("PYTHONPATH")])]
    return os.environ | {"OMP_NUM_THREADS": "1", "PYTHONPATH": os.pathsep.join(paths)}


def end(workers: Sequence[Worker]) -> None:
    """Terminate the processes, and kill those that do not end in time."""
    for worker in workers:
        worker.process.terminate()
    for worker in workers:
        try:
            worker.process.wait(GRACE)
        except subprocess.TimeoutExpired:
            worker.process.kill()
        worker.process.communicate()  # not earlier: closing its standard input would tell the worker to end again


@contextmanager
def noted_signals() -> Iterator[Callable[[], None]]:
    """Defer Ctrl-C and SIGTERM until the yielded function is called, so that no process is started unrecorded."""
    noted: list[int] = []

    def obey() -> None:
        if noted:
            raise KeyboardInterrupt if noted[0] == signal.SIGINT else SystemExit(128 + signal.SIGTERM)

    with on_stop(noted.append):
        yield obey


def cores() -> int:
    """The number of cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
