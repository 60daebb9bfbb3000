"""Runs as jobs, which submitit's local executor starts here; benchmarks/on_slurm.py tries a real Slurm."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from support.sweeps import BASE, GRID, finish, sweep

from prer.errors import InputError
from prer.runs.checkpoint import Checkpoint
from prer.runs.folder import RunFolder
from prer.runs.run import execute
from prer.sweeps.engines import engine

submitit = pytest.importorskip("submitit")
from prer.sweeps.engines import slurm  # noqa: E402, it imports submitit

pytestmark = pytest.mark.usefixtures("no_terminal")
LONG = BASE + '[axes]\n"learner.epochs" = [80]\n'


class Executor(submitit.LocalExecutor):
    """Remembers its jobs."""

    jobs = ()

    def _submit_command(self, command):
        self.jobs = [*self.jobs, super()._submit_command(command)]
        return self.jobs[-1]


class OnThisMachine(slurm.Slurm):
    """Starts jobs as processes."""

    sent = None

    def executor(self, folder, jobs):
        self.sent = Executor(folder)
        return self.sent

    def queued(self):
        return {job.job_id for job in self.sent.jobs if job._process.poll() is None} if self.sent else set()

    def cancel(self, jobs):
        for job in self.sent.jobs:
            if job.job_id in jobs:
                job._process.terminate()

    def close(self):
        super().close()
        for job in self.sent.jobs if self.sent else ():
            job._process.wait(120)  # a run that has just begun first imports torch


@pytest.fixture
def often(monkeypatch):
    monkeypatch.setattr(slurm, "LOOK", 0.05)
    monkeypatch.setattr(slurm, "ASK", 0.2)


def begun(folder, engine):
    """Wait until a run trains; return the process that its job computes it with."""
    while not (folder / "events.jsonl").exists() or not (folder / "events.jsonl").read_text():
        time.sleep(0.05)
        assert engine.queued()
    (controller,) = (job._process.pid for job in engine.sent.jobs)
    return int(subprocess.run(["pgrep", "-P", str(controller)], capture_output=True, text=True).stdout)


@pytest.mark.usefixtures("often")
def test_jobs_of_several_runs_give_the_results_of_this_process_and_last_lines():
    points = sweep(BASE + '[axes]\n"learner.lr" = [0.01, 1e30, 0.1]\n').points()
    outcomes = list(OnThisMachine(per_job=2).run(points, Path("runs")))
    assert len(list(Path("runs/.slurm").glob("*/*_submitted.pkl"))) == 2
    by_rate = {outcome.experiment.learner.lr: outcome for outcome in outcomes}
    assert "lower learning rate" in by_rate[1e30].error and len(by_rate) == 3
    for rate in (0.01, 0.1):
        found = by_rate[rate].folder.result["digest"]
        assert found == execute(by_rate[rate].experiment, Path("here")).result["digest"]


@pytest.mark.usefixtures("often")
def test_a_run_is_resumed_after_a_time_limit_with_the_same_digest():
    (point,) = sweep(LONG).points()
    folder, there = RunFolder(point.path(Path("runs"))), OnThisMachine()
    future = there.submit(point, Path("runs"))
    there.start()
    os.kill(begun(folder.path, there), signal.SIGUSR2)  # as Slurm does before a time limit
    future.result(timeout=60)
    there.close()
    assert len(folder.environment["resumed"]) == 1
    assert folder.result["digest"] == execute(point, Path("here")).result["digest"]


@pytest.mark.usefixtures("often")
def test_closing_ends_jobs_and_their_runs_are_saved():
    (point,) = sweep(LONG, "learner.epochs=1000000").points()
    runs, there = point.path(Path("runs")), OnThisMachine()
    future = there.submit(point, Path("runs"))
    there.start()
    begun(runs, there)
    while not future.running():
        time.sleep(0.01)
    there.close()
    assert not there.queued() and not RunFolder(runs).running()
    assert Checkpoint(runs / "checkpoint").read() is not None


@pytest.mark.usefixtures("often")
def test_a_job_that_is_lost_fails_with_the_last_lines_of_its_log():
    (point,) = sweep(LONG, "learner.epochs=1000000").points()
    there = OnThisMachine()
    future = there.submit(point, Path("runs"))
    there.start()
    task = begun(point.path(Path("runs")), there)
    there.sent.jobs[0]._process.kill()
    os.kill(task, signal.SIGKILL)
    *_, last = str(future.exception(timeout=30)).splitlines()
    there.close()
    assert last == f"its job {there.sent.jobs[0].job_id} ended without a result"


@pytest.mark.usefixtures("often")
def test_runs_of_jobs_that_an_earlier_command_has_sent_are_not_sent_again():
    points = sweep(GRID).points()
    (Path("runs/.slurm/then")).mkdir(parents=True)
    Path("runs/.slurm/then/jobs.json").write_text(json.dumps({"7_0": [points[0].folder], "7_1": [points[1].folder]}))

    class Queue(OnThisMachine):
        def queued(self):
            return {"7_0", *super().queued()}

    there = Queue()
    first, second = (there.submit(point, Path("runs")) for point in points[:2])
    there.start()
    second.result(timeout=60)
    assert len(there.sent.jobs) == 1 and not first.done()
    finish(points[0])
    first.result(timeout=10)
    there.close()


def test_the_script_shows_the_array_the_limits_and_the_settings_of_the_user():
    settings = {"time": "90", "partition": "gpu", "cpus-per-task": "4", "gres": "gpu:2"}
    text = slurm.Slurm(8, sbatch=settings, per_job=3).script(24, Path("my runs"))
    lines = [line.removeprefix("#SBATCH ") for line in text.splitlines()]
    wanted = ["--array=0-7%8", "--time=90", "--partition=gpu", "--cpus-per-task=4", "--gres=gpu:2", "--requeue"]
    assert {*wanted, "--signal=USR2@90"} <= {*lines}
    (command,) = (line for line in lines if line.startswith("srun "))
    assert "--cpus-per-task=4" in command and sys.executable in command
    assert "--array" not in slurm.Slurm().script(1, Path("runs"))
    assert not Path("my runs").exists()


def test_the_time_limit_is_in_minutes():
    with pytest.raises(InputError, match="in minutes"):
        slurm.Slurm(sbatch={"time": "1:00"}).script(1, Path("runs"))


def test_the_queue_is_read_and_jobs_are_cancelled_by_their_numbers(monkeypatch, tmp_path):
    for name, text in (("squeue", "echo 12_0; echo 12_3; echo 15_N/A"), ("scancel", 'echo "$@" > cancelled')):
        (tmp_path / name).write_text(f"#!/bin/sh\n{text}\n")
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    assert slurm.Slurm().queued() == {"12_0", "12_3", "15"}
    slurm.Slurm().cancel(["12_0", "15"])
    assert Path("cancelled").read_text() == "12_0 15\n"


def test_without_the_extra_the_command_to_install_it_is_named(monkeypatch):
    monkeypatch.setattr("prer.sweeps.engines.find_spec", lambda name: None)
    with pytest.raises(InputError, match=r"pip install 'prer\[slurm\]'"):
        engine("slurm")


class Refusing(OnThisMachine):
    """Slurm takes no jobs."""

    def executor(self, folder, jobs):
        raise self.error


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (
            submitit.core.utils.FailedJobError("sbatch: error: no\nsbatch: error: Invalid partition\n"),
            "Invalid partition",
        ),
        (RuntimeError("no srun"), "no srun"),
        (subprocess.CalledProcessError(1, "squeue", stderr="squeue: error: no controller\n"), "no controller"),
    ],
)
def test_jobs_that_slurm_refuses_are_a_sentence(error, said):
    refusing = Refusing()
    refusing.error = error
    with pytest.raises(InputError, match=f"Slurm did not take the jobs: .*{said}$"):
        list(refusing.run(sweep(GRID).points(), Path("runs")))
