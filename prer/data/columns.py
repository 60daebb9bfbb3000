"""The columns of a table: their names, which one holds the labels, and the error for a value that is not a number."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Sequence

import numpy as np

from prer.errors import InputError
from prer.text import did_you_mean, shown

FLOAT = float(np.finfo(np.float32).max)
EMPTY = ("", "nan")  # what programs write for a missing value
NAMED_BY = "stream.label"  # the setting that selects the label column


def label_column(names: Sequence[str], label: str) -> int:
    """Index of the label column: the named one, or the last."""
    check_names(names)
    check_header(names)
    if len(names) < 2:
        raise InputError(
            "it has only one column; a table needs features and a label, separated by commas, semicolons or tabs"
        )
    return find_column(names, label)


def check_names(names: Sequence[str]) -> None:
    """Raise an error unless every column has a unique name."""
    if not names:
        raise InputError("it has no columns; give a table with a header and one row for each sample")
    if not all(names):
        raise InputError(f"column {names.index('') + 1} has no name; name it (pandas: write with index=False)")
    most, count = Counter(names).most_common(1)[0]
    if count > 1:
        raise InputError(f"two columns are called {shown(most, 30)!r}; give each column its own name")


def check_header(names: Sequence[str]) -> None:
    """Raise an error if the first line is a sample, not a header; 0, 1, 2, ... are names, as pandas writes them."""
    numbers = [name for name in names if is_number(name)]
    if len(numbers) >= len(names) - 1 and numbers != [str(i) for i in range(len(numbers))]:
        raise InputError("its first line contains numbers; add a header with the names of the columns")


def find_column(names: Sequence[str], label: str) -> int:
    """Index of a named column, or of the last if no name is given; the error for an unknown name has a hint."""
    if label and label not in names:
        raise InputError(f"no column {shown(label, 30)!r}{did_you_mean(label, map(str, names))}")
    return list(names).index(label) if label else len(names) - 1


def is_number(text: str) -> bool:
    """Whether a text is a number within 32-bit floats; unlike in Python, 1_000 is not a number."""
    try:
        return "_" not in text and abs(float(text)) <= FLOAT
    except ValueError:
        return False


def no_number(value: object, row: int, name: object, by: str) -> InputError:
    """The error for a value that cannot be a feature; `by` is the setting that selects the label column, if any."""
    where = f"row {row}, column {shown(name, 30)!r}"
    text = str(value).strip()
    if value is None or text.lower() in EMPTY:
        return InputError(f"{where}: a value is missing; fill it or drop the row")
    with contextlib.suppress(ValueError):
        if abs(float(text)) > FLOAT:
            return InputError(f"{where}: {shown(text, 30)} does not fit into a 32-bit float; rescale the column")
    other = f", or name the label column with {by}" if by else ""
    what = "text" if isinstance(value, str) else shown(type(value).__name__, 30)
    return InputError(f"{where} holds {what} ({shown(text, 30)!r}); encode it as numbers{other}")
