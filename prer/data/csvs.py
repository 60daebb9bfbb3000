"""CSV with a header: one column of labels, and numbers in all the others."""

from __future__ import annotations

import csv
import difflib
import itertools
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TextIO

import numpy as np

from prer.data.arrays import Data
from prer.data.guard import about, check_names, shown, sound
from prer.errors import InputError

AT_ONCE = 4096  # rows
LINE = 1 << 24  # characters; more is no line of a table
FLOAT = float(np.finfo(np.float32).max)
EMPTY = ("", "nan")  # what programs write for a missing value


def read(path: Path, label: str = "") -> Data:
    """Vectors as float32 and labels from a CSV with a header; commas, semicolons or tabs."""
    with sound(path), about(path), path.open(encoding="utf-8-sig", newline="") as file:
        try:
            return _read(file, label)
        except UnicodeDecodeError:
            raise InputError("this is not text in UTF-8; save the table as CSV in UTF-8") from None
        except csv.Error as error:
            raise InputError(f"it cannot be read as CSV: {shown(error)}; mend the quotes") from None


def _read(file: TextIO, label: str) -> Data:
    lines = _lines(file)
    first = next((line for line in lines if line.strip()), "")
    comma = max(",;\t", key=re.sub(r'"[^"]*"', "", first).count)
    rows = csv.reader(itertools.chain([first], lines), delimiter=comma)
    names = [name.strip() for name in next(rows, [])]
    place = column(names, label)
    features = names[:place] + names[place + 1 :]
    labels: list[str] = []
    blocks = []
    for start, block in _blocks(rows, len(names)):
        labels += _taken(block, place, start)
        blocks.append(_floats(block, features, start))
    if not blocks:
        raise InputError("a header without rows; give one row for each sample")
    return Data(np.concatenate(blocks), _as_labels(labels))


def _lines(file: TextIO) -> Iterator[str]:
    for number in itertools.count(1):
        line = file.readline(LINE)
        if not line:
            return
        if len(line) == LINE or "\0" in line:
            what = "is longer than any row of a table" if len(line) == LINE else "holds a NUL byte"
            raise InputError(f"line {number} {what}; give a CSV with a header")
        yield line


def _blocks(rows: Iterable[list[str]], width: int) -> Iterator[tuple[int, list[list[str]]]]:
    """Some rows at a time with the number of the first; empty lines are stepped over."""
    numbered = enumerate((row for row in rows if row), 1)
    while some := list(itertools.islice(numbered, AT_ONCE)):
        for number, row in some:
            if len(row) != width:
                raise InputError(f"row {number} has {len(row)} values, the header {width}; give each row as many")
        yield some[0][0], [row for _, row in some]


def _taken(block: list[list[str]], place: int, start: int) -> list[str]:
    """Take the labels out of the rows."""
    labels = [row.pop(place).strip() for row in block]
    for number, value in enumerate(labels, start):
        if value.lower() in EMPTY:
            raise InputError(f"row {number} has no label; drop it or name its class")
    return labels


def _floats(block: list[list[str]], names: Sequence[str], start: int) -> np.ndarray:
    flat = list(itertools.chain.from_iterable(block))
    try:
        if any("_" in text for text in flat):  # Python takes 1_000 for a number
            raise ValueError
        with np.errstate(over="ignore"):
            values = np.array(list(map(float, flat)), np.float64).astype(np.float32)
        bad = np.flatnonzero(~np.isfinite(values))
        if not len(bad):
            return values.reshape(len(block), -1)
        first = int(bad[0])
    except ValueError:
        first = next(i for i, text in enumerate(flat) if not _is_number(text))
    raise _refusal(flat[first], names[first % len(names)], start + first // len(names))


def _is_number(text: str) -> bool:
    try:
        return "_" not in text and abs(float(text)) <= FLOAT
    except ValueError:
        return False


def _refusal(text: str, name: str, row: int) -> InputError:
    where = f"row {row}, column {shown(name, 30)!r}"
    if text.strip().lower() in EMPTY:
        return InputError(f"{where}: a value is missing; fill it or drop the row")
    return InputError(
        f"{where}: {shown(text, 30)!r} is no number of 32 bits; is this column the label? Then set stream.label"
    )


def column(names: Sequence[str], label: str) -> int:
    """Where the column of labels is: the one that is named, or the last."""
    if not names:
        raise InputError("no columns in it; give a table with a header and one row for each sample")
    if not all(names):
        raise InputError(f"column {names.index('') + 1} has no name; name it (pandas: write with index=False)")
    most, count = Counter(names).most_common(1)[0]
    if count > 1:
        raise InputError(f"two columns are called {shown(most, 30)!r}; give a header with a name for each")
    numbers = [name for name in names if _is_number(name)]
    if len(numbers) >= len(names) - 1 and numbers != [str(i) for i in range(len(numbers))]:
        raise InputError("its first line holds numbers; give a header with the names of the columns")
    if len(names) < 2:
        raise InputError("one column only; a table needs features and a label, parted by commas, semicolons or tabs")
    return find_column(names, label)


def find_column(names: Sequence[str], label: str) -> int:
    """Where a name is, the last where none is given; with a guess at what was meant where it is not there."""
    if label and label not in names:
        close = difflib.get_close_matches(label, [str(name) for name in names[:1000]], n=1, cutoff=0.5)
        hint = f"did you mean {shown(close[0], 30)!r}?" if close else f"the last is {shown(names[-1], 30)!r}"
        raise InputError(f"no column {shown(label, 30)!r}; {hint}")
    return list(names).index(label) if label else len(names) - 1


def _as_labels(texts: list[str]) -> np.ndarray:
    """Whole numbers as numbers, also where they are written as 1.0; anything else as strings."""
    check_names(texts)
    kinds, places = np.unique(np.array(texts, dtype=str), return_inverse=True)
    try:
        numbers = [_whole(text) for text in kinds.tolist()]
        return np.array(numbers, np.int64)[places]
    except (ValueError, OverflowError):
        return kinds[places]


def _whole(text: str) -> int:
    if "_" in text or float(text) % 1:
        raise ValueError
    return int(text) if text.lstrip("+-").isdecimal() else int(float(text))
