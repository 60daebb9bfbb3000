"""Samples that a model is asked about, and those that it generates: read, converted, written."""

# S seeds, n samples, C channels, H and W image

from __future__ import annotations

import io
import re
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import save
from torch import Tensor

from prer.data.entry import Progress, silent
from prer.data.files import find, read_new
from prer.data.grid import grid
from prer.data.reading import Reading
from prer.disk import durable, write_output
from prer.errors import InputError
from prer.features.extraction import extracted
from prer.features.named import extractor_of
from prer.learners.base import Learner
from prer.learners.interfaces import Generates
from prer.text import shown

SAMPLES = 8  # samples of each class that are saved for inspection
MOST_CLASSES = 20  # the oldest: people want to see what has been remembered longest


def samples(
    file: Path, known: Reading, device: str = "cpu", progress: Progress = silent
) -> tuple[Any, np.ndarray | None, tuple[str, ...]]:
    """Samples of a file or folder, read as a model's data was read; their labels or None; and the names of images.

    If the model learns features, they are computed.
    """
    if find(str(file)) is None:
        raise InputError(f"{shown(file)} does not exist; give a file or folder with samples to predict")
    extractor = extractor_of(known, None, device)
    data = read_new(file, known.before)
    if extractor is not None:
        data = extracted(data._replace(reading=known.before), extractor, progress=progress)
    return data.x, data.y if len(data.y) else None, data.names


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


def save_samples(folder: Path, learner: Learner) -> None:
    """Save generated samples of each class after a task, from the first seed, for inspection."""
    if not isinstance(learner, Generates):
        return
    classes, task = min(learner.tasks_[-1].stop, MOST_CLASSES), len(learner.tasks_)
    ids = torch.arange(classes, device=learner.address_.device).repeat_interleave(SAMPLES)
    with torch.no_grad():
        made = learner.generate(ids.expand(len(learner.address_.seeds), -1), learner.address_ / "shown" / task)
    folder.mkdir(exist_ok=True)
    samples = as_data(learner, made)[0].unflatten(0, (classes, SAMPLES)).cpu().contiguous()
    durable(folder / f"task-{task}.safetensors", save({"samples": samples}))


def as_data(learner: Learner, x: Tensor) -> Tensor:
    """Convert network inputs [S, n, ...] back to the scale of the data: images to bytes, vectors unstandardised."""
    if len(learner.shape_) == 1:
        return x * learner.inputs_.std.unsqueeze(1) + learner.inputs_.mean.unsqueeze(1)
    return (x.clamp(0, 1) * 255).round().to(torch.uint8)
