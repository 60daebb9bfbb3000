"""A run elsewhere starts when its folder says so."""

import os
from pathlib import Path

import pytest
from support.sweeps import GRID, sweep

from prer.runs.folder import RunFolder
from prer.sweeps.engines.watched import Watched

pytestmark = pytest.mark.usefixtures("no_terminal")


@pytest.mark.parametrize("begun", [False, True])
def test_a_run_is_running_once_it_starts_or_resumes(begun):
    (point, *_) = sweep(GRID).points()
    folder = RunFolder(Path(point.folder))
    folder.path.mkdir()
    about = folder.path / "environment.json"
    if begun:
        about.write_text("{}")
        os.utime(about, (1, 1))
    watched = Watched(point, folder)
    watched.notice()
    assert not watched.future.running()
    about.write_text("{}")
    watched.notice()
    watched.notice()
    assert watched.future.running()
