"""The blocks of a level as one function, against plain operations and autograd."""

import copy

import pytest
import torch
from support.kernels import numbers

from prer.address import Address
from prer.densities.flow import Level
from prer.kernels.blocks import Blocks, of_layers
from prer.nn.stacked import stack

EPS = 1e-3
SIZES = [(1, 2, 1, 1, 5), (2, 5, 3, 4, 9), (3, 8, 2, 2, 33)]  # S, D, K, V, B


def level(S, D, K, V, bounded, conditioned=None):
    """A level in double precision without trivial parameters; its estimates are those of the last batch."""
    orders = Address(tuple(range(K))).permutation(D)
    made = stack(lambda: Level(orders, conditioned or K, V, "batch", bounded, 0.0), Address(tuple(range(S)))).double()
    with torch.no_grad():
        for number, parameter in enumerate(made.parameters()):
            parameter.copy_(0.5 * numbers(*parameter.shape, seed=number))
    return made.train()


def arguments(made, bounded):
    layers = made.weight_in, made.weight_condition, made.bias_in, made.weight_out, made.bias_out
    return *layers, made.order[0], made.back[0], bounded, EPS


@pytest.mark.parametrize("bounded", [True, False])
@pytest.mark.parametrize("sizes", SIZES, ids=str)
def test_values_and_gradients_are_those_of_plain_operations(sizes, bounded):
    S, D, K, V, B = sizes
    made = level(S, D, K, V, bounded)
    u, v = (2 * numbers(S, D, B).double() + 1).requires_grad_(), numbers(S, V, B, seed=1).double().requires_grad_()
    direction = numbers(S, D, B, seed=2).double(), numbers(S, B, seed=3).double()
    plain = copy.deepcopy(made)
    expected = plain(u, v, first=True)  # a first batch is computed by autograd
    wanted = torch.autograd.grad(expected, (u, v, *plain.parameters()), direction)
    *found, mean, var = Blocks.apply(u, v, *arguments(made, bounded))
    gradients = torch.autograd.grad(found, (u, v, *made.parameters()), direction)
    for mine, theirs in zip((*found, mean, var, *gradients), (*expected, plain.mean, plain.var, *wanted), strict=True):
        torch.testing.assert_close(mine, theirs, rtol=1e-8, atol=1e-9)


@pytest.mark.parametrize("bounded", [True, False])
def test_gradients_are_those_of_finite_differences(bounded):
    made = level(2, 4, 2, 3, bounded)
    u, v = numbers(2, 4, 6).double().requires_grad_(), numbers(2, 3, 6, seed=1).double().requires_grad_()
    assert torch.autograd.gradcheck(lambda *inputs: Blocks.apply(*inputs)[:2], (u, v, *arguments(made, bounded)))


def test_the_log_determinant_is_that_of_the_jacobian():
    """Of one sample among thousands, so that the statistics of the batch hardly depend on it."""
    made = level(1, 4, 1, 1, True)
    u, v = numbers(1, 4, 4000).double(), numbers(1, 1, 4000, seed=1).double()
    _, log_det, _, _ = Blocks.apply(u, v, *arguments(made, True))

    def first_sample(x):
        moved = torch.cat([x.view(1, 4, 1), u[..., 1:]], 2)
        return Blocks.apply(moved, v, *arguments(made, True))[0][0, :, 0]

    jacobian = torch.autograd.functional.jacobian(first_sample, u[0, :, 0])
    torch.testing.assert_close(log_det[0, 0], jacobian.det().abs().log(), rtol=0, atol=0.01)


def test_gradients_of_layers_are_products_of_inputs_and_gradients():
    K, S, B, V, a, H, out = 2, 3, 5, 4, 2, 6, 8
    v, inputs, hidden = numbers(S, V, B), numbers(K, S, a, B, seed=1), numbers(K, S, H, B, seed=2)
    condition, g_in, g_out = numbers(S, K, V, H, seed=3), numbers(K, S, H, B, seed=4), numbers(K, S, out, B, seed=5)
    found = of_layers(v, inputs, hidden, condition, g_in, g_out)
    expected = (
        torch.einsum("skvh,kshb->svb", condition, g_in),
        torch.einsum("ksab,kshb->skah", inputs, g_in),
        torch.einsum("svb,kshb->skvh", v, g_in),
        torch.einsum("kshb->skh", g_in),
        torch.einsum("kshb,ksob->skho", hidden, g_out),
        torch.einsum("ksob->sko", g_out),
    )
    for mine, theirs in zip(found, expected, strict=True):
        torch.testing.assert_close(mine, theirs, rtol=1e-4, atol=1e-5)
