"""Images arranged in a grid, as one image."""

# n images, C channels, H and W image

from __future__ import annotations

import math

import numpy as np


def grid(images: np.ndarray, across: int | None = None, gap: float = 0) -> np.ndarray:
    """Arrange images [n, C, H, W] in rows of `across`, one pixel of value `gap` apart: [height, width, 1 or 3].

    Without `across` there are about as many rows as columns.

    Example:
        >>> grid(np.ones((5, 1, 8, 8)), across=3).shape
        (17, 26, 1)
    """
    n, channels, height, width = images.shape
    across = across or math.ceil(math.sqrt(n))
    down = math.ceil(n / across)
    page = np.full((down * (height + 1) - 1, across * (width + 1) - 1, channels), gap, images.dtype)
    for i, image in enumerate(images):
        y, x = i // across * (height + 1), i % across * (width + 1)
        page[y : y + height, x : x + width] = np.moveaxis(image, 0, -1)
    return page[..., :3]
