"""A finished run and a stopped one, and copies to be damaged."""

import pytest
from support.folders import EPOCHS, copied, killed_run, made, write_data


@pytest.fixture(scope="session")
def finished(tmp_path_factory):
    """The folder of a run that was never stopped."""
    return made(tmp_path_factory.mktemp("finished"))


@pytest.fixture(scope="session")
def stopped(tmp_path_factory):
    """The folder of the same run, killed in its second task."""
    return killed_run(tmp_path_factory.mktemp("stopped"), EPOCHS - 2)


@pytest.fixture
def run(stopped, tmp_path):
    """A copy of the stopped run."""
    return copied(stopped, tmp_path / "in")


@pytest.fixture
def done(finished, tmp_path):
    """A copy of the finished run."""
    return copied(finished, tmp_path / "done")


@pytest.fixture
def here(tmp_path, monkeypatch):
    """The current folder, which holds nothing but the data."""
    monkeypatch.chdir(tmp_path)
    write_data(tmp_path / "my.npz")
    return tmp_path
