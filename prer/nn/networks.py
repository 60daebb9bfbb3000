"""The paper's encoder and decoder, for images and for vectors."""

# S seeds, B batch, C channels, H and W image, D embedding

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import pairwise

import torch
from torch import Tensor, nn

from prer.kernels.geometry import halved
from prer.nn.convolution import MOST_ENTRIES, Conv2d, ConvTranspose2d
from prer.nn.stacked import Linear


def has_large_maps(shape: Sequence[int], channels: Sequence[int]) -> bool:
    """Whether an encoder has a convolution that is too large to be computed as one matrix product.

    Example:
        >>> has_large_maps((64,), (12, 24)), has_large_maps((1, 8, 8), (12, 24)), has_large_maps((1, 28, 28), (12, 24))
        (False, False, True)
    """
    if len(shape) == 1:
        return False
    rows, columns = (paddings(side, len(channels)) for side in shape[1:])
    layers = zip(pairwise((shape[0], *channels)), rows, columns, strict=True)
    return any(before * after * (h * w) ** 2 > MOST_ENTRIES for (before, after), (h, _), (w, _) in layers)


def paddings(size: int, layers: int) -> Iterator[tuple[int, int]]:
    """Yield the input size and the padding of each 4x4 convolution with stride 2.

    Padding is 1, or 2 where the next layer would otherwise halve an odd map: 1, 2, 1 for 28 pixels (28, 14, 8, 4) and
    1, 1, 1 for 32 (32, 16, 8, 4), which gives the paper's own count of parameters.
    """
    for layer in range(layers):
        padding = 2 if halved(size, 1) % 2 and layer < layers - 1 else 1
        yield size, padding
        size = halved(size, padding)


class Network(nn.Module):
    """A sequence of layers whose outputs are all accessible (the paper's sparsity may be a penalty on each)."""

    layers: nn.ModuleList

    def outputs(self, x: Tensor) -> Iterator[Tensor]:
        """The output of every layer, in order."""
        for layer in self.layers:
            x = layer(x)
            if not isinstance(layer, (Reshape, Standardise)):  # only reshapes or rescales its input
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
    """Reshapes between feature maps and vectors; leading axes are kept."""

    def __init__(self, before: Sequence[int], after: Sequence[int]) -> None:
        super().__init__()
        self.before, self.after = len(before), tuple(after)

    def forward(self, x: Tensor) -> Tensor:
        """Reshape the trailing axes."""
        return x.reshape(*x.shape[: -self.before], *self.after)


class Standardise(nn.Module):
    """Standardises the channels of images. It is part of the encoder, so that decoded images pass it too."""

    mean: Tensor
    std: Tensor

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.register_buffer("mean", torch.zeros(channels))
        self.register_buffer("std", torch.ones(channels))

    def start(self, samples: Iterable[Tensor]) -> None:
        """Compute the statistics of each seed's images [n, C, H, W], which may be bytes."""
        moments = [
            torch.stack(torch.std_mean(x.float() / (255 if x.dtype == torch.uint8 else 1), (0, 2, 3))) for x in samples
        ]
        std, self.mean = torch.stack(moments, dim=1)
        self.std = std.clamp_min(1e-6)

    def forward(self, x: Tensor) -> Tensor:
        """Standardised images [..., B, C, H, W]."""
        return (x - self.mean[..., None, :, None, None]) / self.std[..., None, :, None, None]


class Encoder(Network):
    """E maps an input to its embedding. Its last layer is linear: no flow can model a ReLU's mass at exactly 0."""

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
    """D mirrors the encoder. Images end in a sigmoid, standardised vectors do not."""

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


class Inputs(nn.Module):
    """Scales the networks' inputs: bytes to [0, 1]; vectors are standardised with the first task's statistics.

    The numbers of an embedding have one scale: those that hardly vary in the first task may vary in later ones.
    """

    alike = 10  # numbers of an embedding: the largest spread is at most so many times the median one

    mean: Tensor
    std: Tensor

    def __init__(self, shape: Sequence[int]) -> None:
        super().__init__()
        self.vectors = len(shape) == 1
        self.register_buffer("mean", torch.zeros(shape if self.vectors else 0))
        self.register_buffer("std", torch.ones(shape if self.vectors else 0))

    def start(self, samples: Iterable[Tensor], fewest: int | None = None) -> None:
        """Compute the statistics of each seed's vectors [n, features].

        Args:
            samples: the vectors of each seed.
            fewest: vectors of so many numbers may be embeddings; None: they never are.
        """
        moments = [torch.std_mean(x.float(), dim=0, correction=min(1, len(x) - 1)) for x in samples]
        std, mean = torch.stack([torch.stack(of_seed) for of_seed in moments], dim=1)
        varies = std > 1e-6 * mean.abs() + 1e-12
        self.mean, self.std = mean, torch.where(varies, std, torch.ones_like(std))
        if fewest is not None and std.shape[1] >= fewest:
            spread = torch.where(varies, std, torch.zeros_like(std))
            embeds = spread.amax(1, keepdim=True) <= self.alike * spread.median(1, keepdim=True).values
            scale = (spread.square().sum(1, keepdim=True) / varies.sum(1, keepdim=True).clamp_min(1)).sqrt()
            self.std = torch.where(embeds & (scale > 0), scale.expand_as(std), self.std)

    def forward(self, x: Tensor) -> Tensor:
        """Scaled inputs as floats."""
        if self.vectors:
            return (x - self.mean.unsqueeze(1)) / self.std.unsqueeze(1)
        return x.float() / 255 if x.dtype == torch.uint8 else x


def _dense(width: int, hidden: Sequence[int]) -> list[nn.Module]:
    return [Activated(Linear(a, b)) for a, b in pairwise([width, *hidden])]


def _geometry(shape: Sequence[int], layers: int) -> list[tuple[tuple[int, int], tuple[int, int]]]:
    """Input size and padding of each convolution, both (H, W)."""
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
        # The transpose doubles what the convolution halved, except a row or column that did not fill a stride.
        missing = h - (2 * halved(h, p) + 2 - 2 * p), w - (2 * halved(w, q) + 2 - 2 * q)
        layers.append(Activated(ConvTranspose2d(b, a, (p, q), missing), torch.relu if layers else torch.sigmoid))
    return layers[::-1], _convolutions(shape, channels)[1]
