"""Texts as samples: a column of a table, or a list of strings. A feature extractor turns them into vectors."""

# N texts

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from prer.data.arrays import Data
from prer.data.columns import check_names, find_column
from prer.data.reading import Reading
from prer.data.tables import Asked
from prer.errors import InputError
from prer.text import shown

LONGEST = 100_000  # characters of a text
PARTS = {"train": False, "training": False, "test": True, "testing": True}  # whether rows are for tests
USUAL = "text"  # name of a column that is taken for the texts if none is named


class Places(NamedTuple):
    """Index of each column of a table of texts; None where there is none."""

    text: int
    label: int | None
    part: int | None


def is_texts(x: Any) -> bool:
    """Whether samples are texts: a sequence or array of strings."""
    if isinstance(x, np.ndarray):
        return x.ndim == 1 and (x.dtype.kind == "U" or (x.dtype.kind == "O" and _all_texts(x.tolist())))
    return isinstance(x, (list, tuple)) and _all_texts(x)


def as_texts(x: np.ndarray | Sequence[str] | Any, rows: Sequence[int] | None = None) -> list[str]:
    """Texts without surrounding spaces; an empty or very long one raises an error that names its row, from 1."""
    texts = [str(text).strip() for text in x]
    for row, text in zip(rows or range(1, len(texts) + 1), texts, strict=True):
        if not text:
            raise InputError(f"the text in row {row} is empty; fill it or drop the row")
        if len(text) > LONGEST:
            raise InputError(
                f"the text in row {row} has {len(text):,} characters, the limit is {LONGEST:,}; shorten it"
            )
    return texts


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
            kept[test].append((number, row[place.text], None if place.label is None else row[place.label]))
    if not kept[False]:
        what = "no row" if place.part is None else f"no row with 'train' in column {shown(names[place.part], 30)!r}"
        raise InputError(f"it has {what}; give one row for each sample")
    every = kept[False] + kept[True]
    x = as_texts(["" if text is None else text for _, text, _ in every], [number for number, _, _ in every])
    label = "" if place.label is None else names[place.label]
    reading = replace(asked.known or Reading(), text=names[place.text], label=label or asked.label, inputs="texts")
    y = np.empty(0, dtype=str)
    with contextlib.suppress(*(() if asked.learning else (InputError,))):  # to predict, labels are optional
        y = as_labels([of_row for _, _, of_row in every], label) if label else y
    return Data(np.array(x, dtype=object), y, len(kept[True]), reading=reading)


def places(names: Sequence[str], asked: Asked) -> Places:
    """The columns of texts, of labels and of parts; all others are left out."""
    check_names(names)
    known = asked.known
    text = asked.text or (known.text if known else "")
    label = asked.label or (known.label if known else "")
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
        of_label = others[-1]
    if chosen:
        return Places(list(names).index(chosen), of_label, part)
    left = [i for i in others if i != of_label]
    if len(left) != 1:
        named = ", ".join(repr(shown(names[i], 30)) for i in left[:5])
        raise InputError(f"the texts could be in several columns ({named}); name the column with stream.text")
    return Places(left[0], of_label, part)


def _is_test(value: Any) -> bool | None:
    """Whether a row of this part is for tests; None if it belongs to neither part."""
    return PARTS.get(str(value).strip().lower())


def _all_texts(values: Sequence[Any]) -> bool:
    return bool(len(values)) and all(isinstance(value, str) for value in values)
