"""Tables of numbers and texts: texts are one-hot encoded, missing values are errors or filled.

A column is text if more than half of its values are not numbers. What is decided for the first table is kept in its
`Reading`, so that later tables are encoded in the same way.
"""

# N rows, F columns without the label, K different texts in a column

from __future__ import annotations

import contextlib
import re
import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from prer.data.arrays import Data
from prer.data.columns import EMPTY, FILES, FLOAT, NEITHER, PYTHON, Ways, as_text, label_column, no_number, number_of
from prer.data.guards import NAME
from prer.data.reading import MOST, Missing, Reading, listed, medians
from prer.disk import room
from prer.errors import InputError
from prer.text import shown

TEXTS = 100  # maximum number of different texts in a column
FEW = 10  # rows; with so many, texts that almost all differ are no categories
TRUTH = ("true", "false")


class Asked(NamedTuple):
    """How to read a table."""

    label: str = ""  # the label column; empty: that of `known`, or the last
    missing: Missing = "error"  # for a table that fixes the reading
    known: Reading | None = None  # how earlier data was read, if this table is to be read in the same way
    learning: bool = True  # labels are required
    text: str | None = None  # the column of texts; empty: that of `known`, or the only one; None: no column holds texts
    part: str = ""  # the column that tells training rows from test rows (texts)
    ways: Ways = FILES

    @property
    def by(self) -> Ways:
        """What error messages suggest: a known reading cannot be changed."""
        return NEITHER if self.known else self.ways

    @property
    def texts(self) -> set[str]:
        """Names of the columns that are known to be text."""
        known = self.known
        if known is None or not known.categories:
            return set()
        return {name for name, texts in zip(known.columns, known.categories, strict=True) if texts}

    def place(self, names: Sequence[str], in_file: bool = True) -> int | None:
        """Index of the label column, or None if there is none and none is needed."""
        if self.known is None:
            return label_column(names, self.label)
        place = self.reading.label_in(names, in_file)
        if place is None and self.learning:
            label = self.reading.label
            what = f"it has no label column {shown(label, 30)!r}" if label else "it has no labels"
            add = "add it" if label else f"name the label column with {self.ways.label}"
            raise InputError(f"{what}; {add}, since labels are needed to learn")
        return place

    @property
    def reading(self) -> Reading:
        """The known reading, with the label column that was asked for."""
        known = self.known or Reading()
        return replace(known, label=self.label) if self.label else known


class Words:
    """The values of a column that are not all numbers, as texts; equal ones are stored once."""

    def __init__(self) -> None:
        self._places: dict[str, int] = {}
        self._blocks: list[np.ndarray] = []

    def add(self, texts: Sequence[str]) -> None:
        """Append rows."""
        places = self._places
        codes = (places.setdefault(text, len(places)) for text in texts)
        self._blocks.append(np.fromiter(codes, np.int64, len(texts)))

    @property
    def texts(self) -> list[str]:
        """The different texts."""
        return list(self._places)

    @property
    def codes(self) -> np.ndarray:
        """Index of each row's text [N]."""
        return np.concatenate(self._blocks) if self._blocks else np.empty(0, np.int64)

    def row(self, which: np.ndarray) -> int:
        """Number of the first row whose text is one of `which` [K], from 1."""
        return int(which[self.codes].argmax()) + 1

    def values(self) -> list[float | None]:
        """Value of each text: NaN if it is missing, None if it is no number; a column of true and false is 1 and 0."""
        values = [number_of(text) for text in self._places]
        others = [
            text.lower() for text, value in zip(self._places, values, strict=True) if value is None or value == value
        ]
        if others and set(others) <= set(TRUTH):
            return [float(text.lower() == "true") if text.lower() in TRUTH else float("nan") for text in self._places]
        return values

    def is_text(self) -> bool:
        """Whether more than half of the values are not numbers; missing ones do not count.

        Numbers such as 1,5 are not texts either: they must raise an error and not become categories.
        """
        counts, values = np.bincount(self.codes, minlength=len(self._places)).tolist(), self.values()
        rows = list(zip(counts, self._places, values, strict=True))
        texts = sum(n for n, text, value in rows if value is None and number_of(re.sub("[,_]", "", text)) is None)
        return 2 * texts > sum(n for n, _, value in rows if not _is_nan(value))


def _is_nan(value: float | None) -> bool:
    return value is not None and value != value


class Table(NamedTuple):
    """The columns of a table without the label, before they are encoded."""

    names: Sequence[str]
    numbers: np.ndarray  # float32 [N, F]; NaN where a value is missing; meaningless in columns of `words`
    words: dict[int, Words]  # the columns that are not all numbers


