"""A stack of seeds computes what each seed computes alone."""

import pytest
import torch
from support.networks import IMAGES, SEEDS, assert_stack_is_each_seed, widths

from prer.nn.heads import Head
from prer.nn.networks import Decoder, Encoder, Inputs
from prer.nn.stacked import Linear, floats, stack

LAYERS = {
    "linear": (lambda: Linear(5, 4), [(5,)]),
    "head": (lambda: Head(13, 3, 0.2), [(13,)]),
    "head with dropout": (lambda: Head(13, 3, 0.2), [(13,), (sum(Head.widths(13)),)]),
    "encoder of vectors": (lambda: Encoder(*widths((7,))), [(7,)]),
    "decoder of vectors": (lambda: Decoder(*widths((7,))), [(6,)]),
    "encoder without hidden layers": (lambda: Encoder((7,), 6, (), ()), [(7,)]),
}
LAYERS |= {f"encoder {shape}": (lambda shape=shape: Encoder(*widths(shape)), [shape]) for shape in IMAGES}
LAYERS |= {f"decoder {shape}": (lambda shape=shape: Decoder(*widths(shape)), [(6,)]) for shape in IMAGES}


@pytest.mark.parametrize("layer", LAYERS)
def test_a_stack_computes_what_each_seed_computes_alone(layer):
    assert_stack_is_each_seed(*LAYERS[layer])


def test_stack_leaves_the_global_generator_alone():
    torch.manual_seed(5)
    before = torch.get_rng_state()
    stack(lambda: Head(8, 2, 0.0), SEEDS)
    assert torch.equal(torch.get_rng_state(), before)


def test_buffers_have_the_axis_of_seeds_too():
    assert stack(lambda: Inputs((4,)), SEEDS).mean.shape == (3, 4)
    assert floats(stack(lambda: Inputs((4,)), SEEDS)) == 8
    assert floats(stack(lambda: Linear(3, 2), SEEDS), stack(lambda: Inputs((4,)), SEEDS)) == 16
