"""Killed and resumed processes end in the same state, to the last bit; benchmarks/kill_runs.py does far more."""

import os

import pytest
from support.commands import killed

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="the script forks processes, to save their imports")


@pytest.fixture(scope="module")
def measured(tmp_path_factory):
    """Kills at random on three streams, and at every call of the second checkpoint: one process, which imports once."""
    at_random = ["--prer", "3", "--others", "1", "--learners", "prer", "si", "dgr", "replay"]
    at_calls = ["--faults", "si", "--checkpoints", "2"]
    return killed("kill_runs.py", tmp_path_factory.mktemp("killed"), *at_random, *at_calls, "--workers", "1")


def test_runs_killed_at_random_end_as_if_never_stopped(measured):
    total = measured["random"]["total"]
    assert total["runs"] == total["equal digests"] == total["equal in all"] == 6
    assert total["kills"] >= 6
    assert total["resumes from a checkpoint"] > 0


def test_a_run_that_dies_at_any_call_of_a_checkpoint_ends_as_if_never_stopped(measured):
    total = measured["calls"]["total"]
    assert total["runs"] == total["equal digests"] == total["equal in all"]
    assert total["kills in a checkpoint"] >= total["runs"] > 50
    assert total["resumes from a checkpoint"] >= total["runs"]


@pytest.mark.slow
def test_a_run_that_dies_at_any_other_call_ends_as_if_never_stopped(tmp_path):
    options = ["--prer", "0", "--others", "0", "--faults", "naive", "--checkpoints", "0", "1", "-1"]
    total = killed("kill_runs.py", tmp_path, *options)["calls"]["total"]
    assert total["runs"] == total["equal digests"] == total["equal in all"]
    assert total["kills in beginning"] and total["kills in training"] and total["kills in ending"]
