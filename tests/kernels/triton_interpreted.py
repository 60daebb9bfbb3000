"""Tests of Triton's kernels, interpreted on a CPU; `test_triton.py` runs this file in a process of its own."""

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.func import grad, vmap

from prer.kernels.geometry import halved

torch.set_num_threads(1)


@pytest.fixture(scope="module", autouse=True)
def ours():
    """The module; Triton is imported in tests alone."""
    from prer.kernels.triton import convolution

    return convolution


@st.composite
def layers(draw):
    """Seeds, batch, channels of the larger and of the smaller map, the larger map's size, padding."""
    S, B = draw(st.integers(1, 3)), draw(st.integers(1, 5))
    channels = draw(st.tuples(*[st.sampled_from([1, 3, 12, 17, 35])] * 2))
    size = draw(st.tuples(*[st.integers(8, 13)] * 2))
    return S, B, *channels, size, draw(st.tuples(*[st.integers(1, 2)] * 2))


def numbers(*shape):
    return torch.randn(shape, requires_grad=True)


def tensors(S, B, C, N, size, padding):
    """Larger map, smaller map, weight, the convolution's bias, its mirror image's."""
    maps = [halved(s, p) for s, p in zip(size, padding, strict=True)]
    return numbers(S, B, C, *size), numbers(S, B, N, *maps), numbers(S, N, C, 4, 4), numbers(S, N), numbers(S, C)


def assert_same(mine, theirs, *inputs):
    """Results and gradients are the same, within single precision."""
    doubles = [x.detach().double().requires_grad_() for x in inputs]
    y, expected = mine(*inputs), torch.stack([theirs(*each) for each in zip(*doubles, strict=True)])
    direction = torch.randn_like(y)
    got = torch.autograd.grad(y, inputs, direction)
    wanted = torch.autograd.grad(expected, doubles, direction.double())
    for a, b in zip((y, *got), (expected, *wanted), strict=True):
        torch.testing.assert_close(a.double(), b, atol=1e-4, rtol=1e-4)


def assert_those_of_torch(ours, layer):
    size, padding = layer[4:]
    big, small, weight, bias, bias_back = tensors(*layer)
    same = {"stride": 2, "padding": padding}
    missing = [s - (2 * y + 2 - 2 * p) for s, y, p in zip(size, small.shape[3:], padding, strict=True)]
    assert_same(lambda *x: ours.convolve(*x, padding), lambda *x: F.conv2d(*x, **same), big, weight, bias)
    assert_same(
        lambda *x: ours.mirror(*x, padding, size),
        lambda *x: F.conv_transpose2d(*x, **same, output_padding=missing),
        small, weight, bias_back,
    )  # fmt: skip


@pytest.mark.parametrize("layer", [(2, 3, 3, 17, (9, 12), (1, 2)), (1, 70, 1, 3, (8, 8), (1, 1))], ids=str)
def test_known_layers_are_those_of_torch(ours, layer):
    assert_those_of_torch(ours, layer)


@settings(max_examples=6, deadline=None, derandomize=True, database=None)
@given(layer=layers())
def test_layers_are_those_of_torch(ours, layer):
    assert_those_of_torch(ours, layer)


@pytest.mark.parametrize("programs", [1, 1000])
def test_neither_tiles_nor_shares_matter(ours, programs, monkeypatch):
    monkeypatch.setattr(ours, "PROGRAMS", programs)
    assert_those_of_torch(ours, (2, 5, 1, 3, (11, 8), (1, 2)))


def test_any_strides_work(ours):
    big, _, weight, bias, _ = tensors(2, 3, 3, 5, (8, 9), (1, 1))
    expected = ours.convolve(big, weight, bias, (1, 1))
    turned = big.permute(4, 3, 2, 1, 0).contiguous().permute(4, 3, 2, 1, 0)
    back = weight.mT.contiguous().mT
    assert not turned.is_contiguous()
    assert not back.is_contiguous()
    got = ours.convolve(turned, back, bias[:, None].expand(-1, 2, -1)[:, 1], (1, 1))
    torch.testing.assert_close(got, expected, atol=0, rtol=0)
    for x in (big, weight, bias):  # the gradient of a plain sum has strides of zero
        one, other = (
            torch.autograd.grad(got.sum(), x, retain_graph=True),
            torch.autograd.grad((expected * torch.ones_like(expected)).sum(), x, retain_graph=True),
        )
        torch.testing.assert_close(one, other, atol=1e-5, rtol=1e-5)


def test_without_gradients_nothing_is_kept_for_them(ours):
    big, _, weight, bias, _ = tensors(1, 2, 1, 2, (8, 8), (1, 1))
    with torch.no_grad():
        assert ours.convolve(big, weight, bias, (1, 1)).grad_fn is None


def test_gradients_of_single_samples_can_be_mapped(ours):
    big, _, weight, bias, bias_back = (x.detach() for x in tensors(2, 3, 2, 3, (8, 8), (1, 1)))

    def loss(weight, bias, x):
        y = ours.convolve(x.unsqueeze(1), weight, bias, (1, 1))
        return ours.mirror(y.relu(), weight, bias_back, (1, 1), (8, 8)).square().sum()

    each = vmap(grad(loss, (0, 1)), in_dims=(None, None, 1))(weight, bias, big)
    for sample in range(3):
        alone = grad(loss, (0, 1))(weight, bias, big[:, sample])
        for a, b in zip(each, alone, strict=True):
            torch.testing.assert_close(a[sample], b)


# -- the flow's blocks -------------------------------------------------------------------------------------------------


def level(S, K, B, D, V):
    """Inputs and parameters of a level's blocks, and permutations."""
    a, b = D // 2, D - D // 2
    shapes = (S, K, a, D), (S, K, V, D), (S, K, D), (S, K, D, 2 * b), (S, K, 2 * b)
    u, v = numbers(S, B, D), numbers(S, B, V)
    order = torch.stack([torch.randperm(D) for _ in range(K)])
    return [u, v, *((0.3 * torch.randn(shape)).requires_grad_() for shape in shapes)], order


@pytest.mark.parametrize("bounded", [True, False])
@pytest.mark.parametrize("sizes", [(2, 3, 37, 9, 5), (1, 2, 16, 70, 16), (1, 3, 33, 2, 1), (1, 1, 5, 6, 40)], ids=str)
def test_blocks_are_those_of_plain_operations(sizes, bounded):
    from prer.kernels.blocks import Blocks
    from prer.kernels.triton.flow import FusedBlocks

    inputs, order = level(*sizes)
    direction = torch.randn(sizes[0], sizes[2], sizes[3]).mT, torch.randn(sizes[0], sizes[2])
    found = []
    for function in (Blocks, FusedBlocks):
        u, v, *layers = inputs
        made = function.apply(u.mT, v.mT, *layers, order, order.argsort(1), bounded, 1e-3)
        found.append((*made, *torch.autograd.grad(made[:2], inputs, direction)))
    for plain, ours in zip(*found, strict=True):
        torch.testing.assert_close(ours, plain, atol=3e-5, rtol=1e-4)
