"""The flow's blocks in C: what they compute."""

import copy
import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from support.kernels import compiled, numbers

from prer.address import Address
from prer.densities import flow as flows
from prer.densities.flow import Flow, Level
from prer.kernels.registry import kernels
from prer.nn.stacked import stack


def level(S, D, K, V, bounded=True, seed=0):
    """A level without trivial parameters; its running estimates are the statistics of the last batch."""
    orders = Address(tuple(range(K))).permutation(D)
    made = stack(lambda: Level(orders, K, V, "batch", bounded, 0.0), Address(tuple(range(S)))).train()
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in made.parameters():
            width = 1 if parameter.dim() == 3 else parameter.shape[2] ** 0.5
            parameter.copy_(torch.randn(parameter.shape, generator=generator) / width)
    return made.train()


def results(level, u, v, first=False):
    """All results of a level: u, log-determinant, gradients, mean and variance."""
    u, v = u.clone().requires_grad_(), v.clone().requires_grad_()
    made, log_det = level(u, v, first=first)
    direction = numbers(*made.shape, seed=3).to(u), numbers(*log_det.shape, seed=4).to(u)
    gradients = torch.autograd.grad((made, log_det), (u, v, *level.parameters()), direction)
    return [t.detach().clone() for t in (made, log_det, *gradients, level.mean, level.var)]


def by_torch(*arguments):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(flows, "kernels", lambda *_: None)
        return results(*arguments)


@compiled
@given(
    S=st.integers(1, 3),
    D=st.integers(2, 40) | st.sampled_from([64, 131, 150]),
    K=st.integers(1, 4),
    B=st.integers(2, 70) | st.sampled_from([128, 129]),
    V=st.integers(1, 20),
    bounded=st.booleans(),
)
@settings(derandomize=True, database=None, deadline=None, max_examples=60)
def test_values_and_gradients_are_those_of_plain_operations_in_double_precision(variant, S, D, K, B, V, bounded):
    ours = level(S, D, K, V, bounded)
    u, v = 2 * numbers(S, D, B) + 1, numbers(S, V, B, seed=1)
    exact = results(copy.deepcopy(ours).double(), u.double(), v.double(), True)  # a first batch is computed by autograd
    worse = 8 if B > 3 else 64  # the variance of two or three samples magnifies rounding
    for mine, plain, true in zip(results(ours, u, v), by_torch(ours, u, v), exact, strict=True):
        assert mine.shape == true.shape
        error, theirs = ((t.double() - true).abs().max() for t in (mine, plain))
        assert error <= 1e-6 * true.abs().max().clamp_min(1) + worse * theirs


@compiled
@pytest.mark.parametrize("spread", [1.0, 30.0])
@pytest.mark.parametrize("bounded", [True, False])
def test_scales_at_both_ends_are_exact(spread, bounded):
    ours = level(2, 150, 1, 3, bounded)
    with torch.no_grad():
        ours.bias_out.mul_(spread)
    u, v = numbers(2, 150, 40), numbers(2, 3, 40, seed=1)
    exact = results(copy.deepcopy(ours).double(), u.double(), v.double(), True)
    for mine, true in zip(results(ours, u, v), exact, strict=True):
        torch.testing.assert_close(mine.double(), true, rtol=1e-5, atol=1e-5 * float(true.abs().max()))


@compiled
def test_the_product_of_many_small_scales_does_not_underflow():
    ours = level(1, 400, 1, 1, bounded=False)
    with torch.no_grad():
        ours.weight_out.zero_()
        ours.bias_out.fill_(-2)
    _, log_det = ours(numbers(1, 400, 9), numbers(1, 1, 9))
    expected = -200 * math.log(2) - 0.5 * (ours.var + ours.eps).log().sum()
    torch.testing.assert_close(log_det, expected.expand(1, 9))


@compiled
@pytest.mark.parametrize("sizes", [(4, 9, 3, 37), (3, 50, 2, 64)], ids=str)
def test_a_seed_is_the_same_alone_with_others_and_again(sizes):
    S, D, K, B = sizes
    together, u, v = level(S, D, K, 5), numbers(S, D, B), numbers(S, 5, B, seed=1)
    every = results(together, u, v)
    for s in range(S):
        alone = copy.deepcopy(together)
        for tensor in (*alone.parameters(), alone.mean, alone.var, alone.order, alone.back):
            tensor.data = tensor.data[s : s + 1].clone()
        alone_u, alone_v = u[s : s + 1].clone().requires_grad_(), v[s : s + 1].clone().requires_grad_()
        made, log_det = alone(alone_u, alone_v)
        whole = numbers(*every[0].shape, seed=3), numbers(*every[1].shape, seed=4)
        gradients = torch.autograd.grad(
            (made, log_det), (alone_u, alone_v, *alone.parameters()), [d[s : s + 1] for d in whole]
        )
        for one, many in zip((made, log_det, *gradients, alone.mean, alone.var), every, strict=True):
            assert torch.equal(one[0], many[s])
    assert all(torch.equal(a, b) for a, b in zip(results(together, u, v), every, strict=True))


