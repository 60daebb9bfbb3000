"""SVHN's cropped digits: .mat files with X [H, W, C, N] and y [N, 1]."""

# N samples, C channels, H and W image. MATLAB lays arrays out with the first index fastest: X is [N, C, W, H] in NumPy.

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from prer.data.arrays import Data, as_labels
from prer.data.formats.mat import Variable, numbers, variables
from prer.data.guards import about, fill, in_parts, sound
from prer.errors import InputError
from prer.text import shown

IMAGES_READ = 1000  # samples


class Part(NamedTuple):
    """The images of a file as [H, W, C, N], and their labels."""

    x: Variable
    shape: tuple[int, ...]
    y: np.ndarray


def read(path: Path, paths: Sequence[Path]) -> Data:
    """Images [N, C, H, W] and labels; in a folder, SVHN's `extra` part is left out."""
    wanted = [p for p in paths if "extra" not in p.name.lower()] if path.is_dir() else paths
    train, test = in_parts(sorted(wanted), lambda p: p.name)
    parts = [_part(p) for p in train + test]
    if not parts:
        raise InputError(f"{shown(path)}: no train_*.mat or test_*.mat in it; give SVHN's cropped digits")
    height, width, channels, _ = parts[0].shape
    counts = [part.shape[3] for part in parts]
    x, start = np.empty((sum(counts), channels, height, width), np.uint8), 0
    for part in parts:
        if part.shape[:3] != parts[0].shape[:3]:
            raise InputError(f"{shown(part.x.path)}: its images have another shape than the others; make them alike")
        _fill(part, x[start : start + part.shape[3]])
        start += part.shape[3]
    return Data(x, _digits(np.concatenate([part.y for part in parts])), sum(counts[len(train) :]))


def _digits(y: np.ndarray) -> np.ndarray:
    """Where labels run from 1 to 10, MATLAB's way, 10 stands for the digit 0."""
    return y % 10 if y.min() >= 1 and y.max() == 10 else y


def _part(path: Path) -> Part:
    with sound(path):
        found = variables(path)
        if "X" not in found or "y" not in found:
            raise InputError(f"{shown(path)}: no arrays X and y of plain numbers in it; name them so")
        x, y = found["X"], found["y"]
        with path.open("rb") as file:
            labels = fill(numbers(file, y), np.empty(math.prod(y.shape), y.type))
        shape = _as_images(x.shape, len(labels))
    if not labels.size or 0 in shape or shape[2] not in (1, 3) or shape[3] != len(labels):
        what = f"X has shape {shown(x.shape, 40)} for {len(labels)} labels"
        raise InputError(f"{shown(path)}: {what}; give X as (H, W, C, N) and y as (N, 1)")
    with about(path):
        return Part(x, shape, as_labels(labels))


def _as_images(shape: tuple[int, ...], count: int) -> tuple[int, ...]:
    """[H, W, C, N], where MATLAB leaves out a last axis of 1, and grey images have no axis of channels."""
    if len(shape) == 3 and count != 1:
        return (*shape[:2], 1, shape[2])
    return (*shape, *[1] * (4 - len(shape))) if len(shape) <= 4 else (0, 0, 0, 0)


def _fill(part: Part, x: np.ndarray) -> None:
    _, channels, height, width = x.shape
    raw = np.empty((min(IMAGES_READ, len(x)), channels, width, height), part.x.type)
    with sound(part.x.path), part.x.path.open("rb") as file:
        source = numbers(file, part.x)
        for start in range(0, len(x), IMAGES_READ):
            some = raw[: len(x) - start]
            fill(source, some)
            if some.dtype != np.uint8 and not ((some >= 0) & (some <= 255) & (some % 1 == 0)).all():
                raise InputError(f"{shown(part.x.path)}: X must hold whole numbers from 0 to 255; rescale it")
            x[start : start + IMAGES_READ] = some.swapaxes(2, 3)
