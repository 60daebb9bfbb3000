"""Convolutions of stride 2 and their mirror images, by all their kernels."""

import pytest
import torch
import torch.nn.functional as F
from support.networks import SEEDS, assert_stack_is_each_seed

from prer.address import Address
from prer.kernels.geometry import halved
from prer.nn import convolution
from prer.nn.convolution import Conv2d, ConvTranspose2d
from prer.nn.stacked import stack

CONVOLUTIONS = [((8, 8), (1, 1)), ((9, 13), (1, 2)), ((6, 11), (2, 1)), ((2, 3), (1, 1)), ((7, 7), (2, 2))]
both_kernels = pytest.mark.parametrize("tiny", [True, False], ids=["matrix product", "grouped convolution"])


@pytest.fixture
def kernel(tiny, monkeypatch):
    """Sets the kernel, which otherwise depends on the size of the maps and on the device."""

    def choice(layer, size, cuda):
        return convolution._positions(*layer.weight.shape[1:3], size, layer.padding) if tiny else None

    monkeypatch.setattr(convolution, "_tiny", choice)


@both_kernels
@pytest.mark.parametrize(("size", "padding"), CONVOLUTIONS)
@pytest.mark.usefixtures("kernel")
def test_convolutions_compute_what_each_seed_computes_alone(size, padding):
    maps = tuple(halved(s, p) for s, p in zip(size, padding, strict=True))
    missing = tuple(s % 2 for s in size)
    assert_stack_is_each_seed(lambda: Conv2d(2, 3, padding), [(2, *size)])
    assert_stack_is_each_seed(lambda: ConvTranspose2d(3, 2, padding, missing), [(3, *maps)])


@both_kernels
@pytest.mark.parametrize(("size", "padding"), CONVOLUTIONS)
@pytest.mark.usefixtures("kernel")
def test_convolutions_are_those_of_torch(size, padding):
    layer = stack(lambda: Conv2d(2, 3, padding), SEEDS).double()
    x = SEEDS.normal(4, 2, *size).double()
    expected = [
        F.conv2d(x, w, b, stride=2, padding=padding) for x, w, b in zip(x, layer.weight, layer.bias, strict=True)
    ]
    torch.testing.assert_close(layer(x), torch.stack(expected))
    missing = tuple(s % 2 for s in size)
    mirror = stack(lambda: ConvTranspose2d(3, 2, padding, missing), SEEDS).double()
    expected = [
        F.conv_transpose2d(y, w, b, stride=2, padding=padding, output_padding=missing)
        for y, w, b in zip(layer(x), mirror.weight, mirror.bias, strict=True)
    ]
    torch.testing.assert_close(mirror(layer(x)), torch.stack(expected))
    assert mirror(layer(x)).shape == x.shape


def test_tiny_maps_take_the_matrix_product_and_others_the_grouped_convolution(monkeypatch):
    grouped = []
    monkeypatch.setattr(convolution, "_seeds", lambda *arguments, **more: grouped.append(arguments[1]))
    small, large = (stack(lambda n=n: Conv2d(1, n, (1, 1)), SEEDS) for n in (2, 12))
    small(SEEDS.normal(4, 1, 8, 8)), large(SEEDS.normal(4, 1, 28, 28))
    assert grouped == [large]


class Stub:
    """A stub of the kernels that returns its arguments."""

    def convolve(self, x, weight, bias, padding):
        return "convolve", tuple(x.shape), padding

    def mirror(self, x, weight, bias, padding, size):
        return "mirror", tuple(x.shape), padding, size


def test_layers_use_kernels_where_there_are_some(monkeypatch):
    down = stack(lambda: Conv2d(1, 2, (1, 2)), Address((0, 1)))
    up = stack(lambda: ConvTranspose2d(2, 1, (1, 2), (1, 0)), Address((0, 1)))
    monkeypatch.setattr(convolution, "_tiny", lambda *_: None)
    monkeypatch.setattr(convolution, "_kernels", lambda *_: Stub())
    assert down(torch.zeros(2, 3, 1, 9, 8)) == ("convolve", (2, 3, 1, 9, 8), (1, 2))
    assert up(torch.zeros(2, 3, 2, 4, 5)) == ("mirror", (2, 3, 2, 4, 5), (1, 2), (9, 8))
