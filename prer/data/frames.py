"""Convert data frames to arrays by duck typing: pandas is not imported."""

from __future__ import annotations

from typing import Any

import numpy as np
from torch import Tensor

from prer.data.arrays import Data, as_labels
from prer.data.columns import find_column, no_number
from prer.data.reading import Reading
from prer.errors import InputError
from prer.text import shown

NAMED_BY = "y='...'"  # in Python, the argument that selects the label column


def is_frame(x: Any) -> bool:
    """Whether this is a data frame of pandas, or of a library with the same interface."""
    return hasattr(x, "columns") and hasattr(x, "to_numpy")


def of_frame(frame: Any, y: Any = None) -> Data:
    """Convert a frame to vectors and labels; `y` names the label column (default: the last) or holds the labels."""
    if y is not None and not isinstance(y, str) and hasattr(y, "__len__"):
        label, labels, features = "", y, frame
    else:
        names = list(frame.columns)
        label = _column_of(names, y)
        labels, features = frame[label], frame[[name for name in names if name != label]]
    data = checked(_of_columns(features, NAMED_BY), as_labels(_values(labels), label, NAMED_BY if label != "" else ""))
    return data._replace(reading=Reading(columns=tuple(map(str, features.columns)), label=str(label)))


def features_of(frame: Any, known: Reading) -> np.ndarray:
    """Features of a frame to predict, in the column order of the model; the frame may include the label."""
    place = known.label_in([str(name) for name in frame.columns], in_file=False)
    features = frame[[name for i, name in enumerate(frame.columns) if i != place]]
    return known.arranged(_of_columns(features, ""), [str(name) for name in features.columns])


def _values(column: Any) -> Any:
    return column.to_numpy() if hasattr(column, "to_numpy") else column


def _column_of(names: list[Any], y: Any) -> Any:
    if not names:
        raise InputError("the data frame has no columns; give features and a label for each sample")
    label = names[-1] if y is None else y
    if names.count(label) > 1:
        raise InputError(f"two columns are called {shown(label, 30)!r}; rename one, so that the label column is unique")
    if label not in names:
        find_column([str(name) for name in names], str(label))
    return label


def _of_columns(frame: Any, by: str) -> np.ndarray:
    """Columns as float32; the error for a missing value or text names row and column."""
    names = list(frame.columns)
    if not names or not len(frame):
        raise InputError(f"the data frame has shape {frame.shape}; give features and a label for each sample")
    if len(set(names)) < len(names):
        raise InputError("two columns have the same name; rename one of them")
    x = np.empty((len(frame), len(names)), np.float32)
    for i, name in enumerate(names):
        values = _values(frame[name])
        objects = values.dtype.kind == "O"
        missing = np.fromiter(map(_is_missing, values), bool, len(values)) if objects else values != values
        if missing.any():
            raise no_number(None, int(missing.argmax()) + 1, name, by)
        if values.dtype.kind not in "biuf":
            row = next((row for row, value in enumerate(values, 1) if not is_number(value)), None)
            if row is not None:
                raise no_number(values[row - 1], row, name, by)
        with np.errstate(over="ignore"):
            x[:, i] = values
    return x


def _is_missing(value: Any) -> bool:
    return value is None or type(value).__name__ == "NAType" or (isinstance(value, float) and value != value)


def is_number(value: Any) -> bool:
    """Whether a value can be a feature; true for None, so that a missing number raises an error and is not skipped."""
    return value is None or isinstance(value, (bool, int, float, np.bool_, np.number))


def checked(x: np.ndarray | Tensor, y: np.ndarray) -> Data:
    """Return `Data` after a check that there are as many samples as labels."""
    if len(x) != len(y):
        raise InputError(f"x has {len(x)} samples and y has {len(y)} labels; give one label for each sample")
    return Data(x, y)
