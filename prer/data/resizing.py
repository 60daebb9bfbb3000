"""Images brought to one size, and to the channels that are wanted."""

# S seeds, B batch, N samples, C channels, H and W image

from __future__ import annotations

from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor

Fit = Literal["resize", "pad"]


IMAGES_AS_FLOATS = 1024  # images that are floats at once


def resized(x: Tensor, size: int, fit: Fit = "resize") -> Tensor:
    """Images [N, C, H, W] brought to size x size: resized (antialiased), or centred on black, cropped where larger."""
    if x.shape[-2:] == (size, size):
        return x
    if fit == "pad":
        high, wide = size - x.shape[-2], size - x.shape[-1]
        return F.pad(x, [wide // 2, wide - wide // 2, high // 2, high - high // 2])
    out = x.new_empty(*x.shape[:2], size, size)
    for part, whole in zip(out.split(IMAGES_AS_FLOATS), x.split(IMAGES_AS_FLOATS), strict=True):
        part.copy_(as_type_of(F.interpolate(whole.float(), (size, size), mode="bilinear", antialias=True), x))
    return out


def coloured(x: Tensor) -> Tensor:
    """Grey images [N, 1, H, W] with three equal channels."""
    return x.repeat(1, 3, 1, 1) if x.shape[1] == 1 else x


def grey(x: Tensor) -> Tensor:
    """Coloured images [N, 3, H, W] with one channel, by the usual weights of red, green and blue."""
    if x.shape[1] != 3:
        return x
    red, green, blue = x.float().unbind(1)
    return as_type_of((0.299 * red + 0.587 * green + 0.114 * blue).unsqueeze(1), x)


def as_type_of(floats: Tensor, x: Tensor) -> Tensor:
    """Floats as the type of x, within its range: bytes, which are rounded, or numbers from 0 to 1."""
    return floats.round().clamp(0, 255).to(x.dtype) if x.dtype == torch.uint8 else floats.clamp(0, 1).to(x.dtype)
