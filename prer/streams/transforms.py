"""Transforms of samples on their device: the view of a task, and random crops and flips in training."""

# S seeds, B batch, N samples, C channels, H and W image

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Protocol

import torch
import torch.nn.functional as F
from torch import Tensor

from prer.address import Address
from prer.data.resizing import as_type_of


class View(Protocol):
    """A task's transform of samples [..., *shape], which keep their shape and type."""

    def __call__(self, x: Tensor) -> Tensor:
        """Transform the samples."""
        ...

    def to(self, device: str) -> View:
        """The same view on a device."""
        ...


@dataclass(frozen=True, eq=False)
class Permuted:
    """A permutation of all pixels or features."""

    order: Tensor  # of the flat sample
    axes: int  # of one sample

    @classmethod
    def drawn(cls, shape: tuple[int, ...], address: Address) -> Permuted:
        """Draw a permutation at an address; all channels of an image get the same one."""
        channels, pixels = (1, shape[0]) if len(shape) == 1 else (shape[0], math.prod(shape[1:]))
        order = address.permutation(pixels)[0] + pixels * torch.arange(channels).unsqueeze(1)
        return cls(order.flatten(), len(shape))

    def __call__(self, x: Tensor) -> Tensor:
        """Permute the samples."""
        return x.flatten(-self.axes).index_select(-1, self.order).view(x.shape)

    def to(self, device: str) -> Permuted:
        """The same permutation on a device."""
        return replace(self, order=self.order.to(device))


@dataclass(frozen=True)
class Rotated:
    """A counter-clockwise rotation of images about their centre, bilinear, with black corners."""

    degrees: float

    def __call__(self, x: Tensor) -> Tensor:
        """Rotate the images; bytes stay bytes, so that a replay memory stores exactly what the network saw."""
        flat = x.flatten(0, -4).float()
        sine, cosine = math.sin(math.radians(self.degrees)), math.cos(math.radians(self.degrees))
        height, width = x.shape[-2:]
        # In coordinates from -1 to 1 a pixel is 2 / width wide and 2 / height high.
        turn = cosine, -sine * height / width, 0.0, sine * width / height, cosine, 0.0
        # Made on the device: while a CUDA graph is captured, nothing may be copied to the GPU.
        theta = torch.stack([flat.new_full((), number) for number in turn]).view(2, 3).expand(len(flat), -1, -1)
        turned = F.grid_sample(flat, F.affine_grid(theta, list(flat.shape), align_corners=False), align_corners=False)
        return as_type_of(turned, x).view(x.shape)

    def to(self, device: str) -> Rotated:
        """The same object: an angle is on no device."""
        return self


@dataclass(frozen=True)
class Moves:
    """Random crops and flips of images in training; with neither, nothing is drawn and images stay as they are."""

    crop: int = 0  # maximum shift in each direction, in pixels; the border is black
    flip: bool = False  # mirror images with probability 1/2

    def draw(self, batches: Tensor, address: Address) -> Tensor:
        """Draw uniform numbers for an epoch's batches [S, steps, B]: three for each sample, or none."""
        return (address / "moves").uniform(*batches.shape[1:], 3 if self.crop or self.flip else 0)

    def __call__(self, x: Tensor, drawn: Tensor) -> Tensor:
        """Crop and flip images [S, B, C, H, W] by the numbers drawn for them [S, B, 3]."""
        if not drawn.shape[-1]:
            return x
        flat, (down, right, mirrored) = x.flatten(0, -4), drawn.flatten(0, -2).unsqueeze(-1).unbind(1)
        span = 2 * self.crop + 1
        rows = torch.arange(x.shape[-2], device=x.device) + (down * span).long()
        columns = torch.arange(x.shape[-1], device=x.device)
        if self.flip:
            columns = torch.where(mirrored < 0.5, columns.flip(0), columns)
        columns = columns + (right * span).long()
        padded = F.pad(flat, [self.crop] * 4)
        samples = torch.arange(len(flat), device=x.device)[:, None, None, None]
        channels = torch.arange(x.shape[-3], device=x.device)[:, None, None]
        return padded[samples, channels, rows[:, None, :, None], columns[:, None, None, :]].view(x.shape)
