"""Runs as jobs of Slurm, which submitit sends. A job tells what became of its runs by files in shared folders."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
import time
import tomllib
from collections.abc import Collection, Mapping, Sequence
from concurrent.futures import Future
from contextlib import closing
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from threading import Event, Thread
from typing import Any

from submitit import SlurmExecutor
from submitit.core.core import PicklingExecutor
from submitit.core.utils import DelayedSubmission
from submitit.slurm.slurm import _make_sbatch_string

from prer.disk import content, replace_file
from prer.errors import InputError, RunError
from prer.runs.experiment import Experiment
from prer.runs.folder import MOST_BYTES, RunFolder
from prer.sweeps.engines.base import Engine
from prer.sweeps.engines.local import Local, gpus
from prer.sweeps.engines.watched import Watched
from prer.sweeps.engines.worker import GRACE, MOST_LINES, path_of_package

FOLDER = ".slurm"  # in the folder of runs: scripts and logs of jobs, and the last lines of failed runs
JOBS = "jobs.json"  # there: the run folders of each job
MOST_JOBS = 1000  # of an array; Slurm's MaxArraySize is 1001 by default
MOST_REQUEUES = 10_000
MINUTES = 60  # time limit of a job, if none is given
LOOK = 1.0  # seconds between two looks at the run folders
ASK = 10.0  # seconds between two questions to Slurm, which many users share


@dataclass(frozen=True)
class Job:
    """What a job computes: experiments, as many at a time as it has GPUs or cores.

    At its time limit submitit calls `checkpoint`, requeues the job and ends it. Then the runs save themselves, and the
    requeued job resumes them.
    """

    experiments: Sequence[str]  # as TOML
    out: Path
    folder: Path  # for the last lines of failed runs
    options: Sequence[str] = ()
    per_gpu: int = 1

    def __call__(self) -> None:
        """Run the experiments."""
        workers = None if gpus() else int(os.environ.get("SLURM_CPUS_PER_TASK", 1))
        experiments = [Experiment.parse_run(tomllib.loads(text)) for text in self.experiments]
        with closing(Local(workers, self.options, self.per_gpu).run(experiments, self.out)) as outcomes:
            for outcome in outcomes:
                if outcome.error:
                    lines = "\n".join(outcome.lines or [outcome.error])
                    replace_file(failure_of(self.folder, outcome.experiment), lines.encode())

    def checkpoint(self) -> DelayedSubmission:
        """The job as it is requeued."""
        return DelayedSubmission(self)


def failure_of(folder: Path, experiment: Experiment) -> Path:
    """The file with the last lines of a failed run."""
    return folder / f"{experiment.folder}.failed"


@dataclass
class Sent(Watched):
    """A run that a job computes."""

    job: str = ""
    folder: Path = Path()  # of its job

    def look(self) -> None:
        """Settle the future if the run has ended."""
        try:
            if self.run.result is not None:
                self.future.set_result(None)
            elif (failure := failure_of(self.folder, self.experiment)).exists():
                self.future.set_exception(RunError(failure.read_text("utf-8", "replace")))
            else:
                self.notice()
        except InputError as error:  # its result is damaged
            self.future.set_exception(error)


class Slurm(Engine):
    """Sends runs to Slurm as an array of jobs, and watches their folders, which all nodes must share.

    Args:
        workers: the most jobs at a time; None: as many as Slurm has room for.
        options: options of each `prer run`.
        per_gpu: the number of runs that share a GPU.
        sbatch: options of sbatch, such as {"partition": "gpu", "time": "120"}.
        per_job: the number of runs of a job.
    """

    def __init__(
        self,
        workers: int | None = None,
        options: Sequence[str] = (),
        per_gpu: int = 1,
        sbatch: Mapping[str, str] | None = None,
        per_job: int = 1,
    ) -> None:
        self.workers, self.options, self.per_gpu = workers, tuple(options), per_gpu
        self.sbatch, self.per_job = dict(sbatch or {}), per_job
        self._runs: list[Sent] = []
        self._out = Path()
        self._closed = Event()
        self._thread: Thread | None = None

    def submit(self, experiment: Experiment, out: Path) -> Future[None]:
        """Note an experiment for the jobs that `start` sends."""
        self._runs.append(Sent(experiment, RunFolder(experiment.path(out))))
        self._out = out.resolve()
        return self._runs[-1].future

    def start(self) -> None:
        """Send the jobs, except for runs whose jobs an earlier command has sent, which did not live to see the end."""
        try:
            self._send_new()
        except (FileNotFoundError, RuntimeError, subprocess.CalledProcessError) as error:
            lines = str(getattr(error, "stderr", None) or error).strip().splitlines() or [repr(error)]
            raise InputError(f"Slurm did not take the jobs: {lines[-1]}") from None
        self._thread = Thread(target=self._watch, daemon=True)
        self._thread.start()

    def _send_new(self) -> None:
        sent = self._sent_before()
        for watched in self._runs:
            watched.job, watched.folder = sent.get(watched.run.path.name, ("", Path()))
        new = [watched for watched in self._runs if not watched.job]
        jobs = [new[i : i + self.per_job] for i in range(0, len(new), self.per_job)]
        for i in range(0, len(jobs), MOST_JOBS):
            self._send(jobs[i : i + MOST_JOBS])

    def close(self) -> None:
        """Cancel the jobs whose runs have not ended, and wait until they have saved their runs."""
        self._closed.set()
        if self._thread:
            self._thread.join()
        left = {watched.job for watched in self._runs if watched.job and not watched.future.done()}
        if left:
            self.cancel(left)
        end = time.monotonic() + 3 * GRACE
        while left and time.monotonic() < end and self.queued() & left:
            time.sleep(LOOK)

    def script(self, experiments: int, out: Path) -> str:
        """The batch script for so many experiments."""
        jobs = min(-(-experiments // self.per_job), MOST_JOBS)
        folder, array = out.resolve() / FOLDER / "TIME", {"map_count": jobs if jobs > 1 else None}
        command = f"{shlex.quote(sys.executable)} -u -m submitit.core._submit {shlex.quote(str(folder))}"
        about: dict[str, Any] = {"command": command, "folder": folder} | self.parameters(jobs) | array
        return _make_sbatch_string(**about)

    def parameters(self, jobs: int) -> dict[str, Any]:
        """The parameters of submitit for so many jobs."""
        settings = {key.replace("_", "-"): value for key, value in self.sbatch.items()}
        minutes, cores = settings.pop("time", str(MINUTES)), settings.get("cpus-per-task")
        if not minutes.isdigit():
            raise InputError(f"--sbatch time={minutes}: give the time limit of a job in minutes")
        environment = {"PYTHONPATH": path_of_package(), "PYTHONSAFEPATH": "1"}  # import nothing from the current folder
        return {
            "job_name": "prer",
            "time": int(minutes),
            "array_parallelism": self.workers or jobs,
            "setup": [f"export {name}={shlex.quote(value)}" for name, value in environment.items()],
            "srun_args": [f"--cpus-per-task={cores}"] if cores else [],  # srun does not take it from sbatch
            "additional_parameters": {"requeue": True} | settings,
        }

    def executor(self, folder: Path, jobs: int) -> PicklingExecutor:
        """What sends so many jobs."""
        executor = SlurmExecutor(folder, max_num_timeout=MOST_REQUEUES)
        executor.update_parameters(**self.parameters(jobs))
        return executor

    def queued(self) -> set[str]:
        """The jobs of the user that wait or run."""
        command = ["squeue", "--noheader", "--array", "--me", "--format=%F_%K"]
        lines = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
        return {line.removesuffix("_N/A") for line in lines}

    def cancel(self, jobs: Collection[str]) -> None:
        """End jobs; their processes get SIGTERM first."""
        subprocess.run(["scancel", *jobs], check=False)

    def _send(self, jobs: Sequence[Sequence[Sent]]) -> None:
        folder = self._out / FOLDER / time.strftime("%Y%m%d-%H%M%S")
        folder = next(path for i in count() if not (path := folder.with_name(f"{folder.name}-{i}")).exists())
        folder.mkdir(parents=True)
        executor = self.executor(folder, len(jobs))
        work = [
            Job([w.experiment.to_toml() for w in job], self._out, folder, self.options, self.per_gpu) for job in jobs
        ]
        for job, sent in zip(jobs, executor.submit_array(work), strict=True):
            for watched in job:
                watched.job, watched.folder = sent.job_id, folder
        record = {job[0].job: [watched.run.path.name for watched in job] for job in jobs}
        replace_file(folder / JOBS, json.dumps(record, indent=1).encode())

    def _sent_before(self) -> dict[str, tuple[str, Path]]:
        """The job and its folder of each run that a job in the queue computes, by the name of its run folder."""
        found = {}
        records = sorted(self._out.glob(f"{FOLDER}/*/{JOBS}"))
        queued = self.queued() if records else set()
        for file in records:
            for job, names in json.loads(content(file, MOST_BYTES)).items():
                found |= dict.fromkeys(names, (job, file.parent)) if job in queued else {}
        return found

    def _watch(self) -> None:
        left, missed, asked = self._runs, set[str](), time.monotonic()
        while left and not self._closed.wait(LOOK):
            for watched in left:
                watched.look()
            left = [watched for watched in left if not watched.future.done()]
            if time.monotonic() > asked + ASK:
                missed, asked = self._missing(left, missed), time.monotonic()

    def _missing(self, left: Sequence[Sent], missed: Collection[str]) -> set[str]:
        """The jobs that Slurm does not know any more; the runs of those missed before, too, have failed."""
        try:
            gone = {watched.job for watched in left} - self.queued()
        except (OSError, subprocess.CalledProcessError):  # Slurm does not answer: ask later
            return set()
        for watched in left:
            if watched.job in gone and watched.job in missed:
                logs = sorted(watched.folder.glob(f"{watched.job}_*_log.err"))
                last = logs[-1].read_text("utf-8", "replace").splitlines()[-MOST_LINES:] if logs else []
                ended = f"its job {watched.job} ended without a result"
                watched.future.set_exception(RunError("\n".join([*last, ended])))
        return gone
