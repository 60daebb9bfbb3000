"""A finished run and a stopped one, copies to be damaged, and a setting that is added later."""

from dataclasses import make_dataclass

import pytest
from support.folders import EPOCHS, copied, killed_run, made, write_data

from prer.learners import LEARNERS
from prer.settings import setting
from prer.streams.config import StreamConfig


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


def with_one_more(kind):
    """The same settings and one more, with a default."""
    one_more = ("extra", int, setting(3, "something new", low=0))
    return make_dataclass(kind.__name__, [one_more], bases=(kind,), kw_only=True)


@pytest.fixture(params=["learner", "stream"])
def extra(request, monkeypatch):
    """The name of a setting that this version has beyond the ones it has."""
    if request.param == "learner":
        monkeypatch.setitem(LEARNERS, "prer", with_one_more(LEARNERS["prer"]))
    else:
        monkeypatch.setattr("prer.runs.experiment.StreamConfig", with_one_more(StreamConfig))
    return f"{request.param}.extra"
