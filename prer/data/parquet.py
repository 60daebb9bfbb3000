"""Parquet tables: one column of labels, and numbers in all the others. Needs pyarrow, imported only here."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from prer.data.arrays import Data, as_labels
from prer.data.csvs import AT_ONCE, column
from prer.data.guard import about, check_growth, check_names, shown, sound
from prer.errors import InputError


def read(path: Path, label: str = "") -> Data:
    """Vectors as float32, and labels."""
    try:
        import pyarrow.parquet as parquet
    except ImportError:
        raise InputError(f"{shown(path)}: Parquet needs pyarrow; pip install pyarrow") from None
    with sound(path), path.open("rb") as raw:
        file = parquet.ParquetFile(raw, pre_buffer=False)
        names, rows = list(file.schema_arrow.names), file.metadata.num_rows
        with about(path):
            place = column(names, label)
        if rows < 1:
            raise InputError(f"{shown(path)}: a table without rows; give one row for each sample")
        check_growth(path, rows * len(names) * 8, path.stat().st_size)
        return _read(path, file, names, place)


def _read(path: Path, file: Any, names: list[str], place: int) -> Data:
    features = names[:place] + names[place + 1 :]
    x, labels, done = np.empty((file.metadata.num_rows, len(features)), np.float32), [], 0
    with about(path):
        for batch in file.iter_batches(AT_ONCE, use_threads=False):
            rows = x[done : done + len(batch)]
            for i, name in enumerate(features):
                rows[:, i] = _numbers(batch.column(name), name)
            labels.append(_plain(batch.column(names[place])))
            done += len(batch)
        if done != len(x):
            raise InputError("it cannot be read, it has not as many rows as it says; make it anew")
        y = np.concatenate(labels)
        check_names(y.tolist())
        return Data(x, as_labels(y))


def _numbers(column: Any, name: str) -> np.ndarray:
    values = _plain(column)
    if column.null_count or (values.dtype.kind == "f" and np.isnan(values).any()):
        raise InputError(f"column {shown(name, 30)!r}: a value is missing; fill it or drop the row")
    if values.dtype.kind not in "biuf":
        raise InputError(f"column {shown(name, 30)!r} is of type {shown(column.type, 30)}; features must be numbers")
    with np.errstate(over="ignore"):
        values = values.astype(np.float32)
    if not np.isfinite(values).all():
        raise InputError(f"column {shown(name, 30)!r} holds values beyond 32-bit floats; rescale it")
    return values


def _plain(column: Any) -> np.ndarray:
    decoded = column.dictionary_decode() if hasattr(column, "dictionary_decode") else column
    return decoded.to_numpy(zero_copy_only=False)
