"""Fixtures for tests in several folders."""

import sys

import pytest


@pytest.fixture
def no_terminal(monkeypatch, tmp_path):
    """The current folder is the test's own, and nothing in the environment asks for colours or a width."""
    for name in ("NO_COLOR", "FORCE_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE", "COLUMNS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def workers(monkeypatch):
    """Let workers of a sweep run this code instead of an experiment; sys.argv holds its file and the output folder."""

    def run(code):
        monkeypatch.setattr(
            "prer.sweeps.engines.local.command", lambda file, out: [sys.executable, "-Sc", code, file, out]
        )

    return run
