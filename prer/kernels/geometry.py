"""Sizes of maps before and after the paper's convolution."""

# S seeds, B batch, C channels, H and W image, D embedding

from __future__ import annotations


def halved(size: int, padding: int) -> int:
    """Length of a row of pixels after a 4x4 convolution with stride 2."""
    return (size + 2 * padding - 4) // 2 + 1