class Labels(NamedTuple):
    """The labels of a table; without a column of labels, the name is empty."""

    name: str
    texts: Callable[[], Iterable[str]]  # as texts
    read: Callable[[], np.ndarray]  # returns the labels, or raises an `InputError`


def of_table(table: Table, labels: Labels, asked: Asked) -> Data:
    """Encode the columns of a table as vectors; an error names row and column."""
    if asked.known is None:
        x, reading = _first(table, labels, asked)
    else:
        x, reading = _later(table, asked.reading, asked.by), asked.reading
    if asked.learning:
        return Data(x, labels.read(), reading=reading)
    y = np.empty(0, dtype=str)
    if labels.name:
        with contextlib.suppress(InputError):  # labels are optional here, so invalid ones are ignored
            y = labels.read()
    return Data(x, y, reading=reading)


def _first(table: Table, labels: Labels, asked: Asked) -> tuple[np.ndarray, Reading]:
    """Vectors of a table that fixes the reading, and the reading."""
    texts = {i: words for i, words in table.words.items() if words.is_text()}
    if texts and labels.name and not asked.label:
        _check_label(table, texts, labels, asked.ways)
    names = list(table.names)
    categories = tuple(_categories(texts[i], name, asked) if i in texts else () for i, name in enumerate(names))
    _write_numbers(table, texts, asked.by)
    reading = Reading(columns=tuple(names), label=labels.name, categories=categories if any(categories) else ())
    if asked.missing == "median":
        table.numbers[:, list(texts)] = 0
        reading = replace(reading, missing="median", medians=medians(table.numbers, names))
    return _encoded(table, texts, reading, asked.by), reading


def _later(table: Table, known: Reading, by: Ways) -> np.ndarray:
    """Vectors of a table that is read as an earlier one."""
    order = known.order(table.names) if known.columns else range(len(table.names))
    if list(order) != list(range(len(table.names))):
        words = {new: table.words[old] for new, old in enumerate(order) if old in table.words}
        table = Table(known.columns, table.numbers[:, order], words)
    texts = {i: words for i, words in table.words.items() if known.categories and known.categories[i]}
    _write_numbers(table, texts, by)
    x = _encoded(table, texts, known, by)
    unknown = {table.names[i]: _unknown(words, known.categories[i]) for i, words in sorted(texts.items())}
    said = [f"column {shown(name, 30)!r} holds unknown texts ({listed(new)})" for name, new in unknown.items() if new]
    if said:
        more = f"; so do {len(said) - MOST} more columns" if len(said) > MOST else ""
        warnings.warn(f"{'; '.join(said[:MOST])}{more}: each counts as none of the known categories", stacklevel=4)
    return x


def _check_label(table: Table, texts: dict[int, Words], labels: Labels, ways: Ways) -> None:
    """Raise an error if the last column, which was taken as the label, is less like one than another column."""
    values = {text.strip(): number_of(text) for text in labels.texts()}
    if any(value is None for value in values.values()):
        return
    fewest = min(texts, key=lambda i: (len(texts[i].texts), -i))
    text, last = shown(table.names[fewest], 25), shown(labels.name, 25)
    raise InputError(
        f"column {text!r} holds text, and the last column {last!r} numbers; "
        f"name the label column with {ways.named.format(text)} or {ways.named.format(last)}"
    )


def _categories(words: Words, name: str, asked: Asked) -> tuple[str, ...]:
    """The different texts of a column, sorted."""
    texts, rows = sorted({as_text(text) for text in words.texts if text.lower() not in EMPTY}), len(words.codes)
    if len(texts) > TEXTS or (rows >= FEW and len(texts) > 0.9 * rows):
        much = f"more than the limit of {TEXTS}" if len(texts) > TEXTS else f"one for almost each of its {rows} rows"
        raise InputError(
            f"column {shown(name, 30)!r} holds {len(texts)} different texts, {much}; "
            f"drop the column, or name the label column with {asked.ways.label}{_of_texts(name, asked.ways)}"
        )
    longest = max(map(len, texts))
    if longest > NAME:
        raise InputError(
            f"column {shown(name, 30)!r} holds a text of {longest} characters, more than the limit of {NAME}; "
            "drop the column"
        )
    return tuple(texts)


def _of_texts(name: str, ways: Ways) -> str:
    """What to do if a column holds the texts that are to be classified."""
    if ways is FILES:
        return f", or classify its texts: stream.text={shown(name, 30)} stream.features=minilm"
    return ", or classify its texts with features='minilm'" if ways is PYTHON else ""


def _unknown(words: Words, categories: Sequence[str]) -> list[str]:
    known = {*categories, *EMPTY}
    return [text for text in words.texts if as_text(text) not in known and text.lower() not in EMPTY]


