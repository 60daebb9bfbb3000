"""Read samples to predict from files, and write generated samples."""

# n samples, C channels, H and W image

from __future__ import annotations

import io
import re
from pathlib import Path
from typing import Any

import numpy as np
from torch import Tensor

from prer.data.files import find, read_new
from prer.data.grid import grid
from prer.data.reading import Reading
from prer.disk import write_output
from prer.errors import InputError
from prer.text import shown


def samples(file: Path, known: Reading) -> tuple[Any, np.ndarray | None]:
    """Read the samples of a file or folder as a model's data was read, and their labels or None."""
    if find(str(file)) is None:
        raise InputError(f"{shown(file)} does not exist; give a file or folder with samples to predict")
    data = read_new(file, known)
    return data.x, data.y if len(data.y) else None


def write(made: Tensor, label: str, file: Path | None) -> Path:
    """Write images as one PNG grid, or any samples as an .npy array, and return the file."""
    images = made.dim() == 4
    safe = re.sub(r"[^\w-]+", "-", label)[:60].strip("-") or "samples"
    file = file or Path(f"{safe}.{'png' if images else 'npy'}")
    data = io.BytesIO()
    if file.suffix.lower() == ".npy":
        np.save(data, made.numpy(), allow_pickle=False)
    elif file.suffix.lower() == ".png" and images:
        from PIL import Image

        Image.fromarray(grid(made.numpy()).squeeze(2) if made.shape[1] == 1 else grid(made.numpy())).save(data, "PNG")
    else:
        kinds = "images are written as .png or .npy" if images else "vectors are written as .npy"
        raise InputError(f"{shown(file)}: {kinds}; give such a file name with -o")
    write_output(file, data.getvalue(), "-o")
    return file
