"""Models of finished runs."""

import shutil

import pytest
from support.models import TINY, finished_run


@pytest.fixture(scope="session")
def finished(tmp_path_factory):
    """The folder of a finished run on digits."""
    return finished_run(tmp_path_factory.mktemp("runs"), *TINY)


@pytest.fixture
def alone(finished, tmp_path):
    """The model's own folder, with nothing of the run beside it."""
    return shutil.copytree(finished / "model", tmp_path / "somewhere")
