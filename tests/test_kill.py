"""Real processes, killed and resumed, end in the same state to the last bit; benchmarks/kill_runs.py does far more."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from prer.errors import RunError
from prer.runs import checkpoint
from prer.runs.checkpoint import Checkpoint, Saved
from prer.runs.folder import RunFolder

SCRIPT = Path(__file__).parents[1] / "benchmarks" / "kill_runs.py"


def killed(folder, *options):
    """What the script found out."""
    found = folder / "found.json"
    environment = os.environ | {"PYTHONPATH": str(SCRIPT.parents[1]), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, str(SCRIPT), "--json", str(found), *options]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert found.exists(), done.stdout + done.stderr
    record = json.loads(found.read_text())
    assert record["faults"] == []
    assert done.returncode == 0
    return record


needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are forked, to spare them their imports")


@needs_fork
def test_runs_killed_at_random_end_as_if_never_stopped(tmp_path):
    options = [
        "--prer",
        "4",
        "--others",
        "1",
        "--learners",
        "prer",
        "si",
        "dgr",
        "replay",
        "--faults",
        "--workers",
        "1",
    ]
    total = killed(tmp_path, *options)["random"]["total"]
    assert total["runs"] == total["equal digests"] == total["equal in all"] == 7
    assert total["kills"] >= 7
    assert total["resumes from a checkpoint"] > 0


@needs_fork
def test_a_run_that_dies_at_any_call_of_a_checkpoint_ends_as_if_never_stopped(tmp_path):
    options = ["--prer", "0", "--others", "0", "--faults", "si", "--checkpoints", "2", "--workers", "1"]
    total = killed(tmp_path, *options)["calls"]["total"]
    assert total["runs"] == total["equal digests"] == total["equal in all"]
    assert total["kills in a checkpoint"] >= total["runs"] > 50
    assert total["resumes from a checkpoint"] >= total["runs"]


@needs_fork
@pytest.mark.slow
def test_a_run_that_dies_at_any_other_call_ends_as_if_never_stopped(tmp_path):
    options = ["--prer", "0", "--others", "0", "--faults", "naive", "--checkpoints", "0", "1", "-1"]
    total = killed(tmp_path, *options)["calls"]["total"]
    assert total["runs"] == total["equal digests"] == total["equal in all"]
    assert total["kills in beginning"] and total["kills in training"] and total["kills in ending"]


def test_a_checkpoint_that_the_disk_has_changed_does_not_replace_the_one_before(tmp_path, monkeypatch):
    kept, durable = Checkpoint(tmp_path / "checkpoint"), checkpoint.durable
    kept.write(Saved({"tasks": 1}, {"a": torch.ones(3)}))

    def changed(file, data):
        durable(file, data[:-1] + bytes([data[-1] ^ 1]))

    monkeypatch.setattr(checkpoint, "durable", changed)
    with pytest.raises(RunError, match="cannot be read back"):
        kept.write(Saved({"tasks": 2}, {"a": torch.zeros(3)}))
    assert kept.read().about == {"tasks": 1}


def test_a_run_whose_first_file_was_cut_short_can_begin(tmp_path):
    (tmp_path / ".experiment.toml.new").write_text("seeds =")
    (tmp_path / "run.lock").touch()
    RunFolder(tmp_path).claim("seeds = 1")


@pytest.mark.parametrize("place", ["checkpoint", "checkpoint.new", "checkpoint.old"])
def test_a_run_keeps_to_its_threads_wherever_its_checkpoint_lies(tmp_path, place):
    (tmp_path / "environment.json").write_text('{"threads": 3}')
    (tmp_path / place).mkdir()
    assert RunFolder(tmp_path).threads == 3
