"""Runs that fail or are interrupted: exit codes, sentences, events."""

import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from support.commands import NAIVE, begun, ended, environment, said, strict_events

from prer.cli.main import main
from prer.errors import NO_MEMORY, Interrupted
from prer.runs.folder import RunFolder

pytestmark = pytest.mark.usefixtures("no_terminal")


def test_a_run_that_diverges_ends_with_1_and_says_where(arrays):
    settings = ("learner.optimiser=sgd", "learner.lr=1e30", "learner.epochs=9")
    code, _, err = ended(begun(["run", arrays, *NAIVE, *settings, "--seeds", "1"]))
    assert code == 1
    assert re.fullmatch(r"prer: the loss of seed 0 became (nan|inf) in task \d.*; try a lower learning rate\n", err)
    (folder,) = Path("runs").iterdir()
    assert not (folder / "result.json").exists()
    assert not (folder / "model").exists()


def test_an_interrupted_run_ends_with_130_and_says_how_to_go_on(capsys, arrays):
    # A shell that started the tests in the background has made all its children deaf to the signal.
    listen = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler); "
    code = listen + "from prer.cli.main import main; main()"
    command = [sys.executable, "-c", code, "run", arrays, *NAIVE]
    command += ["--seeds", "1", "learner.epochs=100000", "--verbose"]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, env=environment(), **pipes) as running:
        try:
            assert any("epoch   1/100000" in running.stdout.readline() for _ in range(3))
            running.send_signal(signal.SIGINT)
            _, err = running.communicate(timeout=30)
        finally:
            running.kill()
    assert running.returncode == 130
    (folder,) = Path("runs").iterdir()
    assert err.strip() == f"interrupted and saved; resume with: prer resume {folder}"
    assert (folder / "checkpoint" / "checkpoint.json").exists()
    assert not (folder / "result.json").exists()
    assert strict_events(folder)
    assert "not" in said(capsys, "show", folder)


@pytest.mark.parametrize(("at", "how"), [(1, "run --seeds 2"), (2, "resume 'runs/my run'")])
def test_the_built_in_job_can_be_resumed_with_both_of_its_runs(capsys, monkeypatch, at, how):
    calls = []

    def execute(*about, **named):
        calls.append(about)
        if len(calls) == at:
            interrupted = Interrupted(signal.SIGINT)
            interrupted.folder = "runs/my run"
            raise interrupted

    monkeypatch.setattr("prer.runs.run.execute", execute)
    with pytest.raises(SystemExit) as caught:
        main(["run", "--seeds", "2"])
    assert caught.value.code == 130
    assert capsys.readouterr().err == f"interrupted and saved; resume with: prer {how}\n"


@pytest.mark.parametrize(
    "error",
    [MemoryError(), torch.OutOfMemoryError("CUDA out of memory."), RuntimeError("can't allocate memory: 1 byte")],
)
def test_a_run_that_is_short_of_memory_says_so_in_its_events(capsys, monkeypatch, arrays, error):
    def learn(*about):
        raise error

    monkeypatch.setattr("prer.learners.Naive.learn", learn)
    with pytest.raises(SystemExit) as caught:
        main(["run", arrays, *NAIVE, "--seeds", "1"])
    assert caught.value.code == 1
    assert capsys.readouterr().err == f"prer: {NO_MEMORY}\n"
    (folder,) = Path("runs").iterdir()
    assert RunFolder(folder).failure == NO_MEMORY
