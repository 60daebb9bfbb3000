"""Validation of samples x and labels y of any supported type, done once, where they enter."""

# N samples, C channels, H and W image

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from prer.data.reading import Reading, medians
from prer.errors import InputError
from prer.text import shown

UNKNOWN = Reading()  # data in Python, of which nothing is known
SMALLEST_IMAGE = 8  # pixels a side
TEXTS = "the samples are texts; a network must make vectors of them: prer.ContinualClassifier(features='minilm')"
MISSING = "some labels are missing; drop those samples or label them"
NOT_LABELS = "labels must be all whole numbers of 0 or more, or all strings"


class Data(NamedTuple):
    """All samples of a source with their labels: first the training part, then the given test part."""

    x: np.ndarray | Tensor  # images [N, C, H, W] as uint8, or vectors [N, features] as float32
    y: np.ndarray  # labels [N], numbers or strings; empty if samples to predict have none
    tests: int = 0  # number of samples at the end that form the given test part
    order: tuple[str | int, ...] = ()  # the labels in the order of the source; empty: sorted
    checked: bool = False  # x comes from `as_samples`; a second call might take another axis for the channels
    reading: Reading = UNKNOWN  # how the data was read
    names: tuple[str, ...] = ()  # the file of each image, relative to its folder or zip; empty for other data


def as_samples(x: np.ndarray | Tensor | Sequence, *, may_be_dark: bool = False, reading: Reading = UNKNOWN) -> Tensor:
    """Images as [N, C, H, W] (uint8, or floats in [0, 1]); vectors as float32 [N, features].

    Missing values are filled as `reading` says.
    """
    array = reading.filled(_as_array(x))
    if array.ndim == 1 and array.size and isinstance(array[0], str):
        raise InputError(TEXTS)
    if array.dtype.kind not in "biuf" or array.ndim not in (2, 3, 4) or not array.size:
        raise InputError(
            f"x has shape {array.shape} and type {array.dtype}; "
            "give numbers as images (N, H, W), (N, H, W, C) or as vectors (N, features)"
        )
    if array.dtype.kind == "f" or array.ndim == 2:
        with np.errstate(over="ignore"):
            array = array.astype(np.float32, copy=False)
        finite = np.isfinite(array.reshape(len(array), -1)).all(1)
        if not finite.all():
            bad = f"{(~finite).sum()} of {len(array)} samples"
            raise InputError(
                f"{bad} contain NaN or infinite values (beyond 32-bit floats); fill them or drop those samples"
            )
    array = array if array.ndim == 2 else _as_images(array, may_be_dark)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # about read-only arrays, such as mapped files: we only read them
        return torch.from_numpy(np.ascontiguousarray(array))


def _as_images(array: np.ndarray, may_be_dark: bool) -> np.ndarray:
    if array.ndim == 3:
        array = array[:, None]
    elif array.shape[-1] in (1, 3, 4) or array.shape[1] not in (1, 3, 4):  # channels last, unless clearly first
        array = np.moveaxis(array, -1, 1)
    if min(array.shape[2:]) < SMALLEST_IMAGE:
        size = f"{array.shape[2]}x{array.shape[3]}"
        raise InputError(
            f"images of {size} pixels are too small, the minimum is {SMALLEST_IMAGE}x{SMALLEST_IMAGE}; "
            "enlarge them, or give vectors (N, features)"
        )
    if array.dtype.kind == "b":
        return array.astype(np.float32)
    low, high = array.min(), array.max()
    if array.dtype.kind == "f":
        if low < 0 or high > 1:
            span = f"[{low:g}, {high:g}]"
            raise InputError(f"float images must lie in [0, 1], but these lie in {span}; rescale them or give uint8")
        return array
    if low < 0 or high > 255:
        raise InputError(f"integer images must lie in 0..255, but these lie in {low}..{high}; rescale them")
    if 0 < high < 64 and not may_be_dark:  # read as bytes they would be almost black
        raise InputError(
            f"integer images are read as 0..255, but these only reach {high}; divide them by {high} to get floats"
        )
    return array.astype(np.uint8, copy=False)


