"""Runs of the paper's tables: recorded ones, and folders with known numbers."""

from functools import cache

import pytest
from support.benchmarks import unpack_runs
from support.paper import outcomes_on_mnist

from prer.paper.plan import Request
from prer.runs import environment


@pytest.fixture(scope="module", autouse=True)
def one_commit():
    """Ask git for the commit once: it takes more time than a folder."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(environment, "_commit", cache(environment._commit))
        yield


@pytest.fixture(scope="session")
def runs(tmp_path_factory):
    """The recorded runs as run folders, which tests only read."""
    return unpack_runs(tmp_path_factory.mktemp("paper"))


@pytest.fixture
def mnist(tmp_path):
    """The outcomes of all methods on MNIST: GEM and the literal PRER did not run, ER failed."""
    return outcomes_on_mnist(tmp_path)


@pytest.fixture
def quick(monkeypatch, no_terminal, tmp_path):
    """`--fast` trains hardly at all, and nothing is fetched."""
    tiny = ("learner.epochs=1", "learner.embedding=4", "learner.channels=[2]")
    tiny_prer = (*tiny, "learner.epochs_autoencoder=1", "learner.density.epochs=1", "learner.density.blocks=1")
    monkeypatch.setenv("PRER_OFFLINE", "1")
    monkeypatch.setenv("PRER_DATA", str(tmp_path / "data"))
    usual = Request.experiment

    def experiment(self, data, method, overrides=()):
        smaller = (tiny_prer if method == "prer" else tiny) if self.fast else ()
        return usual(self, data, method, (*smaller, *overrides))

    monkeypatch.setattr(Request, "experiment", experiment)
