"""Sizes of small networks, and the comparison of a stack of seeds with each seed alone."""

import torch

from prer.address import Address
from prer.nn.stacked import stack

SEEDS = Address((0, 1, 2))
IMAGES = [(1, 8, 8), (1, 28, 28), (3, 32, 32), (2, 9, 13), (4, 11, 10)]
CHANNELS = (2, 3, 5)


def widths(shape, sizes=CHANNELS):
    """The arguments of an encoder or decoder for this shape."""
    return shape, 6, sizes, sizes


def alone(build, stacked, seed):
    """The module of one seed, without a stack."""
    module = build().to(next(stacked.parameters()).dtype)
    module.load_state_dict({name: tensor[seed] for name, tensor in stacked.state_dict().items()})
    return module


def assert_stack_is_each_seed(build, shapes):
    """Outputs and gradients of a stack are those of each seed alone, for inputs of these shapes."""
    stacked = stack(build, SEEDS).double()
    inputs = [(SEEDS / i).uniform(4, *shape).double().requires_grad_() for i, shape in enumerate(shapes)]
    output = stacked(*inputs)
    direction = (SEEDS / "direction").normal(*output.shape[1:]).double()
    (output * direction).sum().backward()
    for seed in range(len(SEEDS.seeds)):
        own, own_inputs = alone(build, stacked, seed), [x[seed].detach().requires_grad_() for x in inputs]
        own_output = own(*own_inputs)
        torch.testing.assert_close(output[seed], own_output)
        (own_output * direction[seed]).sum().backward()
        torch.testing.assert_close(inputs[0].grad[seed], own_inputs[0].grad)
        for (name, parameter), theirs in zip(own.named_parameters(), stacked.parameters(), strict=True):
            torch.testing.assert_close(theirs.grad[seed], parameter.grad, msg=lambda m, name=name: f"{name}: {m}")