def as_labels(
    y: np.ndarray | Tensor | Sequence, column: object = "", by: str = "", negative: bool = False
) -> np.ndarray:
    """Convert labels to one array of integers from 0 up (or `negative` ones), or of strings.

    Errors name the `column` of the labels, if given, and `by`, the setting that selects another one.
    """
    # Lists become object arrays first: given strings and a NaN, NumPy would convert the NaN to the string "nan".
    labels = _as_array(y) if isinstance(y, (np.ndarray, Tensor)) or hasattr(y, "dtype") else np.array(y, dtype=object)
    if labels.ndim != 1 or (
        labels.dtype.kind == "O" and any(getattr(v, "ndim", 0) or isinstance(v, (list, tuple)) for v in labels)
    ):
        raise InputError(f"labels must be one value for each sample, but these have shape {labels.shape}")
    if labels.dtype.kind in "OUST":
        labels = _of_objects(labels.tolist())
    if labels.dtype.kind == "U":
        return labels
    if labels.dtype.kind == "f":
        if np.isnan(labels).any():
            raise InputError(MISSING)
        broken = np.flatnonzero((labels != np.floor(labels)) | np.isinf(labels))
        if len(broken):
            raise fractions(labels[broken[0]], int(broken[0]) + 1, column, by)
    if labels.dtype.kind not in "biuf" or (labels.size and int(labels.max()) >= 2**63):
        raise InputError(NOT_LABELS)
    if labels.size and labels.min() < 0 and not negative:
        raise InputError(
            f"labels must be 0 or more, but the smallest is {labels.min():g}; if -1 means missing, drop those samples"
        )
    return labels.astype(np.int64)


def fractions(value: float, row: int, column: object, by: str) -> InputError:
    """The error for fractional labels; `by` is the setting that selects another column, if there is one."""
    what = f"column {shown(column, 30)!r} holds fractions" if column != "" else "the labels have fractions"
    other = f", or name another column with {by}" if by else ""
    return InputError(f"{what} ({value:g} in row {row}); labels are classes: give whole numbers or names{other}")


def _of_objects(values: list[Any]) -> np.ndarray:
    """Convert label objects to an array of numbers or of strings."""
    values = [v.item() if isinstance(v, (np.ndarray, Tensor)) else v for v in values]
    if any(v is None or type(v).__name__ == "NAType" or v in ("", b"") or v != v for v in values):
        raise InputError(MISSING)
    if all(isinstance(v, (str, bytes)) for v in values):
        texts = [v.decode(errors="backslashreplace") if isinstance(v, bytes) else v for v in values]
        if any("\0" in text for text in texts):  # NumPy would cut it off, and merge two classes
            raise InputError("some labels contain NUL characters; rename those classes")
        return np.array(texts, dtype=str)
    if all(isinstance(v, (bool, int, float, np.bool_, np.number)) for v in values):
        return np.array(values)
    raise InputError(NOT_LABELS)


def with_medians(data: Data) -> Data:
    """Vectors without column names whose missing values are the medians of their training part."""
    x = _as_array(data.x)
    if x.ndim != 2 or x.dtype.kind not in "biuf":
        raise InputError("missing values are filled only in tables and vectors; leave out missing='median'")
    with np.errstate(over="ignore"):
        x = x.astype(np.float32, copy=False)
    if np.isinf(x).any():
        raise InputError("some samples contain infinite values (beyond 32-bit floats); rescale or drop them")
    reading = replace(data.reading, missing="median", medians=medians(x[: len(x) - data.tests]))
    return data._replace(x=reading.filled(x), reading=reading)


def as_pair(data: Data, *, may_be_dark: bool = False) -> tuple[Tensor, np.ndarray]:
    """Return the validated samples and labels, equal in number."""
    checked = data.x if data.checked and isinstance(data.x, Tensor) else None
    samples = as_samples(data.x, may_be_dark=may_be_dark, reading=data.reading) if checked is None else checked
    labels = as_labels(data.y)
    if len(samples) != len(labels):
        raise InputError(f"x has {len(samples)} samples and y has {len(labels)} labels; give one label for each sample")
    return samples, labels


def _as_array(x: np.ndarray | Tensor | Sequence) -> np.ndarray:
    if isinstance(x, np.ma.MaskedArray) and np.ma.getmaskarray(x).any():
        raise InputError("some values are masked; fill them or drop those samples")
    if isinstance(x, Tensor):
        x = x.detach().cpu()
        return (x.float() if x.dtype == torch.bfloat16 else x).numpy()
    try:
        return np.asarray(x)
    except ValueError:  # rows of different lengths
        return np.empty(0, dtype=object)
