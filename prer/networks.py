"""Encoder, decoder and heads, as the paper has them, for images and for vectors.

A network here is an ordinary module for ONE seed. `stack` builds it once for each seed and lays the parameters on a
leading axis; the three layers below know that axis, so the same module then computes all seeds at once.
`benchmarks/seed_axis.py` holds the measurements behind this choice.
"""

# S seeds, B batch, C channels, H and W image, D embedding

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise
from types import ModuleType
from typing import TypeVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from prer.address import Address
from prer.kernels import kernels

SMALLEST_IMAGE = 8
M = TypeVar("M", bound=nn.Module)
MOST_ENTRIES = 2**17  # of input and output pixels and channels of a convolution that is done as one matrix product


class Linear(nn.Linear):
    """A fully connected layer: [B, in] as usual, or [S, B, in] once stacked."""

    def forward(self, input: Tensor) -> Tensor:
        """Apply each seed's layer to that seed's batch."""
        if self.weight.dim() == 2:
            return super().forward(input)
        return torch.baddbmm(self.bias.unsqueeze(1), input, self.weight.mT)


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
    """The mirror image of `Conv2d`; `missing` rows and columns make its output as large as that one's input was."""

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


def halved(size: int, padding: int) -> int:
    """How many pixels remain of a row after a convolution."""
    return (size + 2 * padding - 4) // 2 + 1


def _kernels(x: Tensor, weight: Tensor) -> ModuleType | None:
    """Our own kernels, where they are faster than torch's."""
    # Those for a CPU have a sample in each lane of a register, far apart in memory if there are many, and one thread.
    suited = x.is_cuda or (x.shape[1] in range(32, 513, 32) and torch.get_num_threads() == 1)
    return kernels("convolution", x, weight) if suited else None


def _seeds(convolve: Callable[..., Tensor], layer: Conv2d | ConvTranspose2d, x: Tensor, **more: object) -> Tensor:
    """The convolutions of all seeds, by torch's own, in the way that is faster on the device."""
    return (_grouped if x.is_cuda else _each)(convolve, layer, x, **more)


def _grouped(convolve: Callable[..., Tensor], layer: Conv2d | ConvTranspose2d, x: Tensor, **more: object) -> Tensor:
    """All seeds as the groups of one convolution."""
    # Between two such layers both transpositions are views of the same memory, so nothing is copied.
    S, B = x.shape[:2]
    weight, bias = layer.weight.flatten(0, 1), layer.bias.flatten()
    y = convolve(x.transpose(0, 1).flatten(1, 2), weight, bias, stride=2, padding=layer.padding, groups=S, **more)
    return y.view(B, S, -1, *y.shape[2:]).transpose(0, 1)


