"""The columns of a table: their names, which one holds the labels, and the error for a value that is not a number."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from prer.errors import InputError
from prer.text import did_you_mean, shown

FLOAT = float(np.finfo(np.float32).max)
EMPTY = ("", "nan")  # what programs write for a missing value
MARKS = (*EMPTY, "na", "n/a", "null", "none")  # what else they write among numbers


class Ways(NamedTuple):
    """How a user changes the way a table is read, for error messages; empty where there is no way."""

    label: str = ""  # what selects the label column
    named: str = "{}"  # the same for a given column
    missing: str = ""  # what fills missing values
    text: str = "leave out the others"  # what selects the column of texts


FILES = Ways("stream.label", "stream.label={}", "stream.missing=median", "name it with stream.text")
PYTHON = Ways("y='...'", "y='{}'", "missing='median'", "call it 'text', or give only that one and y")
NEITHER = Ways()
NAMED_BY = FILES.label


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
    for i, name in enumerate(names, 1):
        if as_text(name) != name:
            raise InputError(f"the name of column {i} is not valid Unicode; rename it")
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


def number_of(text: str) -> float | None:
    """Value of a text: NaN if it is missing, None if it is not a number; infinite if it is too large."""
    if text.strip().lower() in MARKS:
        return float("nan")
    try:
        return None if "_" in text else float(text)
    except ValueError:
        return None


def as_text(text: str) -> str:
    """A text as valid Unicode: lone surrogates, which a file cannot hold, become escapes."""
    return text if text.isascii() else text.encode("utf-8", "backslashreplace").decode()


def no_number(value: object, row: int, name: object, ways: Ways) -> InputError:
    """The error for a value that cannot be a feature."""
    where = f"row {row}, column {shown(name, 30)!r}"
    text = str(value).strip()
    if value is None or text.lower() in MARKS:
        fill = f"fill it, drop the row, or set {ways.missing}" if ways.missing else "fill it or drop the row"
        return InputError(f"{where}: a value is missing; {fill}")
    with contextlib.suppress(ValueError):
        if abs(float(text)) > FLOAT:
            return InputError(f"{where}: {shown(text, 30)} does not fit into a 32-bit float; rescale the column")
    other = f", or name the label column with {ways.label}" if ways.label else ""
    what = "text" if isinstance(value, str) else shown(type(value).__name__, 30)
    return InputError(f"{where} holds {what} ({shown(text, 30)!r}); encode it as numbers{other}")
