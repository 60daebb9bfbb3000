"""Convert images to a given size and number of channels."""

# S seeds, B batch, N samples, C channels, H and W image

from __future__ import annotations

from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor

Fit = Literal["resize", "pad"]


IMAGES_AS_FLOATS = 1024  # images that are converted to floats at a time


def resized(x: Tensor, size: int, fit: Fit = "resize") -> Tensor:
    """Bring images [N, C, H, W] to size x size: resize (antialiased), or pad with black and crop, centred."""
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
    """Convert grey images [N, 1, H, W] to three equal channels; leave others as they are."""
    return x.repeat(1, 3, 1, 1) if x.shape[1] == 1 else x


def grey(x: Tensor) -> Tensor:
    """Convert colour images [N, 3, H, W] to grey by the usual luma weights; leave others as they are."""
    if x.shape[1] != 3:
        return x
    red, green, blue = x.float().unbind(1)
    return as_type_of((0.299 * red + 0.587 * green + 0.114 * blue).unsqueeze(1), x)


def as_type_of(floats: Tensor, x: Tensor) -> Tensor:
    """Convert floats to the type of x, clipped to its range: rounded to 0..255 for bytes, else [0, 1]."""
    return floats.round().clamp(0, 255).to(x.dtype) if x.dtype == torch.uint8 else floats.clamp(0, 1).to(x.dtype)
