"""A checkpoint is replaced by a verified one."""

import pytest
import torch

from prer.errors import RunError
from prer.runs import checkpoint
from prer.runs.checkpoint import Checkpoint, Saved


def test_a_corrupted_checkpoint_does_not_replace_the_one_before(tmp_path, monkeypatch):
    kept, durable = Checkpoint(tmp_path / "checkpoint"), checkpoint.durable
    kept.write(Saved({"tasks": 1}, {"a": torch.ones(3)}))

    def changed(file, data):
        durable(file, data[:-1] + bytes([data[-1] ^ 1]))

    monkeypatch.setattr(checkpoint, "durable", changed)
    with pytest.raises(RunError, match="cannot be read back"):
        kept.write(Saved({"tasks": 2}, {"a": torch.zeros(3)}))
    assert kept.read().about == {"tasks": 1}
