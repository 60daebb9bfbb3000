"""Parquet tables: one column of labels, and numbers in all the others. Needs pyarrow, imported only here."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from prer.data.arrays import Data, as_labels, of_table
from prer.data.columns import NAMED_BY, label_column, no_number
from prer.data.formats.csvs import ROWS_READ
from prer.data.guards import about, check_growth, check_names, sound
from prer.data.reading import Reading
from prer.errors import InputError
from prer.text import shown


def read(path: Path, label: str = "", known: Reading | None = None) -> Data:
    """Read float32 vectors and labels; the arguments are those of `csvs.read`."""
    try:
        import pyarrow.parquet as parquet
    except ImportError:
        raise InputError(f"{shown(path)}: Parquet files need pyarrow; install it with: pip install pyarrow") from None
    with sound(path), path.open("rb") as raw:
        file = parquet.ParquetFile(raw, pre_buffer=False)
        names, rows = list(file.schema_arrow.names), file.metadata.num_rows
        with about(path):
            place = known.label_in(names) if known else label_column(names, label)
        if rows < 1:
            raise InputError(f"{shown(path)}: the table has no rows; give one row for each sample")
        check_growth(path, rows * len(names) * 8, path.stat().st_size)
        return _read(path, file, names, place, known)


def _read(path: Path, file: Any, names: list[str], place: int | None, known: Reading | None) -> Data:
    called = "" if place is None else names[place]
    features = [name for name in names if name != called]
    x, labels, done = np.empty((file.metadata.num_rows, len(features)), np.float32), [], 0
    with about(path):
        for batch in file.iter_batches(ROWS_READ, use_threads=False):
            rows = x[done : done + len(batch)]
            for i, name in enumerate(features):
                rows[:, i] = _numbers(batch.column(name), name, done + 1, "" if known else NAMED_BY)
            if place is not None:
                labels.append(_values(batch.column(called)))
            done += len(batch)
        if done != len(x):
            raise InputError("it cannot be read because its row count is wrong; write it again")
        return of_table(x, features, called, lambda: _as_labels(np.concatenate(labels), called), known)


def _as_labels(y: np.ndarray, name: str) -> np.ndarray:
    check_names(y.tolist())
    return as_labels(y, name, NAMED_BY)


def _numbers(column: Any, name: str, first: int, by: str) -> np.ndarray:
    """A column as float32; an error names the row, counted from `first`."""
    values = _values(column)
    missing = column.is_null(nan_is_null=True).to_numpy(zero_copy_only=False)
    if missing.any():
        raise no_number(None, first + int(missing.argmax()), name, by)
    if values.dtype.kind not in "biuf":
        raise no_number(values[0], first, name, by)
    with np.errstate(over="ignore"):
        floats = values.astype(np.float32)
    beyond = ~np.isfinite(floats)
    if beyond.any():
        raise no_number(values[beyond][0], first + int(beyond.argmax()), name, by)
    return floats


def _values(column: Any) -> np.ndarray:
    decoded = column.dictionary_decode() if hasattr(column, "dictionary_decode") else column
    return decoded.to_numpy(zero_copy_only=False)
