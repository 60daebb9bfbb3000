"""Convert data frames to arrays by duck typing: pandas is not imported."""

from __future__ import annotations

from typing import Any

import numpy as np
from torch import Tensor

from prer.data.arrays import Data, as_labels
from prer.data.columns import PYTHON, check_names, find_column
from prer.data.reading import Missing, Reading
from prer.data.tables import Asked, Labels, Table, Words, as_floats, as_words, of_table, texts_of
from prer.errors import InputError


def is_frame(x: Any) -> bool:
    """Whether this is a data frame of pandas, or of a library with the same interface."""
    return hasattr(x, "columns") and hasattr(x, "to_numpy")


def of_frame(frame: Any, y: Any = None, *, missing: Missing = "error", known: Reading | None = None) -> Data:
    """Convert a frame to vectors and labels.

    Args:
        frame: the data frame; columns of text are one-hot encoded.
        y: name of the label column (default: that of `known`, or the last), or the labels.
        missing: "error", or "median" to fill missing numbers by the median of their column.
        known: how earlier data was read; this frame is then read in the same way, its columns in any order.
    """
    separate = y is not None and not isinstance(y, str) and hasattr(y, "__len__")
    asked = Asked("" if y is None or separate else str(y), missing, known, ways=PYTHON)
    names = _names(frame)
    if separate:
        place = known.label_in(names, in_file=False) if known else None
        values, label = _values(y), ""
    else:
        place = asked.place(names, in_file=False) if known else find_column(names, asked.label)
        label = "" if place is None else names[place]
        values = _values(frame[frame.columns[place]])
    by = PYTHON.label if label else ""
    labels = Labels(label, lambda: texts_of(values), lambda: as_labels(values, label, by))
    data = of_table(_table(frame, names, place, asked), labels, asked)
    checked(data.x, data.y)
    return data


def features_of(frame: Any, known: Reading) -> np.ndarray:
    """Features of a frame to predict, encoded as those of the model; the frame may include the label."""
    asked, names = Asked(known=known, learning=False), [str(name) for name in frame.columns]
    table = _table(frame, names, known.label_in(names, in_file=False), asked)
    return np.asarray(of_table(table, Labels("", set, lambda: np.empty(0)), asked).x)


def _values(column: Any) -> Any:
    return column.to_numpy() if hasattr(column, "to_numpy") else column


def _names(frame: Any) -> list[str]:
    names = [str(name) for name in frame.columns]
    if not names:
        raise InputError("the data frame has no columns; give features and a label for each sample")
    check_names(names)
    return names


def _table(frame: Any, names: list[str], place: int | None, asked: Asked) -> Table:
    """The columns of a frame but the label, at index `place`."""
    features = [(name, column) for i, (name, column) in enumerate(zip(names, frame.columns, strict=True)) if i != place]
    if not features or not len(frame):
        raise InputError(f"the data frame has shape {frame.shape}; give features and a label for each sample")
    x, words = np.zeros((len(frame), len(features)), np.float32), {}
    known = asked.texts
    for i, (name, column) in enumerate(features):
        values = _values(frame[column])
        if name in known or values.dtype.kind in "OUT":
            words[i] = Words()
            plain = values if values.dtype.kind in "mM" else values.tolist()  # which would turn dates into numbers
            words[i].add(as_words(plain, 1, name, asked.by))
        else:
            x[:, i] = as_floats(values, 1, name, asked.by)
    return Table([name for name, _ in features], x, words)


def is_number(value: Any) -> bool:
    """Whether a value can be a feature; true for None, so that a missing number raises an error and is not skipped."""
    return value is None or isinstance(value, (bool, int, float, np.bool_, np.number))


def checked(x: np.ndarray | Tensor, y: np.ndarray) -> Data:
    """Return `Data` after a check that there are as many samples as labels."""
    if len(x) != len(y):
        raise InputError(f"x has {len(x)} samples and y has {len(y)} labels; give one label for each sample")
    return Data(x, y)
