"""The sizes of maps before and after the paper's convolution."""

# S seeds, B batch, C channels, H and W image, D embedding

from __future__ import annotations


def halved(size: int, padding: int) -> int:
    """How many pixels remain of a row after a convolution."""
    return (size + 2 * padding - 4) // 2 + 1
