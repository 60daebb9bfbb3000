"""Convolutions in C: what they compute, and when they are used."""

import copy
import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from support.kernels import compiled, numbers

from prer.address import Address
from prer.bench.ready import pictures
from prer.kernels.cpu import convolution as ours
from prer.kernels.geometry import halved
from prer.learners import LEARNERS
from prer.nn import convolution, networks
from prer.nn.convolution import Conv2d, ConvTranspose2d
from prer.nn.networks import Encoder
from prer.nn.stacked import stack

pytestmark = [compiled, pytest.mark.usefixtures("one_thread")]


@pytest.fixture(scope="module")
def one_thread():
    """One thread, as in a run."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def layer(kind, S=2, C=3, N=5, size=(9, 12), padding=(1, 2)):
    """A convolution or its mirror image, and the shape of its input."""
    small = tuple(halved(s, p) for s, p in zip(size, padding, strict=True))
    missing = tuple(s % 2 for s in size)
    build = {"convolution": lambda: Conv2d(C, N, padding), "mirror": lambda: ConvTranspose2d(N, C, padding, missing)}
    return stack(build[kind], Address(tuple(range(S)))), {"convolution": (C, *size), "mirror": (N, *small)}[kind]


def results(layer, x):
    """The output and all gradients."""
    x = x.clone().requires_grad_()
    y = layer(x)
    gradients = torch.autograd.grad(y, (x, *layer.parameters()), numbers(*y.shape, seed=3).to(y))
    return [t.detach() for t in (y, *gradients)]


def by_ours(*arguments):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(convolution, "_tiny", lambda *_: None)
        patch.setattr(convolution, "_seeds", lambda *_, **__: pytest.fail("computed by torch"))
        return results(*arguments)


def by_torch(*arguments):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(convolution, "_tiny", lambda *_: None)
        patch.setattr(convolution, "kernels", lambda *_: None)
        return results(*arguments)


both = pytest.mark.parametrize("kind", ["convolution", "mirror"])


@both
@given(
    S=st.integers(1, 3),
    B=st.sampled_from([32, 64, 96]),
    C=st.integers(1, 14),
    N=st.integers(1, 14) | st.sampled_from([32, 33, 48, 70]),
    size=st.tuples(st.integers(2, 15), st.integers(2, 15)),
    padding=st.tuples(st.integers(1, 2), st.integers(1, 2)),
)
@settings(derandomize=True, database=None, deadline=None, max_examples=60)
def test_values_and_gradients_are_those_of_torch_in_double_precision(variant, kind, S, B, C, N, size, padding):
    made, shape = layer(kind, S, C, N, size, padding)
    x = numbers(S, B, *shape) + 1
    exact = by_torch(copy.deepcopy(made).double(), x.double())
    for mine, theirs, true in zip(by_ours(made, x), by_torch(made, x), exact, strict=True):
        assert mine.shape == true.shape
        error, rounding = ((t.double() - true).abs().max() for t in (mine, theirs))
        assert error <= 2e-6 * true.abs().max().clamp_min(1) + 8 * rounding


@both
def test_a_seed_is_the_same_alone_with_others_and_again(kind):
    together, shape = layer(kind, 3)
    x = numbers(3, 32, *shape)
    direction = numbers(*together(x).shape, seed=3)
    every = by_ours(together, x)
    for s in range(3):
        alone, own = copy.deepcopy(together), x[s : s + 1].clone().requires_grad_()
        for parameter in alone.parameters():
            parameter.data = parameter.data[s : s + 1].clone()
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(convolution, "_tiny", lambda *_: None)
            y = alone(own)
        gradients = torch.autograd.grad(y, (own, *alone.parameters()), direction[s : s + 1])
        assert all(torch.equal(one[0], many[s]) for one, many in zip((y, *gradients), every, strict=True))
    assert all(torch.equal(a, b) for a, b in zip(by_ours(together, x), every, strict=True))


@pytest.mark.parametrize(
    "more", [(ours.convolve, (1, 1)), (ours.mirror, (1, 1), (20, 24))], ids=["convolution", "mirror"]
)
def test_any_strides_work_and_the_backward_pass_can_run_twice(more):
    apply, *geometry = more
    x, weight, bias = numbers(2, 32, 4, 10, 12), numbers(2, 4, 4, 4, 4, seed=1), numbers(2, 4, seed=2)
    strange = [t.mT.contiguous().mT.requires_grad_() for t in (x, weight, bias)]
    y = apply(*strange, *geometry)
    first, again = (torch.autograd.grad(y.sum(), strange, retain_graph=True) for _ in range(2))  # with strides of zero
    plain = [t.requires_grad_() for t in (x, weight, bias)]
    same = apply(*plain, *geometry)
    expected = torch.autograd.grad(same, plain, torch.ones(same.shape))
    assert torch.equal(y, same)
    for one, other, true in zip(first, again, expected, strict=True):
        assert torch.equal(one, true) and torch.equal(other, true)


@both
def test_a_gradient_of_gradients_is_refused(kind):
    made, shape = layer(kind, size=(28, 28))
    x = numbers(2, 32, *shape).requires_grad_()
    (g,) = torch.autograd.grad(made(x).square().sum(), x, create_graph=True)
    with pytest.raises(RuntimeError, match="once_differentiable"):
        g.sum().backward()


@both
@pytest.mark.parametrize("where", ["input", "weight", "bias"])
@pytest.mark.parametrize("broken", [math.nan, math.inf, -math.inf])
def test_values_that_are_not_finite_are_not_hidden_and_do_not_spread(kind, where, broken):
    made, shape = layer(kind)
    x = numbers(2, 32, *shape)
    with torch.no_grad():
        {"input": x, **dict(made.named_parameters())}[where][1].view(-1)[0] = broken
    for mine, theirs in zip(by_ours(made, x), by_torch(made, x), strict=True):
        assert mine[0].isfinite().all()
        assert mine[1].isfinite().all() == theirs[1].isfinite().all()
    if where == "input":
        assert by_ours(made, x)[0][1, 1:].isfinite().all()  # the other samples


@pytest.fixture
def used(monkeypatch):
    """The sizes of the batches that C has convolved."""
    found = []
    apply = ours.convolve
    monkeypatch.setattr(ours, "convolve", lambda x, *more: found.append(x.shape[1]) or apply(x, *more))
    return found


def test_batches_of_whole_registers_are_computed_by_c(used):
    made = stack(lambda: Conv2d(2, 12, (1, 1)), Address((0,)))
    for batch in (1, 31, 32, 33, 64, 512, 544, 1024):
        made(numbers(1, batch, 2, 28, 28))
    made.double()(numbers(1, 32, 2, 28, 28).double())
    assert used == [32, 64, 512]


def test_tiny_maps_and_several_threads_are_left_to_torch(used, monkeypatch):
    made = stack(lambda: Conv2d(1, 12, (1, 1)), Address((0,)))
    made(numbers(1, 32, 1, 8, 8))
    monkeypatch.setattr(torch, "get_num_threads", lambda: 2)
    made(numbers(1, 32, 1, 28, 28))
    assert used == []


def test_samples_stay_last_in_memory_between_layers():
    body = stack(lambda: Encoder((1, 28, 28), 6, (4, 6, 8), ()), Address((0, 1)))
    maps = list(body.outputs(numbers(2, 32, 1, 28, 28)))[:3]
    assert [y.stride(1) for y in maps] == [1, 1, 1]


def trained():
    """The state of a learner of two tasks of images of 28 x 28, trained by SGD: Adam magnifies tiny gradients."""
    learner = LEARNERS["er"](epochs=2, batch=32, channels=(4, 6, 8), embedding=8, optimiser="sgd", lr=0.1)
    stream = pictures(2, 128, 28)
    learner.start(stream.shape, (0, 1))
    for task in stream:
        learner.learn(task)
    return learner.state()


def test_a_learner_learns_the_same_up_to_rounding_and_again_to_the_bit(used, monkeypatch):
    first, again = trained(), trained()
    assert used
    monkeypatch.setattr(convolution, "kernels", lambda *_: None)
    for name, tensor in trained().items():
        assert torch.equal(first[name], again[name])
        torch.testing.assert_close(first[name], tensor, rtol=1e-4, atol=1e-5)


@settings(derandomize=True, database=None, deadline=None, max_examples=60)
@given(st.integers(1, 3), st.integers(8, 20), st.integers(8, 20), st.lists(st.integers(1, 12), min_size=1, max_size=3))
def test_a_run_knows_whether_it_has_maps_for_c(C, H, W, channels):
    channels = channels[: 1 + (min(H, W) >= 12)]  # the last map must not vanish
    encoder = stack(lambda: Encoder((C, H, W), 4, channels, ()), Address((0,)))
    asked = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(convolution, "_kernels", lambda x, weight: asked.append(x.shape))
        encoder(numbers(1, 32, C, H, W))
    assert networks.has_large_maps((C, H, W), channels) == bool(asked)
