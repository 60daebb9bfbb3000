"""The learner and the stream of a finished run."""

import torch
from safetensors.torch import load_file
from support.models import TINY, finished_run

from prer.runs.run import load_model


def test_a_model_is_loaded_as_it_was(tmp_path):
    finished = finished_run(tmp_path, *TINY)
    learner, stream = load_model(finished)
    saved = load_file(finished / "model" / "model.safetensors")
    state = learner.state()
    assert state.keys() == saved.keys()
    assert all(torch.equal(state[name], saved[name]) for name in saved)
    assert len(stream) == 5
