"""What learners exchange with the rest, and which learners have which abilities."""

import pytest
import torch
from support.learners import make
from torch import nn

from prer.errors import InputError
from prer.learners import LEARNERS
from prer.learners.interfaces import Batch, Generates, MemorySize, Recognises, generator_of


def test_prer_and_dgr_generate_and_others_are_refused_by_name(name):
    learner = make(name)
    assert isinstance(learner, Generates) == (name in {"prer", "dgr"})
    if isinstance(learner, Generates):
        assert generator_of(learner) is learner
    else:
        with pytest.raises(InputError, match=rf"^{name} cannot generate samples; PRER and DGR can$"):
            generator_of(learner)


def test_something_without_a_name_is_refused_too():
    with pytest.raises(InputError, match=r"^this learner cannot generate samples"):
        generator_of(object())


def test_only_prer_predicts_without_the_task():
    assert [name for name in LEARNERS if isinstance(make(name), Recognises)] == ["prer"]


def test_a_batch_has_no_past_unless_something_is_rehearsed():
    x = torch.zeros(1, 2, 3)
    batch = Batch(x, x[..., 0].long(), x, x[..., 0].long(), lambda z, noise: z)
    assert batch.past == () and batch.heads is None
    assert batch._replace(x=x + 1).y is batch.y


def test_the_size_of_a_memory_counts_one_seed_in_scalars_and_in_bytes():
    kept = nn.Module()
    kept.register_buffer("x", torch.zeros(2, 3, 5, dtype=torch.uint8))  # 2 seeds, 3 samples of 5 pixels
    kept.register_buffer("y", torch.zeros(2, 3, dtype=torch.long))
    weights = nn.ParameterList([torch.zeros(2, 7)])
    assert MemorySize.of([kept, weights], 3) == MemorySize(floats=15 + 3 + 7, samples=3, bytes=15 + 3 * 8 + 7 * 4)
