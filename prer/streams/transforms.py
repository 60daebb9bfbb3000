"""What is done to samples where they are: one size for all, a task's own view, and random moves in training."""

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
    """How a task sees samples [..., *shape]; they keep their shape and their type."""

    def __call__(self, x: Tensor) -> Tensor:
        """The samples as the task sees them."""
        ...

    def to(self, device: str) -> View:
        """The same view on a device."""
        ...


@dataclass(frozen=True, eq=False)
class Permuted:
    """All pixels, or features, in another order."""

    order: Tensor  # of the flat sample
    axes: int  # of one sample

    @classmethod
    def drawn(cls, shape: tuple[int, ...], address: Address) -> Permuted:
        """An order that is drawn at an address; all channels of a picture are permuted alike."""
        channels, pixels = (1, shape[0]) if len(shape) == 1 else (shape[0], math.prod(shape[1:]))
        order = address.permutation(pixels)[0] + pixels * torch.arange(channels).unsqueeze(1)
        return cls(order.flatten(), len(shape))

    def __call__(self, x: Tensor) -> Tensor:
        """The same numbers in other places."""
        return x.flatten(-self.axes).index_select(-1, self.order).view(x.shape)

    def to(self, device: str) -> Permuted:
        """The same order on a device."""
        return replace(self, order=self.order.to(device))


@dataclass(frozen=True)
class Rotated:
    """Images turned counter-clockwise about their centre, bilinearly, with black in the corners."""

    degrees: float

    def __call__(self, x: Tensor) -> Tensor:
        """The turned images; bytes stay bytes, so that whoever stores them stores what was seen."""
        flat = x.flatten(0, -4).float()
        sine, cosine = math.sin(math.radians(self.degrees)), math.cos(math.radians(self.degrees))
        height, width = x.shape[-2:]
        # In coordinates from -1 to 1 a pixel is 2 / width wide and 2 / height high.
        turn = cosine, -sine * height / width, 0.0, sine * width / height, cosine, 0.0
        # Made where it is needed: while a GPU captures a step nothing may be copied to it.
        theta = torch.stack([flat.new_full((), number) for number in turn]).view(2, 3).expand(len(flat), -1, -1)
        turned = F.grid_sample(flat, F.affine_grid(theta, list(flat.shape), align_corners=False), align_corners=False)
        return as_type_of(turned, x).view(x.shape)

    def to(self, device: str) -> Rotated:
        """The same: an angle is nowhere."""
        return self


@dataclass(frozen=True)
class Moves:
    """Random crops and flips of images in training; neither: nothing is drawn and nothing is done."""

    crop: int = 0  # pixels an image may be moved by in each direction, black coming in
    flip: bool = False  # mirror every second image

    def draw(self, batches: Tensor, address: Address) -> Tensor:
        """Uniform numbers for an epoch's batches [S, steps, B]: three for each sample, or none."""
        return (address / "moves").uniform(*batches.shape[1:], 3 if self.crop or self.flip else 0)

    def __call__(self, x: Tensor, drawn: Tensor) -> Tensor:
        """Images [S, B, C, H, W] moved by what was drawn for them [S, B, 3]."""
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
