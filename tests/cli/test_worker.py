"""A worker of an engine is `prer run`, and ends with its parent."""

import os
import signal
import subprocess
import sys

import pytest
from support.commands import NAIVE, environment
from support.folders import only_run

from prer.cli import worker
from prer.runs.checkpoint import Checkpoint
from prer.sweeps.engines.worker import command

pytestmark = pytest.mark.usefixtures("no_terminal")


@pytest.fixture
def start(arrays, tmp_path):
    """Starts a worker, which is killed at the end of the test at the latest."""
    processes = []

    def started(*settings):
        words = [sys.executable, "-P", "-m", "prer.cli.worker", arrays, *NAIVE, *settings, "--seeds", "1", "--verbose"]
        assert command(tmp_path / "e.toml", tmp_path)[:4] == words[:4]
        pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
        made = subprocess.Popen(words, env=environment(), cwd=tmp_path, text=True, start_new_session=True, **pipes)
        processes.append(made)
        return made

    yield started
    for process in processes:
        process.kill()
        process.communicate()


def test_a_worker_runs_an_experiment(start, tmp_path):
    process = start()
    out = process.stdout.read()
    assert process.wait(60) == 0
    assert "Run folder: " in out and (only_run(tmp_path) / "result.json").exists()


def test_a_worker_saves_its_run_and_ends_when_its_parent_is_gone(start, tmp_path):
    process = start("learner.epochs=1000000")
    while "epoch" not in process.stdout.readline():
        assert process.poll() is None
    process.stdin.close()  # as the system does when the parent dies
    process.stdin = None
    _, err = process.communicate(timeout=20)
    assert process.returncode == 128 + signal.SIGTERM and "interrupted and saved" in err
    assert Checkpoint(only_run(tmp_path) / "checkpoint").read() is not None


def test_the_signal_is_sent_when_standard_input_ends(monkeypatch):
    reader, writer = os.pipe()
    sent = []
    monkeypatch.setattr(os, "kill", lambda *about: sent.append(about))
    with os.fdopen(reader) as stdin:
        monkeypatch.setattr(sys, "stdin", stdin)
        os.close(writer)
        worker.end_with_parent()
    assert sent == [(os.getpid(), signal.SIGTERM)]