def _write_numbers(table: Table, texts: dict[int, Words], by: Ways) -> None:
    """Write the numbers of columns that hold other values, too, but are not text."""
    for i, words in sorted(table.words.items()):
        if i in texts:
            continue
        values = words.values()
        bad = np.array([value is None or abs(value) > FLOAT for value in values], bool)
        if bad.any():
            row = words.row(bad)
            raise no_number(words.texts[words.codes[row - 1]], row, table.names[i], by)
        table.numbers[:, i] = np.array(values, np.float32)[words.codes]


def _encoded(table: Table, texts: dict[int, Words], reading: Reading, by: Ways) -> np.ndarray:
    """Features [N, features], each text column as one feature for each category."""
    table.numbers[:, list(texts)] = 0
    _fill(table, reading, by)
    if not texts:
        return table.numbers
    if len(table.numbers) * sum(reading.widths) * 4 > room():
        raise InputError(
            f"with its texts encoded it has {sum(reading.widths)} features, too many for the memory; "
            "drop columns with many texts"
        )
    x, start = np.zeros((len(table.numbers), sum(reading.widths)), np.float32), 0
    for i, width in enumerate(reading.widths):
        if i in texts:
            places = _places(texts[i], reading.categories[i], table.names[i], reading, by)
            rows = np.flatnonzero(places >= 0)
            x[rows, start + places[rows]] = 1
        else:
            x[:, start] = table.numbers[:, i]
        start += width
    return x


def _fill(table: Table, reading: Reading, by: Ways) -> None:
    """Fill missing numbers in place, or raise an error that names the first."""
    for i, column in enumerate(table.numbers.T):
        holes = np.isnan(column)
        if not holes.any():
            continue
        if reading.missing == "error":
            raise no_number(None, int(holes.argmax()) + 1, table.names[i], by)
        column[holes] = reading.medians[i]


def _places(words: Words, categories: Sequence[str], name: str, reading: Reading, by: Ways) -> np.ndarray:
    """Index of each row's category [N]; -1 if its text is unknown or missing."""
    empty = np.array([text.lower() in EMPTY for text in words.texts], bool)
    if reading.missing == "error" and empty.any():
        raise no_number(None, words.row(empty), name, by)
    known = {text: place for place, text in enumerate(categories)}
    return np.array([known.get(as_text(text), -1) for text in words.texts], np.int64)[words.codes]


# -- columns of data frames and Parquet ------------------------------------------------------------------------------


def as_words(values: Iterable[Any], first: int, name: object, by: Ways) -> list[str]:
    """Values of a column as texts, empty if missing; whole numbers are written without a fraction."""
    texts = []
    for row, value in enumerate(values, first):
        if isinstance(value, str):
            texts.append(value.strip())
        elif is_missing(value):
            texts.append("")
        elif isinstance(value, (float, np.floating)) and float(value).is_integer() and abs(value) < 2**53:
            texts.append(str(int(value)))
        elif isinstance(value, (bool, int, float, np.bool_, np.number)):
            texts.append(str(value))
        else:
            raise no_number(value, row, name, by)
    return texts


def texts_of(labels: np.ndarray) -> set[str]:
    """The different labels as texts."""
    try:
        return set(as_words(set(labels.tolist()), 1, "", NEITHER))
    except (InputError, TypeError):  # labels of other kinds; reading them raises the error
        return {"?"}


def as_floats(values: np.ndarray, first: int, name: object, by: Ways) -> np.ndarray:
    """A column of numbers as float32, NaN where a value is missing; an error names the row, counted from `first`."""
    if values.dtype.kind == "O":
        for row, value in enumerate(values, first):
            if not is_missing(value) and not isinstance(value, (bool, int, float, np.bool_, np.number)):
                raise no_number(value, row, name, by)
        values = np.array([float("nan") if is_missing(value) else float(value) for value in values], np.float64)
    if values.dtype.kind not in "biuf":
        missing = np.flatnonzero(values != values)  # dates have a missing value, too
        row = int(missing[0]) if len(missing) else 0
        raise no_number(None if len(missing) else values[0], first + row, name, by)
    with np.errstate(over="ignore"):
        floats = values.astype(np.float32)
    beyond = np.isinf(floats)
    if beyond.any():
        raise no_number(values[beyond][0], first + int(beyond.argmax()), name, by)
    return floats


def is_missing(value: Any) -> bool:
    """Whether a value is None, NaN, or the missing value of pandas."""
    return (
        value is None
        or type(value).__name__ in ("NAType", "NaTType")
        or (isinstance(value, (float, np.floating)) and bool(value != value))
    )
