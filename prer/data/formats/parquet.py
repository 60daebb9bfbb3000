"""Parquet tables: one column of labels, and numbers or texts in all the others. Needs pyarrow, imported only here."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from prer.data.arrays import Data, as_labels
from prer.data.columns import NAMED_BY
from prer.data.formats.csvs import ROWS_READ
from prer.data.guards import about, check_growth, check_names, sound
from prer.data.tables import Asked, Labels, Table, Words, as_floats, as_words, of_table, texts_of
from prer.data.texts import of_rows
from prer.errors import InputError
from prer.text import shown


def read(path: Path, asked: Asked) -> Data:
    """Read float32 vectors and labels."""
    try:
        import pyarrow.parquet as parquet
    except ImportError:
        raise InputError(f"{shown(path)}: Parquet files need pyarrow; install it with: pip install pyarrow") from None
    with sound(path), path.open("rb") as raw:
        file = parquet.ParquetFile(raw, pre_buffer=False)
        names, rows = list(file.schema_arrow.names), file.metadata.num_rows
        with about(path):
            place = asked.place(names) if asked.text is None else None
        if rows < 1:
            raise InputError(f"{shown(path)}: the table has no rows; give one row for each sample")
        check_growth(path, rows * len(names) * 8, path.stat().st_size)
        if asked.text is not None:
            with about(path):
                return of_rows(names, _rows(file, names), asked, _labels_of)
        with about(path):
            table, labels = _read(file, names, place, asked)
    with about(path):
        name = "" if place is None else names[place]
        y = np.concatenate(labels) if labels else np.empty(0)
        return of_table(table, Labels(name, lambda: texts_of(y), lambda: _as_labels(y, name)), asked)


def _read(file: Any, names: list[str], place: int | None, asked: Asked) -> tuple[Table, list[np.ndarray]]:
    features = [name for i, name in enumerate(names) if i != place]
    known = asked.texts
    words = {i: Words() for i, name in enumerate(features) if name in known or _is_text(file.schema_arrow, name)}
    x, labels, done = np.empty((file.metadata.num_rows, len(features)), np.float32), [], 0
    for batch in file.iter_batches(ROWS_READ, use_threads=False):
        for i, name in enumerate(features):
            values = _values(batch.column(name))
            if i in words:
                words[i].add(as_words(values, done + 1, name, asked.by))
            else:
                x[done : done + len(batch), i] = as_floats(values, done + 1, name, asked.by)
        if place is not None:
            labels.append(_values(batch.column(names[place])))
        done += len(batch)
    if done != len(x):
        raise InputError("it cannot be read because its row count is wrong; write it again")
    return Table(features, x, words), labels


def _rows(file: Any, names: list[str]) -> Iterator[tuple[Any, ...]]:
    for batch in file.iter_batches(ROWS_READ, use_threads=False):
        yield from zip(*(batch.column(name).to_pylist() for name in names), strict=True)


def _is_text(schema: Any, name: str) -> bool:
    """Whether a column holds strings, dictionary-encoded or not."""
    kind = schema.field(name).type
    return "string" in str(getattr(kind, "value_type", kind))


def _as_labels(y: np.ndarray, name: str) -> np.ndarray:
    check_names(y.tolist())
    return as_labels(y, name, NAMED_BY)


def _labels_of(y: list[Any], name: str) -> np.ndarray:
    return _as_labels(np.array(y, dtype=object), name)


def _values(column: Any) -> np.ndarray:
    decoded = column.dictionary_decode() if hasattr(column, "dictionary_decode") else column
    return decoded.to_numpy(zero_copy_only=False)
