"""A finished run and a small file of data for commands."""

import shutil
from pathlib import Path

import numpy as np
import pytest
from support.commands import NAIVE_RUN, python


@pytest.fixture(scope="session")
def naive_run(tmp_path_factory):
    """A naive run of two seeds on the digits, in a new Python: its process and its folder."""
    cwd = tmp_path_factory.mktemp("cli")
    done = python("-m", "prer", *NAIVE_RUN, cwd=cwd)
    (folder,) = (cwd / "runs").iterdir()
    return done, folder


@pytest.fixture
def finished(naive_run, tmp_path):
    """A copy of the naive run in ./runs, to be shown or damaged."""
    folder = naive_run[1]
    return Path(shutil.copytree(folder, tmp_path / "runs" / folder.name)).relative_to(tmp_path)


@pytest.fixture
def arrays(tmp_path):
    """The setting for a file of small vectors, with a hostile name among its four classes."""
    x = np.random.default_rng(0).normal(size=(48, 4)).astype(np.float32)
    np.savez(tmp_path / "my.npz", x=x, y=np.array(["[red]", "b", "c", "d"] * 12))
    return "stream.data=my.npz"
