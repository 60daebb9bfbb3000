"""What x and y may be: numbers and labels of any kind, checked once, where they enter."""

# N samples, C channels, H and W image

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from prer.errors import InputError
from prer.networks import SMALLEST_IMAGE


def as_samples(x: np.ndarray | Tensor) -> Tensor:
    """Images as [N, C, H, W] (uint8, or floats in [0, 1]); vectors as float32 [N, features]."""
    array = x.detach().cpu().numpy() if isinstance(x, Tensor) else np.asarray(x)
    if array.dtype.kind not in "biuf" or array.ndim not in (2, 3, 4) or not array.size:
        raise InputError(
            f"x has shape {array.shape} and type {array.dtype}; "
            "give numbers as images (N, H, W), (N, H, W, C) or as vectors (N, features)"
        )
    if array.dtype.kind == "f" and not np.isfinite(array).all():
        bad = int((~np.isfinite(array.reshape(len(array), -1)).all(1)).sum())
        raise InputError(f"{bad} of {len(array)} samples hold NaN or infinite values; drop or fill them first")
    return torch.from_numpy(array.astype(np.float32)) if array.ndim == 2 else _as_images(array)


def _as_images(array: np.ndarray) -> Tensor:
    if array.ndim == 3:
        array = array[:, None]
    elif array.shape[-1] in (1, 3, 4) or array.shape[1] not in (1, 3, 4):  # channels last, unless clearly first
        array = np.moveaxis(array, -1, 1)
    if min(array.shape[2:]) < SMALLEST_IMAGE:
        size = f"{array.shape[2]}x{array.shape[3]}"
        raise InputError(f"images of {size} pixels are too small; 8x8 is the least, or give vectors (N, features)")
    if array.dtype.kind == "f":
        if array.min() < 0 or array.max() > 1:
            span = f"[{array.min():g}, {array.max():g}]"
            raise InputError(f"images as floats must lie in [0, 1], these lie in {span}; rescale them or give uint8")
        return torch.from_numpy(np.ascontiguousarray(array, np.float32))
    if array.dtype != np.uint8 and (array.min() < 0 or array.max() > 255):
        raise InputError(f"images as integers must lie in 0..255, these lie in {array.min()}..{array.max()}")
    return torch.from_numpy(np.ascontiguousarray(array, np.uint8))


def as_labels(y: np.ndarray | Tensor | Sequence) -> np.ndarray:
    """Labels as one array of integers from 0 up, or of strings."""
    labels = y.detach().cpu().numpy() if isinstance(y, Tensor) else np.asarray(y)
    if labels.dtype.kind in "OUS":
        values = [v.decode(errors="replace") if isinstance(v, bytes) else v for v in labels.ravel().tolist()]
        if any(v is None or v != v or v == "" for v in values):
            raise InputError("some labels are missing; drop those samples or name their class")
        labels = np.array([str(v) for v in values]).reshape(labels.shape)
    if labels.ndim != 1:
        raise InputError(f"labels must be one value for each sample, these have shape {labels.shape}")
    if labels.dtype.kind == "f":
        if np.isnan(labels).any():
            raise InputError("some labels are missing; drop those samples or name their class")
        if (labels != np.floor(labels)).any() or np.isinf(labels).any():
            raise InputError("labels must be whole numbers or strings; these have fractions")
    if labels.dtype.kind != "U":
        if labels.size and labels.min() < 0:
            raise InputError(f"labels must be 0 or more, the least is {labels.min():g}; is -1 meant as missing?")
        labels = labels.astype(np.int64)
    return labels


def as_pair(x: np.ndarray | Tensor, y: np.ndarray | Tensor | Sequence) -> tuple[Tensor, np.ndarray]:
    """Samples and their labels, as many of the one as of the other."""
    samples, labels = as_samples(x), as_labels(y)
    if len(samples) != len(labels):
        raise InputError(f"x has {len(samples)} samples and y has {len(labels)} labels; they must be as many")
    return samples, labels
