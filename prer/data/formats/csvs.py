"""CSV with a header: one column of labels, and numbers or texts in all the others."""

from __future__ import annotations

import csv
import itertools
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple, TextIO

import numpy as np

from prer.data.arrays import Data, fractions
from prer.data.columns import EMPTY, FLOAT, MARKS, NAMED_BY, is_number
from prer.data.guards import about, check_names, sound
from prer.data.tables import Asked, Labels, Table, Words, of_table
from prer.data.texts import of_rows
from prer.errors import InputError
from prer.text import shown

ROWS_READ = 4096  # rows at a time
LINE = 1 << 24  # maximum characters of a line


class Content(NamedTuple):
    """The columns of a file."""

    table: Table
    label: str  # name of the label column; empty if there is none
    labels: list[str]


def read(path: Path, asked: Asked) -> Data:
    """Read float32 vectors and labels from a CSV with a header, separated by commas, semicolons or tabs."""
    with sound(path), about(path), path.open(encoding="utf-8-sig", newline="") as file:
        try:
            if asked.text is not None:
                names, rows = _table(file)
                values = (row for _, block in _blocks(rows, len(names)) for row in block)
                return of_rows(names, values, asked, lambda labels, name: _as_labels(_stripped(labels), name))
            content = _read(file, asked)
        except UnicodeDecodeError:
            raise InputError("it is not UTF-8 text; save the table as CSV in UTF-8") from None
        except csv.Error as error:
            raise InputError(f"it cannot be read as CSV: {shown(error)}; fix the quotes") from None
    with about(path):
        texts, label = content.labels, content.label
        return of_table(content.table, Labels(label, lambda: set(texts), lambda: _as_labels(texts, label)), asked)


def _read(file: TextIO, asked: Asked) -> Content:
    """Read a file, a second time if a column turns out late to hold more than numbers."""
    words: dict[int, Words] = {}
    content, late = _read_once(file, asked, words)
    if not late:
        return content
    file.seek(0)
    return _read_once(file, asked, {i: Words() for i in words})[0]


def _read_once(file: TextIO, asked: Asked, words: dict[int, Words]) -> tuple[Content, bool]:
    """Read a file; add columns that are not all numbers to `words`, and tell whether one lacks its first rows."""
    names, rows = _table(file)
    place = asked.place(names)
    features = [name for i, name in enumerate(names) if i != place]
    known = asked.texts
    words |= {i: Words() for i, name in enumerate(features) if name in known and i not in words}
    early, labels, blocks = set(words), [], []
    for start, block in _blocks(rows, len(names)):
        if place is not None:
            labels += [row.pop(place).strip() for row in block]
        blocks.append(_floats(block, words))
        early |= set(words) if start == 1 else set()
    if not blocks:
        raise InputError("it has a header but no rows; give one row for each sample")
    table = Table(features, np.concatenate(blocks), words)
    return Content(table, "" if place is None else names[place], labels), set(words) > early


def _table(file: TextIO) -> tuple[list[str], Iterator[list[str]]]:
    """The names of the columns, and the rows below them."""
    lines = _lines(file)
    first = next((line for line in lines if line.strip()), "")
    comma = max(",;\t", key=re.sub(r'"[^"]*"', "", first).count)
    rows = csv.reader(itertools.chain([first], lines), delimiter=comma)
    return [name.strip() for name in next(rows, [])], rows


def _stripped(texts: Iterable[str]) -> list[str]:
    return [text.strip() for text in texts]


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


def _floats(block: list[list[str]], words: dict[int, Words]) -> np.ndarray:
    """Rows as float32, NaN where a value is missing; columns with other values go to `words`."""
    if not words:
        values = _parsed(list(itertools.chain.from_iterable(block)))
        if values is not None:
            return values.reshape(len(block), -1)
    columns = list(zip(*block, strict=True))
    floats = np.zeros((len(block), len(columns)), np.float32)
    for i, texts in enumerate(columns):
        values = None if i in words else _parsed(texts)
        if values is None and i not in words:
            values = _parsed(["nan" if text.strip().lower() in MARKS else text for text in texts])
        if values is None:
            words.setdefault(i, Words()).add([text.strip() for text in texts])
        else:
            floats[:, i] = values
    return floats


def _parsed(texts: Sequence[str]) -> np.ndarray | None:
    """Numbers as float32, or None if one is not a number or too large."""
    try:
        values = None if "_" in "".join(texts) else np.array(list(map(float, texts)), np.float64)  # 1_000 is none
    except ValueError:
        return None
    return None if values is None or (np.abs(values) > FLOAT).any() else values.astype(np.float32)


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
