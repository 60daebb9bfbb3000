"""The recorded runs of the paper's tables."""

import pytest
from support.benchmarks import unpack_runs


@pytest.fixture(scope="session")
def runs(tmp_path_factory):
    """The recorded runs as run folders, which tests only read."""
    return unpack_runs(tmp_path_factory.mktemp("paper"))
