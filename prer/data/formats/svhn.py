"""SVHN's cropped digits: .mat files with X [H, W, C, N] and y [N, 1]."""

# N samples, C channels, H and W image.

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from prer.data.arrays import Data, as_labels
from prer.data.formats.mat import arrays
from prer.data.guards import about, in_parts, sound
from prer.errors import InputError
from prer.text import shown


class Part(NamedTuple):
    """The images [N, C, H, W] of a file, and their labels."""

    path: Path
    x: np.ndarray
    y: np.ndarray


def read(path: Path, paths: Sequence[Path]) -> Data:
    """Images [N, C, H, W] and labels; in a folder, SVHN's `extra` part is left out."""
    wanted = [p for p in paths if "extra" not in p.name.lower()] if path.is_dir() else paths
    train, test = in_parts(sorted(wanted), lambda p: p.name)
    parts = [_part(p) for p in train + test]
    if not parts:
        raise InputError(f"{shown(path)}: it contains no train_*.mat or test_*.mat; give SVHN's cropped digits")
    for part in parts:
        if part.x.shape[1:] != parts[0].x.shape[1:]:
            raise InputError(
                f"{shown(part.path)}: its images differ in shape from the others; convert them to one shape"
            )
    y = np.concatenate([part.y for part in parts])
    x = np.concatenate([part.x for part in parts], out=np.empty((len(y), *parts[0].x.shape[1:]), np.uint8))
    return Data(x, _digits(y), sum(len(part.y) for part in parts[len(train) :]))


def _digits(y: np.ndarray) -> np.ndarray:
    """Replace label 10 by digit 0 if the labels run from 1 to 10, as MATLAB counts."""
    return y % 10 if y.min() >= 1 and y.max() == 10 else y


def _part(path: Path) -> Part:
    with sound(path):
        found = arrays(path, "X", "y")
        if len(found) < 2:
            raise InputError(f"{shown(path)}: it contains no numeric arrays named X and y; rename the arrays")
        x, labels = found["X"], found["y"].ravel(order="F")
        shape = _as_images(x.shape, len(labels))
        if not labels.size or 0 in shape or shape[2] not in (1, 3) or shape[3] != len(labels):
            what = f"X has shape {shown(x.shape, 40)} for {len(labels)} labels"
            raise InputError(f"{shown(path)}: {what}; give X as (H, W, C, N) and y as (N, 1)")
        pixels = x.astype(np.uint8, copy=False)
        if pixels is not x and not (pixels == x).all():
            raise InputError(f"{shown(path)}: X must contain whole numbers from 0 to 255; rescale it")
    with about(path):
        return Part(path, pixels.reshape(shape, order="F").transpose(3, 2, 0, 1), as_labels(labels))


def _as_images(shape: tuple[int, ...], count: int) -> tuple[int, ...]:
    """The shape as [H, W, C, N]: MATLAB drops a last axis of 1, and grey images have no channel axis."""
    if len(shape) == 3 and count != 1:
        return (*shape[:2], 1, shape[2])
    return (*shape, *[1] * (4 - len(shape))) if len(shape) <= 4 else (0, 0, 0, 0)
