"""A process that runs one experiment, on whatever machine an engine starts it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from prer.errors import RunError

GRACE = 10  # seconds after SIGTERM before a worker is killed
MOST_LINES = 8  # lines of a failed worker that are reported


class Worker:
    """A process that runs one experiment.

    Args:
        file: the experiment; the errors of the process are written beside it.
        out: the folder of runs.
        options: more options of `prer run`.
        gpu: the only GPU that the process sees, as CUDA_VISIBLE_DEVICES names it; None: those that this process sees.
    """

    def __init__(self, file: Path, out: Path, options: Sequence[str] = (), gpu: str | None = None) -> None:
        self.errors = file.with_suffix(".err")
        # In a new session: otherwise Ctrl-C would reach it, and our SIGTERM, as a second signal, would abort its save.
        # Its standard input stays empty and is closed when this process ends; then the worker ends, too.
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.DEVNULL, "start_new_session": True}
        with self.errors.open("wb") as errors:
            started = [*command(file, out), *options]
            self.process = subprocess.Popen(started, stderr=errors, env=environment(gpu), **pipes)

    def wait(self) -> None:
        """Wait for the process.

        Raises:
            RunError: it failed; the message has its last lines.
        """
        code = self.process.wait()
        if code == 0:
            return
        lines = self.errors.read_text("utf-8", "replace").splitlines()[-MOST_LINES:]
        if code < 0:
            lines.append(f"its process was killed by {signal.Signals(-code).name}")
        raise RunError("\n".join(lines) or f"its process ended with exit code {code}")


def end(workers: Sequence[Worker]) -> None:
    """Terminate the processes, and kill those that do not end in time."""
    for worker in workers:
        worker.process.terminate()
    for worker in workers:
        try:
            worker.process.wait(GRACE)
        except subprocess.TimeoutExpired:
            worker.process.kill()


def command(file: Path, out: Path) -> list[str]:
    """The command that runs an experiment; -P, so that nothing is imported from the current folder."""
    return [sys.executable, "-P", "-m", "prer.cli.worker", str(file), "--quiet", "--out", str(out)]


def environment(gpu: str | None = None) -> dict[str, str]:
    """Environment of a worker: one thread, as other workers use the other cores, and this copy of prer on the path."""
    device = {} if gpu is None else {"CUDA_VISIBLE_DEVICES": gpu}
    return os.environ | {"OMP_NUM_THREADS": "1", "PYTHONPATH": path_of_package()} | device


def path_of_package() -> str:
    """PYTHONPATH with this copy of prer first."""
    return os.pathsep.join([str(Path(__file__).parents[3]), *filter(None, [os.environ.get("PYTHONPATH")])])