@compiled
def test_any_strides_work_and_the_backward_pass_can_run_twice():
    ours, u, v = level(2, 7, 2, 3), numbers(2, 7, 20), numbers(2, 3, 20, seed=1)
    turned = u.mT.contiguous().mT.requires_grad_()
    made, log_det = ours(turned, v.mT.contiguous().mT)
    total = made.sum() + log_det.sum()  # its gradients have strides of zero
    (first,), (again,) = (torch.autograd.grad(total, turned, retain_graph=True) for _ in range(2))
    plain = u.clone().requires_grad_()
    same, same_log_det = ours(plain, v)
    ones = torch.ones_like(same), torch.ones_like(same_log_det)
    (expected,) = torch.autograd.grad((same, same_log_det), plain, ones)
    assert torch.equal(made, same)
    assert torch.equal(first, expected)
    assert torch.equal(again, expected)
    apply, weight = kernels("prior", u).Prior.apply, numbers(2, 3, 14)
    assert torch.equal(apply(turned, v.mT.contiguous().mT, weight.mT.contiguous().mT), apply(u, v, weight))


@compiled
@pytest.mark.parametrize("broken", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("where", ["u", "v", "weight_in", "weight_condition", "bias_in", "weight_out", "bias_out"])
def test_values_that_are_not_finite_are_not_hidden(where, broken):
    ours, u, v = level(2, 6, 2, 3), numbers(2, 6, 20), numbers(2, 3, 20, seed=1)
    tensor = {"u": u, "v": v, **dict(ours.named_parameters())}[where]
    with torch.no_grad():
        tensor[1].view(-1)[0] = broken
    found = results(ours, u, v)
    for mine, plain in zip(found, by_torch(ours, u, v), strict=True):
        assert mine[0].isfinite().all()
        assert mine[1].isfinite().all() == plain[1].isfinite().all()
    if math.isnan(broken):
        assert not found[1][1].isfinite().any()


@compiled
def test_one_sample_has_no_variance():
    assert not level(1, 4, 1, 3)(numbers(1, 4, 1), numbers(1, 3, 1))[1].isfinite().any()


def likelihood(flow, z, y):
    """The log-density of a flow in training, and the gradients of its parameters."""
    log_prob = flow.log_prob(z, y)
    return log_prob, *torch.autograd.grad(log_prob, list(flow.parameters()), numbers(*log_prob.shape, seed=3).to(z))


@compiled
@given(
    S=st.integers(1, 3),
    D=st.integers(2, 70),
    V=st.integers(1, 20),
    B=st.integers(2, 70),
    gain=st.sampled_from([0.3, 9.0]),
)
@settings(derandomize=True, database=None, deadline=None, max_examples=30)
def test_the_density_is_that_of_plain_operations_in_double_precision(variant, S, D, V, B, gain):
    address = Address(tuple(range(S)))
    ours = stack(lambda: Flow(D, blocks=2, condition_size=V), address).train()
    ours.add(torch.tensor([10, 10, 10]), address)
    with torch.no_grad():
        ours.weight_prior.copy_(gain / V**0.5 * numbers(S, V, 2 * D))
    z, y = numbers(S, B, D, seed=1), (torch.arange(B) % 3).expand(S, -1)
    exact = likelihood(copy.deepcopy(ours).double(), z.double(), y)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(flows, "kernels", lambda *_: None)
        plain = likelihood(copy.deepcopy(ours), z, y)
    largest = max(t.abs().max() for t in exact)  # small gradients are differences of large ones, and rounded like these
    for mine, theirs, true in zip(likelihood(ours, z, y), plain, exact, strict=True):
        error, rounding = ((t.double() - true).abs().max() for t in (mine, theirs))
        assert error <= 2e-6 * true.abs().max().clamp_min(1) + 2e-7 * largest + 8 * rounding