def _each(convolve: Callable[..., Tensor], layer: Conv2d | ConvTranspose2d, x: Tensor, **more: object) -> Tensor:
    """Seed by seed, with channels last in memory, which is faster on a CPU; they stay there until the last layer."""

    def one(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        return convolve(_channels_last(x), weight, bias, stride=2, padding=layer.padding, **more)

    tensors = x, layer.weight, layer.bias
    if len(x) == 1:  # views, where taking seeds apart and putting them together again would copy
        return one(*(t.flatten(0, 1) for t in tensors)).unsqueeze(0)
    return torch.stack([one(*of_seed).movedim(1, -1) for of_seed in zip(*tensors, strict=True)]).movedim(-1, 2)


def _channels_last(x: Tensor) -> Tensor:
    moved = x.movedim(1, -1)
    return moved.flatten().view(moved.shape).movedim(-1, 1)  # flat in between: else a single channel keeps its stride


def _tiny(layer: Conv2d | ConvTranspose2d, size: tuple[int, int], cuda: bool) -> Tensor | None:
    """For maps so small that, on a CPU, one matrix product is 2 to 4 times faster: where that matrix's weights are."""
    outputs, inputs = layer.weight.shape[1:3]
    large = outputs * inputs * math.prod(size) ** 2 > MOST_ENTRIES
    return None if cuda or large else _positions(outputs, inputs, size, layer.padding)


def has_large_maps(shape: Sequence[int], channels: Sequence[int]) -> bool:
    """Whether an encoder has a convolution that is computed as one, and not as a matrix product.

    Example:
        >>> has_large_maps((64,), (12, 24)), has_large_maps((1, 8, 8), (12, 24)), has_large_maps((1, 28, 28), (12, 24))
        (False, False, True)
    """
    if len(shape) == 1:
        return False
    rows, columns = (paddings(side, len(channels)) for side in shape[1:])
    layers = zip(pairwise((shape[0], *channels)), rows, columns, strict=True)
    return any(before * after * (h * w) ** 2 > MOST_ENTRIES for (before, after), (h, _), (w, _) in layers)


@functools.cache
def _positions(outputs: int, inputs: int, size: tuple[int, int], padding: tuple[int, int]) -> Tensor:
    """For each entry of the convolution's matrix the number of its weight, counted from 1; 0 where there is none."""
    numbers = torch.arange(1.0, outputs * inputs * 16 + 1, dtype=torch.float64).view(outputs, inputs, 4, 4)
    units = torch.eye(inputs * math.prod(size), dtype=torch.float64).view(-1, inputs, *size)
    return F.conv2d(units, numbers, stride=2, padding=padding).flatten(1).round().long()


def _as_matrix(weight: Tensor, positions: Tensor) -> Tensor:
    return F.pad(weight.flatten(1), (1, 0)).index_select(1, positions.flatten()).unflatten(1, positions.shape)


def stack(build: Callable[[], M], address: Address) -> M:
    """Build a module once for each seed, under that seed's own randomness, and stack parameters and buffers.

    It is in evaluation mode: only a phase of training changes that, see `training`.

    Example:
        >>> layer = stack(lambda: Linear(3, 2), Address(seeds=(0, 1, 2, 3)))
        >>> layer(torch.zeros(4, 10, 3)).shape
        torch.Size([4, 10, 2])
    """
    with torch.random.fork_rng(devices=[]):
        copies = []
        for key in address.streams():
            torch.manual_seed(key)
            copies.append(build())
    stacked = copies[0]
    for path, module in stacked.named_modules():
        peers = [copy.get_submodule(path) for copy in copies]
        for name, _ in list(module.named_parameters(recurse=False)):
            setattr(module, name, nn.Parameter(torch.stack([getattr(peer, name).detach() for peer in peers])))
        for name, _ in list(module.named_buffers(recurse=False)):
            setattr(module, name, torch.stack([getattr(peer, name) for peer in peers]))
    return stacked.to(address.device).eval()


@contextmanager
def training(networks: Sequence[nn.Module]) -> Iterator[None]:
    """Training mode for these networks, and evaluation mode again however it ends."""
    try:
        for network in networks:
            network.train()
        yield
    finally:
        for network in networks:
            network.eval()


def put(module: nn.Module, name: str, tensor: Tensor, seeds: int, exact: bool = True) -> None:
    """Make a tensor the parameter or buffer of this name; of what has no fixed size, the second axis may differ."""
    path, _, last = name.rpartition(".")
    owner = module.get_submodule(path)
    there = getattr(owner, last, None)
    if isinstance(there, Tensor):
        a, b = list(there.shape), list(tensor.shape)
        if tensor.dtype != there.dtype or (a != b if exact else a[:1] + a[2:] != b[:1] + b[2:]):
            raise ValueError(f"{name} is {tensor.dtype} {tuple(b)}, not {there.dtype} {tuple(a)}")
    elif exact or tensor.dim() < 2 or len(tensor) != seeds:
        raise ValueError(f"there is no {name} of shape {tuple(tensor.shape)}")
    if isinstance(there, nn.Parameter):
        setattr(owner, last, nn.Parameter(tensor.clone(), requires_grad=there.requires_grad))
    else:
        owner.register_buffer(last, tensor.clone())


def floats(*modules: nn.Module) -> int:
    """Every scalar one seed keeps in these modules, of any type: the one rule by which memory is counted."""
    tensors = [t for module in modules for t in (*module.parameters(), *module.buffers())]
    return sum(t[0].numel() for t in tensors)


def paddings(size: int, layers: int) -> Iterator[tuple[int, int]]:
    """The size before each 4x4 convolution of stride 2, with its padding.

    1, but 2 where the next layer would otherwise halve an odd map: 1, 2, 1 for 28 pixels (28, 14, 8, 4) and 1, 1, 1
    for 32 (32, 16, 8, 4), which gives the paper's own count of parameters.
    """
    for layer in range(layers):
        padding = 2 if halved(size, 1) % 2 and layer < layers - 1 else 1
        yield size, padding
        size = halved(size, padding)


class Network(nn.Module):
    """Layers in a row, whose outputs can all be seen (the paper's sparsity may be read as a penalty on each)."""

    layers: nn.ModuleList

    def outputs(self, x: Tensor) -> Iterator[Tensor]:
        """The output of every layer, in order."""
        for layer in self.layers:
            x = layer(x)
            if not isinstance(layer, (Reshape, Standardise)):  # the same numbers once more
                yield x

    def forward(self, x: Tensor) -> Tensor:
        """The output of the last layer."""
        for layer in self.layers:
            x = layer(x)
        return x


class Activated(nn.Module):
    """A layer and its non-linearity."""

    def __init__(self, layer: nn.Module, activation: Callable[[Tensor], Tensor] = torch.relu) -> None:
        super().__init__()
        self.layer, self.activation = layer, activation

    def forward(self, x: Tensor) -> Tensor:
        """The activated output."""
        return self.activation(self.layer(x))


class Reshape(nn.Module):
    """Between feature maps and vectors, whatever axes lead."""

    def __init__(self, before: Sequence[int], after: Sequence[int]) -> None:
        super().__init__()
        self.before, self.after = len(before), tuple(after)

    def forward(self, x: Tensor) -> Tensor:
        """The same numbers in the other shape."""
        return x.reshape(*x.shape[: -self.before], *self.after)


class Standardise(nn.Module):
    """Channels of images with mean 0 and variance 1. Part of the encoder, which then sees decoded images alike."""

    mean: Tensor
    std: Tensor

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.register_buffer("mean", torch.zeros(channels))
        self.register_buffer("std", torch.ones(channels))

    def start(self, samples: Iterable[Tensor]) -> None:
        """Keep the statistics of each seed's images [n, C, H, W], which may be bytes."""
        moments = [
            torch.stack(torch.std_mean(x.float() / (255 if x.dtype == torch.uint8 else 1), (0, 2, 3))) for x in samples
        ]
        std, self.mean = torch.stack(moments, dim=1)
        self.std = std.clamp_min(1e-6)

    def forward(self, x: Tensor) -> Tensor:
        """Standardised images [..., B, C, H, W]."""
        return (x - self.mean[..., None, :, None, None]) / self.std[..., None, :, None, None]


class Encoder(Network):
    """E: an input to its embedding. Linear at the end: a ReLU's mass at exactly 0 is beyond any flow."""

    def __init__(
        self,
        shape: Sequence[int],
        embedding: int,
        channels: Sequence[int],
        hidden: Sequence[int],
        normalise: bool = False,
    ) -> None:
        super().__init__()
        if len(shape) == 1:
            body, width = _dense(shape[0], hidden), [shape[0], *hidden][-1]
        else:
            body, maps = _convolutions(shape, channels)
            width = channels[-1] * maps[0] * maps[1]
            body = [*([Standardise(shape[0])] if normalise else []), *body, Reshape((channels[-1], *maps), (width,))]
        self.layers = nn.ModuleList([*body, Linear(width, embedding)])


class Decoder(Network):
    """D: the mirror image of the encoder; pixels end in a sigmoid, standardised vectors do not."""

    def __init__(self, shape: Sequence[int], embedding: int, channels: Sequence[int], hidden: Sequence[int]) -> None:
        super().__init__()
        if len(shape) == 1:
            widths = [*reversed(hidden)]
            body = _dense(embedding, widths)
            self.layers = nn.ModuleList([*body, Linear([embedding, *widths][-1], shape[0])])
            return
        body, maps = _transposed(shape, channels)
        width = channels[-1] * maps[0] * maps[1]
        first = [Activated(Linear(embedding, width)), Reshape((width,), (channels[-1], *maps))]
        self.layers = nn.ModuleList([*first, *body])


class Head(nn.Module):
    """S_t: three fully connected layers, each halving its input, the last one giving the task's classes.

    Dropout between them takes its noise from outside, since all randomness has an address; no noise means evaluation.
    """

    def __init__(self, embedding: int, classes: int, dropout: float) -> None:
        super().__init__()
        first, second = self.widths(embedding)
        self.dropout, self.classes = dropout, classes
        self.layers = nn.ModuleList([Linear(embedding, first), Linear(first, second), Linear(second, classes)])

    def linears(self) -> list[Linear]:
        """The three layers."""
        return [layer for layer in self.layers if isinstance(layer, Linear)]

    @staticmethod
    def widths(embedding: int) -> tuple[int, int]:
        """The widths of the two hidden layers: never below eight, since so few ReLUs may all be dead from the start."""
        return max(embedding // 2, 8), max(embedding // 4, 8)

    def forward(self, z: Tensor, noise: Tensor | None = None) -> Tensor:
        """Logits [..., K] of embeddings [..., D]; `noise` is uniform and as wide as both hidden layers together."""
        first, second, last = self.layers
        a, b = (None, None) if noise is None else noise.split((first.out_features, second.out_features), dim=-1)
        h = dropped(torch.relu(first(z)), a, self.dropout)
        return last(dropped(torch.relu(second(h)), b, self.dropout))


def dropped(h: Tensor, noise: Tensor | None, share: float) -> Tensor:
    """Without those whose uniform noise is below the share, and the others larger; no noise leaves all as they are."""
    return h if noise is None else h * (noise >= share) / (1 - share)


class Inputs(nn.Module):
    """What the networks see: bytes scaled to [0, 1]; vectors standardised with the first task's statistics."""

    mean: Tensor
    std: Tensor

    def __init__(self, shape: Sequence[int]) -> None:
        super().__init__()
        self.vectors = len(shape) == 1
        self.register_buffer("mean", torch.zeros(shape if self.vectors else 0))
        self.register_buffer("std", torch.ones(shape if self.vectors else 0))

    def start(self, samples: Iterable[Tensor]) -> None:
        """Keep the statistics of each seed's vectors [n, features]."""
        std, mean = torch.stack([torch.stack(torch.std_mean(x.float(), dim=0)) for x in samples], dim=1)
        self.mean, self.std = mean, torch.where(std > 1e-6 * mean.abs() + 1e-12, std, torch.ones_like(std))

    def forward(self, x: Tensor) -> Tensor:
        """Scaled inputs as floats."""
        if self.vectors:
            return (x - self.mean.unsqueeze(1)) / self.std.unsqueeze(1)
        return x.float() / 255 if x.dtype == torch.uint8 else x


def _dense(width: int, hidden: Sequence[int]) -> list[nn.Module]:
    return [Activated(Linear(a, b)) for a, b in pairwise([width, *hidden])]


def _geometry(shape: Sequence[int], layers: int) -> list[tuple[tuple[int, int], tuple[int, int]]]:
    """For each convolution the map's size before it and its padding, both (H, W)."""
    rows, columns = paddings(shape[1], layers), paddings(shape[2], layers)
    return [((h, w), (p, q)) for (h, p), (w, q) in zip(rows, columns, strict=True)]


def _convolutions(shape: Sequence[int], channels: Sequence[int]) -> tuple[list[nn.Module], tuple[int, int]]:
    geometry = _geometry(shape, len(channels))
    layers: list[nn.Module] = [
        Activated(Conv2d(a, b, padding))
        for (a, b), (_, padding) in zip(pairwise([shape[0], *channels]), geometry, strict=True)
    ]
    (h, w), (p, q) = geometry[-1]
    return layers, (halved(h, p), halved(w, q))


def _transposed(shape: Sequence[int], channels: Sequence[int]) -> tuple[list[nn.Module], tuple[int, int]]:
    geometry = zip(pairwise([shape[0], *channels]), _geometry(shape, len(channels)), strict=True)
    layers: list[nn.Module] = []
    for (a, b), ((h, w), (p, q)) in geometry:
        # What a convolution halved, its mirror doubles, but for a row or column that did not fill a stride.
        missing = h - (2 * halved(h, p) + 2 - 2 * p), w - (2 * halved(w, q) + 2 - 2 * q)
        layers.append(Activated(ConvTranspose2d(b, a, (p, q), missing), torch.relu if layers else torch.sigmoid))
    return layers[::-1], _convolutions(shape, channels)[1]
