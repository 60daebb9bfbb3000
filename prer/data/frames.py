"""Data frames to arrays, told by what they can do: pandas is not imported."""

from __future__ import annotations

from typing import Any

import numpy as np
from torch import Tensor

from prer.data.arrays import Data, as_labels
from prer.data.csvs import find_column
from prer.data.guard import shown
from prer.errors import InputError


def of_frame(frame: Any, y: Any = None) -> Data:
    """Its columns as vectors; `y` names the column of labels, by default the last, or is the labels."""
    if y is not None and not isinstance(y, str) and hasattr(y, "__len__"):
        labels, features = y, frame
    else:
        names = list(frame.columns)
        label = _column_of(names, y)
        labels, features = frame[label], frame[[name for name in names if name != label]]
    return checked(_of_columns(features), as_labels(_plain(labels)))


def _plain(column: Any) -> Any:
    return column.to_numpy() if hasattr(column, "to_numpy") else column


def _column_of(names: list[Any], y: Any) -> Any:
    if not names:
        raise InputError("a data frame without columns; give features and a label for each sample")
    label = names[-1] if y is None else y
    if names.count(label) > 1:
        raise InputError(f"two columns are called {shown(label, 30)!r}; which of them is the label?")
    if label not in names:
        find_column([str(name) for name in names], str(label))
    return label


def _of_columns(frame: Any) -> np.ndarray:
    """The columns as float32; missing values and text are refused by the name of their column."""
    names = list(frame.columns)
    if not names or not len(frame):
        raise InputError(f"a data frame of shape {frame.shape}; give features and a label for each sample")
    if len(set(names)) < len(names):
        raise InputError("two columns have one name; name each differently")
    x = np.empty((len(frame), len(names)), np.float32)
    for i, name in enumerate(names):
        values = _plain(frame[name])
        if any(map(_is_missing, values)) if values.dtype.kind == "O" else (values != values).any():
            raise InputError(f"column {shown(name, 30)!r}: a value is missing; fill it or drop the row")
        if values.dtype.kind not in "biuf" and not all(map(is_number, values)):
            raise InputError(f"column {shown(name, 30)!r} is not of numbers; drop it or encode it")
        with np.errstate(over="ignore"):
            x[:, i] = values
    return x


def _is_missing(value: Any) -> bool:
    return value is None or type(value).__name__ == "NAType" or (isinstance(value, float) and value != value)


def is_number(value: Any) -> bool:
    """Whether this can be a feature; also None, since a missing number is refused and not left out."""
    return value is None or isinstance(value, (bool, int, float, np.bool_, np.number))


def checked(x: np.ndarray | Tensor, y: np.ndarray) -> Data:
    """As many samples as labels."""
    if len(x) != len(y):
        raise InputError(f"x has {len(x)} samples and y has {len(y)} labels; they must be as many")
    return Data(x, y)
