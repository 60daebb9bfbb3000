"""Texts as samples: a column of a table, or a list of strings. A feature extractor turns them into vectors."""

# N texts

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from prer.data.arrays import Data
from prer.data.columns import EMPTY, check_names, find_column
from prer.data.reading import listed
from prer.data.tables import Asked, is_missing
from prer.errors import InputError
from prer.text import shown

LONGEST = 100_000  # characters of a text
PARTS = {"train": False, "training": False, "test": True, "testing": True}  # whether rows are for tests
ALL_DIFFERENT = 10  # rows; if so many have labels that all differ, these are hardly labels
USUAL = "text"  # name of a column that is taken for the texts if none is named
LABEL = "label"  # name of a column that is taken for the labels; without it, the last one is


class Places(NamedTuple):
    """Index of each column of a table of texts; None where there is none."""

    text: int
    label: int | None
    part: int | None


def is_texts(x: Any) -> bool:
    """Whether samples are texts: a sequence or array of strings, some of which may be missing."""
    if isinstance(x, np.ndarray):
        return x.ndim == 1 and x.dtype.kind in "UOT" and is_texts(x.tolist())
    return isinstance(x, (list, tuple)) and any(isinstance(value, str) for value in x)


def as_texts(x: Iterable[Any], rows: Iterable[int] | None = None) -> list[str]:
    """Texts without surrounding spaces; a missing, empty or very long one raises an error with its row, from 1."""
    return [_text(value, row) for row, value in zip(rows or itertools.count(1), x, strict=False)]


def _text(value: Any, row: int) -> str:
    if not isinstance(value, str) and not is_missing(value):
        raise InputError(f"row {row} holds no text; write it as text, or drop the row")
    text = value.strip() if isinstance(value, str) else ""
    if not text:
        raise InputError(f"the text in row {row} is empty; fill it or drop the row")
    if len(text) > LONGEST:
        raise InputError(f"the text in row {row} has {len(text):,} characters, the limit is {LONGEST:,}; shorten it")
    return text


def of_rows(
    names: Sequence[str],
    rows: Iterable[Sequence[Any]],
    asked: Asked,
    as_labels: Callable[[list[Any], str], np.ndarray],
) -> Data:
    """Texts and labels of a table.

    Args:
        names: names of its columns.
        rows: the values of each row.
        asked: which columns are wanted.
        as_labels: converts the values of the label column of this name.
    """
    place = places(names, asked)
    kept: dict[bool, list[tuple[int, Any, Any]]] = {False: [], True: []}
    for number, row in enumerate(rows, 1):
        test = False if place.part is None else _is_test(row[place.part])
        if test is not None:
            label = None if place.label is None else _label(row[place.label], number, asked)
            kept[test].append((number, row[place.text], label))
    if not kept[False]:
        what = "no row" if place.part is None else f"no row with 'train' in column {shown(names[place.part], 30)!r}"
        raise InputError(f"it has {what}; give one row for each sample")
    numbers, found, of_rows = zip(*kept[False], *kept[True], strict=True)
    x, label = as_texts(found, numbers), "" if place.label is None else names[place.label]
    reading = replace(asked.reading, text=names[place.text], inputs="texts")
    reading = replace(reading, label=label or reading.label)
    y = np.empty(0, dtype=str)
    with contextlib.suppress(*(() if asked.learning else (InputError,))):  # to predict, labels are optional
        y = as_labels(list(of_rows), label) if label else y
    _check_guess(asked, label, x, y)
    return Data(np.array(x, dtype=object), y, len(kept[True]), reading=reading)


def _label(value: Any, row: int, asked: Asked) -> Any:
    """A label, of whatever type; a missing one is an error if labels are needed."""
    if asked.learning and (is_missing(value) or str(value).strip().lower() in EMPTY):
        raise InputError(f"row {row} has no label; drop the row or label it")
    return value


def _check_guess(asked: Asked, label: str, x: Sequence[str], y: np.ndarray) -> None:
    """Raise an error if the last column, which was taken for the labels, does not look like them."""
    if asked.known is not None or asked.label:
        return
    values = {str(value) for value in y.tolist()}
    if len(values) > len({*x}) or len(values) == len(y) >= ALL_DIFFERENT:
        raise InputError(
            f"the last column {shown(label, 30)!r} would be the label, but it holds {len(values)} different values "
            f"in {len(y)} rows; name the label column with {asked.ways.label}"
        )
    if values and all(_is_test(value) is not None for value in values):
        raise InputError(
            f"the last column {shown(label, 30)!r} would be the label, but it says which rows are for tests; "
            f"name the label column with {asked.ways.label}"
        )


def places(names: Sequence[str], asked: Asked) -> Places:
    """The columns of texts, of labels and of parts; all others are left out."""
    check_names(names)
    text, label = asked.text or asked.reading.text, asked.reading.label
    if text and text not in names:
        find_column(names, text)  # raises an error with a hint
    part = find_column(names, asked.part) if asked.part else None
    chosen = text or (USUAL if USUAL in names and label != USUAL else "")
    others = [i for i, name in enumerate(names) if name != chosen and i != part]
    of_label: int | None = None
    if label and (asked.learning or label in names):
        of_label = find_column(names, label)
    elif not label and asked.learning:
        if not others or (not chosen and len(others) < 2):
            raise InputError("it has no column of labels; texts need a label each to be learned")
        of_label = list(names).index(LABEL) if LABEL in names and chosen != LABEL else others[-1]
    left = [list(names).index(chosen)] if chosen else [i for i in others if i != of_label]
    if len(left) != 1:
        raise InputError(
            f"the texts could be in several columns ({listed([names[i] for i in left])}); {asked.by.text}"
            if left
            else "it has no column of texts besides the label; add it"
        )
    found = Places(left[0], of_label, part)
    used = [place for place in found if place is not None]
    if len({*used}) < len(used):
        twice = next(names[place] for place in used if used.count(place) > 1)
        raise InputError(f"column {shown(twice, 30)!r} cannot be two of text, label and part; name different columns")
    return found


def _is_test(value: Any) -> bool | None:
    """Whether a row of this part is for tests; None if it belongs to neither part."""
    return PARTS.get(str(value).strip().lower())
