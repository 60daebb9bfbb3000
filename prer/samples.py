"""Samples without labels: read from files to be predicted, and written where they were generated."""

# n samples, C channels, H and W image

from __future__ import annotations

import io
import math
import re
from pathlib import Path
from typing import Any

import numpy as np
from torch import Tensor

from prer.data.files import find, read_new
from prer.data.guard import shown
from prer.data.reading import Reading
from prer.errors import InputError
from prer.output import write_output


def samples(file: Path, known: Reading) -> tuple[Any, np.ndarray | None]:
    """The samples of a file or folder, read as those of a model were, and their labels or None."""
    if find(str(file)) is None:
        raise InputError(f"there is no file {shown(file)}; give the samples that are to be predicted")
    data = read_new(file, known)
    return data.x, data.y if len(data.y) else None


def write(made: Tensor, label: str, file: Path | None) -> Path:
    """Images as one picture, in rows, or whatever they are as an array; the file they are in."""
    images = made.dim() == 4
    safe = re.sub(r"[^\w-]+", "-", label)[:60].strip("-") or "samples"
    file = file or Path(f"{safe}.{'png' if images else 'npy'}")
    data = io.BytesIO()
    if file.suffix.lower() == ".npy":
        np.save(data, made.numpy(), allow_pickle=False)
    elif file.suffix.lower() == ".png" and images:
        from PIL import Image

        Image.fromarray(grid(made.numpy())).save(data, "PNG")
    else:
        raise InputError(f"{shown(file)}: {'a .png or .npy' if images else 'vectors need an .npy'}, please")
    write_output(file, data.getvalue(), "-o")
    return file


def grid(images: np.ndarray) -> np.ndarray:
    """Images [n, C, H, W] beside and below each other, a pixel apart, [rows, columns] or [rows, columns, 3]."""
    n, channels, height, width = images.shape
    across = math.ceil(math.sqrt(n))
    down = math.ceil(n / across)
    page = np.zeros((down * (height + 1) - 1, across * (width + 1) - 1, channels), np.uint8)
    for i, image in enumerate(images):
        y, x = i // across * (height + 1), i % across * (width + 1)
        page[y : y + height, x : x + width] = np.moveaxis(image, 0, -1)
    return page[..., 0] if channels == 1 else page[..., :3]
