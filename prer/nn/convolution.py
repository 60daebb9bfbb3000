"""The paper's convolutions, 4x4 with stride 2, and their transposes, with a seed axis."""

# S seeds, B batch, C channels, H and W image, D embedding

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from types import ModuleType

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from prer.kernels.geometry import halved
from prer.kernels.registry import kernels

MOST_ENTRIES = 2**17  # largest outputs * inputs * pixels^2 of a convolution computed as one matrix product


class Conv2d(nn.Conv2d):
    """The paper's convolution, 4x4 with stride 2: [B, C, H, W] as usual, or [S, B, C, H, W] once stacked."""

    bias: nn.Parameter
    padding: tuple[int, int]

    def __init__(self, inputs: int, outputs: int, padding: tuple[int, int]) -> None:
        super().__init__(inputs, outputs, 4, 2, padding)

    def forward(self, input: Tensor) -> Tensor:
        """Apply each seed's filters to that seed's batch."""
        if self.weight.dim() == 4:
            return super().forward(input)
        height, width = input.shape[3:]
        positions = _tiny(self, (height, width), input.is_cuda)
        if positions is None:
            if ours := _kernels(input, self.weight):
                return ours.convolve(input, self.weight, self.bias, self.padding)
            return _seeds(F.conv2d, self, input)
        y = torch.bmm(input.flatten(2), _as_matrix(self.weight, positions))
        maps = halved(height, self.padding[0]), halved(width, self.padding[1])
        return y.unflatten(2, (-1, *maps)) + self.bias[:, None, :, None, None]


class ConvTranspose2d(nn.ConvTranspose2d):
    """The transpose of `Conv2d`; `missing` rows and columns restore the size of the convolution's input."""

    bias: nn.Parameter
    padding: tuple[int, int]
    output_padding: tuple[int, int]

    def __init__(self, inputs: int, outputs: int, padding: tuple[int, int], missing: tuple[int, int]) -> None:
        super().__init__(inputs, outputs, 4, 2, padding, output_padding=missing)

    def forward(self, input: Tensor, output_size: list[int] | None = None) -> Tensor:
        """Apply each seed's filters to that seed's batch."""
        if self.weight.dim() == 4:
            return super().forward(input, output_size)
        (h, w), (p, q), (more_h, more_w) = input.shape[3:], self.padding, self.output_padding
        size = 2 * h + 2 - 2 * p + more_h, 2 * w + 2 - 2 * q + more_w
        positions = _tiny(self, size, input.is_cuda)
        if positions is None:
            if ours := _kernels(input, self.weight):
                return ours.mirror(input, self.weight, self.bias, self.padding, size)
            return _seeds(F.conv_transpose2d, self, input, output_padding=self.output_padding)
        y = torch.bmm(input.flatten(2), _as_matrix(self.weight, positions).mT)
        return y.unflatten(2, (-1, *size)) + self.bias[:, None, :, None, None]


def _kernels(x: Tensor, weight: Tensor) -> ModuleType | None:
    """Our own kernels, where they are faster than torch's."""
    # The CPU kernels hold one sample in each register lane, strided by the batch size in memory, and use one thread.
    suited = x.is_cuda or (x.shape[1] in range(32, 513, 32) and torch.get_num_threads() == 1)
    return kernels("convolution", x, weight) if suited else None


def _seeds(convolve: Callable[..., Tensor], layer: Conv2d | ConvTranspose2d, x: Tensor, **more: object) -> Tensor:
    """Convolve all seeds with torch's own operations, in the way that is faster on the device."""
    return (_grouped if x.is_cuda else _each)(convolve, layer, x, **more)


def _grouped(convolve: Callable[..., Tensor], layer: Conv2d | ConvTranspose2d, x: Tensor, **more: object) -> Tensor:
    """All seeds as the groups of one convolution."""
    # Between two such layers both transpositions are views of the same memory, so nothing is copied.
    S, B = x.shape[:2]
    weight, bias = layer.weight.flatten(0, 1), layer.bias.flatten()
    y = convolve(x.transpose(0, 1).flatten(1, 2), weight, bias, stride=2, padding=layer.padding, groups=S, **more)
    return y.view(B, S, -1, *y.shape[2:]).transpose(0, 1)


def _each(convolve: Callable[..., Tensor], layer: Conv2d | ConvTranspose2d, x: Tensor, **more: object) -> Tensor:
    """Convolve seed by seed, with channels last in memory, which is faster on a CPU; later layers keep this layout."""

    def one(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        return convolve(_channels_last(x), weight, bias, stride=2, padding=layer.padding, **more)

    tensors = x, layer.weight, layer.bias
    if len(x) == 1:  # views; splitting and restacking the seeds would copy
        return one(*(t.flatten(0, 1) for t in tensors)).unsqueeze(0)
    return torch.stack([one(*of_seed).movedim(1, -1) for of_seed in zip(*tensors, strict=True)]).movedim(-1, 2)


def _channels_last(x: Tensor) -> Tensor:
    moved = x.movedim(1, -1)
    return moved.flatten().view(moved.shape).movedim(-1, 1)  # flatten: otherwise a single channel keeps its stride


def _tiny(layer: Conv2d | ConvTranspose2d, size: tuple[int, int], cuda: bool) -> Tensor | None:
    """Weight positions if maps are so small that, on a CPU, one matrix product is 2 to 4 times faster; else None."""
    outputs, inputs = layer.weight.shape[1:3]
    large = outputs * inputs * math.prod(size) ** 2 > MOST_ENTRIES
    return None if cuda or large else _positions(outputs, inputs, size, layer.padding)


@functools.cache
def _positions(outputs: int, inputs: int, size: tuple[int, int], padding: tuple[int, int]) -> Tensor:
    """Index of the weight in each entry of the convolution's matrix, counted from 1; 0 where there is none."""
    numbers = torch.arange(1.0, outputs * inputs * 16 + 1, dtype=torch.float64).view(outputs, inputs, 4, 4)
    units = torch.eye(inputs * math.prod(size), dtype=torch.float64).view(-1, inputs, *size)
    return F.conv2d(units, numbers, stride=2, padding=padding).flatten(1).round().long()


def _as_matrix(weight: Tensor, positions: Tensor) -> Tensor:
    return F.pad(weight.flatten(1), (1, 0)).index_select(1, positions.flatten()).unflatten(1, positions.shape)
