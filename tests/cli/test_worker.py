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
from prer.sweeps.engines.local import command

pytestmark = pytest.mark.usefixtures("no_terminal")


def started(arrays, tmp_path, *settings):
    words = [sys.executable, "-P", "-m", "prer.cli.worker", arrays, *NAIVE, *settings, "--seeds", "1", "--verbose"]
    assert command(tmp_path / "e.toml", tmp_path)[:4] == words[:4]
    pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    return subprocess.Popen(words, env=environment(), cwd=tmp_path, text=True, start_new_session=True, **pipes)


def test_a_worker_runs_an_experiment(arrays, tmp_path):
    process = started(arrays, tmp_path)
    out = process.stdout.read()
    assert process.wait(60) == 0, process.stderr.read()
    process.communicate()
    assert "Run folder: " in out and (only_run(tmp_path) / "result.json").exists()


def test_a_worker_saves_its_run_and_ends_when_its_parent_is_gone(arrays, tmp_path):
    process = started(arrays, tmp_path, "learner.epochs=1000000")
    while "epoch" not in process.stdout.readline():
        assert process.poll() is None
    process.stdin.close()  # as the system does when the parent dies
    process.stdout.read()
    assert process.wait(60) == 128 + signal.SIGTERM
    assert "interrupted and saved" in process.stderr.read()
    process.stdout.close(), process.stderr.close()
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
