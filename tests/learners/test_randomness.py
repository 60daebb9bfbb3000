"""The contract of every learner about seeds, besides `prer.testing`: large images, and seeds alone or with others."""

import numpy as np
import pytest
import torch
from support.learners import blobs, captured, make, pictures, started

from prer import learn


def test_is_deterministic_on_large_images_and_seeds_differ(name):
    stream = pictures(classes=4, per_class=16, size=28)
    first, again, other = (learn(stream, make(name), seeds=seeds, device="cpu") for seeds in ([0, 1], [0, 1], [0, 2]))
    assert first.digest == again.digest != other.digest


def test_a_sixth_seed_changes_neither_weights_nor_batches_of_the_others(name, monkeypatch):
    stream = pictures()
    five, six = (started(make(name), stream, seeds=range(n)) for n in (5, 6))
    for key, value in five.state().items():
        assert torch.equal(value, six.state()[key][:5]), key
    fed = [captured(learner, stream[0], monkeypatch) for learner in (five, six)]
    for phase in fed[0]:
        assert fed[0][phase][2], phase
        for a, b in zip(fed[0][phase][2], fed[1][phase][2], strict=True):
            # Embeddings are computed by a network, whose rounding may depend on the number of seeds.
            torch.testing.assert_close(a, b[:5], rtol=0, atol=1e-5 if a.is_floating_point() and phase == "flow" else 0)


@pytest.fixture
def in_float64(monkeypatch):
    """Training in double precision, so that rounding errors stay below the tolerance."""
    monkeypatch.setattr(torch.Tensor, "float", torch.Tensor.double)
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(torch.float32)


@pytest.mark.parametrize("stream", [blobs(), pictures()], ids=["vectors", "images"])
@pytest.mark.usefixtures("in_float64")
def test_a_seed_learns_the_same_alone_and_with_others_up_to_rounding(name, stream):
    alone, together = make(name), make(name)
    single = learn(stream, alone, seeds=[3], device="cpu")
    several = learn(stream, together, seeds=[0, 3, 7], device="cpu")
    for key, tensor in alone.state().items():
        torch.testing.assert_close(together.state()[key][1:2], tensor, rtol=1e-6, atol=1e-6, msg=key)
    np.testing.assert_array_equal(several.matrix[1], single.matrix[0])
