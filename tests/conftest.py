"""Fixtures for tests in several folders."""

import sys

import pytest
from support.data_sets import empty_folder, shrink
from support.extractors import install
from support.hostile_files import bounded_memory
from support.models import run_of_vectors

from prer.features.named import named
from prer.learners import registry


@pytest.fixture(autouse=True)
def unregistered(monkeypatch):
    """What a test registers is gone after it, whichever file the same process runs next."""
    monkeypatch.setattr(registry, "_registered", dict(registry._registered))
    monkeypatch.setattr(registry, "_sources", dict(registry._sources))


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
            "prer.sweeps.engines.worker.command", lambda file, out: [sys.executable, "-Sc", code, file, out]
        )

    return run


@pytest.fixture
def little_memory():
    """The memory of this process is bounded, so that a file that claims too much fails at once."""
    with bounded_memory():
        yield


@pytest.fixture
def data_folder(monkeypatch, tmp_path):
    """An empty data folder, and no network."""
    return empty_folder(monkeypatch, tmp_path / "data")


@pytest.fixture
def tiny(monkeypatch):
    """Data sets whose files hold a few bytes."""
    shrink(monkeypatch)


@pytest.fixture(scope="session")
def run_on_vectors(tmp_path_factory):
    """The folder of a finished run on vectors, their samples and labels."""
    return run_of_vectors(tmp_path_factory.mktemp("vectors"))


@pytest.fixture
def extractors(monkeypatch):
    """Extractors that take no time under the known names; the size of every batch that they get."""
    yield install(monkeypatch)
    named.cache_clear()
