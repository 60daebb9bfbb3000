"""CSV with a header: one column of labels, and numbers in all the others."""

from __future__ import annotations

import csv
import itertools
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TextIO

import numpy as np

from prer.data.arrays import Data, fractions, of_table
from prer.data.columns import EMPTY, NAMED_BY, is_number, label_column, no_number
from prer.data.guards import about, check_names, sound
from prer.data.reading import Reading
from prer.errors import InputError
from prer.text import shown

ROWS_READ = 4096  # rows at a time
LINE = 1 << 24  # maximum characters of a line


def read(path: Path, label: str = "", known: Reading | None = None) -> Data:
    """Read float32 vectors and labels from a CSV with a header, separated by commas, semicolons or tabs.

    Args:
        path: path of the file.
        label: the label column; empty: the last.
        known: how the data of a model was read, if this file is to be predicted; labels are then optional.
    """
    with sound(path), about(path), path.open(encoding="utf-8-sig", newline="") as file:
        try:
            return _read(file, label, known)
        except UnicodeDecodeError:
            raise InputError("it is not UTF-8 text; save the table as CSV in UTF-8") from None
        except csv.Error as error:
            raise InputError(f"it cannot be read as CSV: {shown(error)}; fix the quotes") from None


def _read(file: TextIO, label: str, known: Reading | None) -> Data:
    lines = _lines(file)
    first = next((line for line in lines if line.strip()), "")
    comma = max(",;\t", key=re.sub(r'"[^"]*"', "", first).count)
    rows = csv.reader(itertools.chain([first], lines), delimiter=comma)
    names = [name.strip() for name in next(rows, [])]
    place = known.label_in(names) if known else label_column(names, label)
    called = "" if place is None else names[place]
    features = [name for name in names if name != called]
    labels: list[str] = []
    blocks = []
    for start, block in _blocks(rows, len(names)):
        if place is not None:
            labels += [row.pop(place).strip() for row in block]
        blocks.append(_floats(block, features, start, "" if known else NAMED_BY))
    if not blocks:
        raise InputError("it has a header but no rows; give one row for each sample")
    return of_table(np.concatenate(blocks), features, called, lambda: _as_labels(labels, called), known)


def _lines(file: TextIO) -> Iterator[str]:
    for number in itertools.count(1):
        line = file.readline(LINE)
        if not line:
            return
        if len(line) == LINE or "\0" in line:
            what = "is too long" if len(line) == LINE else "contains a NUL byte"
            raise InputError(f"line {number} {what}; give a CSV with a header")
        yield line


def _blocks(rows: Iterable[list[str]], width: int) -> Iterator[tuple[int, list[list[str]]]]:
    """Yield blocks of rows, each with the number of its first row; empty lines are skipped."""
    numbered = enumerate((row for row in rows if row), 1)
    while some := list(itertools.islice(numbered, ROWS_READ)):
        for number, row in some:
            if len(row) != width:
                raise InputError(f"row {number} has {len(row)} values, but the header has {width}; fix the row")
        yield some[0][0], [row for _, row in some]


def _floats(block: list[list[str]], names: Sequence[str], start: int, by: str) -> np.ndarray:
    flat = list(itertools.chain.from_iterable(block))
    try:
        if any("_" in text for text in flat):  # Python parses 1_000 as a number
            raise ValueError
        with np.errstate(over="ignore"):
            values = np.array(list(map(float, flat)), np.float64).astype(np.float32)
        bad = np.flatnonzero(~np.isfinite(values))
        if not len(bad):
            return values.reshape(len(block), -1)
        first = int(bad[0])
    except ValueError:
        first = next(i for i, text in enumerate(flat) if not is_number(text))
    raise no_number(flat[first], start + first // len(names), names[first % len(names)], by)


def _as_labels(texts: list[str], name: str) -> np.ndarray:
    """Integers if all labels are whole numbers, such as 1 or 1.0, else strings; fractional numbers raise an error."""
    check_names(texts)
    for row, text in enumerate(texts, 1):
        if text.lower() in EMPTY:
            raise InputError(f"row {row} has no label; drop the row or label it")
    kinds, places = np.unique(np.array(texts, dtype=str), return_inverse=True)
    numeric = [text for text in kinds.tolist() if is_number(text)]
    broken = {text for text in numeric if float(text) % 1}
    if broken and len(numeric) >= 0.9 * len(kinds):  # a few may be NA
        row, text = next((row, text) for row, text in enumerate(texts, 1) if text in broken)
        raise fractions(float(text), row, name, NAMED_BY)
    try:
        numbers = [_whole(text) for text in kinds.tolist()]
        return np.array(numbers, np.int64)[places]
    except (ValueError, OverflowError):
        return kinds[places]


def _whole(text: str) -> int:
    if "_" in text or float(text) % 1:
        raise ValueError
    return int(text) if text.lstrip("+-").isdecimal() else int(float(text))
