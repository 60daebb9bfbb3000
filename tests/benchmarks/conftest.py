"""The recorded runs of the paper's tables."""

import pytest
from support.benchmarks import script, unpack_runs

from prer.paper import variants
from prer.paper.plan import Request
from prer.paper.reproduce import NEEDED, existing

PARTS = {"kmnist": "kmnist10k", "svhn": "svhn46k"}  # of the paper's data, by the names of their folders


@pytest.fixture(scope="session")
def runs(tmp_path_factory):
    """The recorded runs as run folders, which tests only read."""
    return unpack_runs(tmp_path_factory.mktemp("paper"))


@pytest.fixture(scope="session")
def recorded(runs):
    """The request for all tables, and the recorded outcomes of each table."""
    request = Request(paths=PARTS, variants=variants.NAMES, finished=True)
    return request, {name: existing(NEEDED[name](request), runs) for name in script("reproducibility").SECTIONS}
