"""Parquet tables, compared with what pandas wrote, and without pyarrow."""

import builtins
import sys
from types import SimpleNamespace

import numpy as np
import pandas
import pyarrow
import pytest
from support.data_files import parquet_with, same

from prer.data.files import read
from prer.data.formats import parquet
from prer.data.tables import Asked
from prer.errors import InputError


def test_the_row_of_a_value_is_counted_over_all_batches(tmp_path, monkeypatch):
    monkeypatch.setattr("prer.data.formats.parquet.ROWS_READ", 2)
    for bad, said in (
        (None, "row 4, column 'a': a value is missing"),
        (1e300, r"row 4, column 'a': 1e\+300 does not fit"),
    ):
        pandas.DataFrame({"a": [1.0, 2, 3, bad, 5], "label": range(5)}).to_parquet(tmp_path / "a")
        with pytest.raises(InputError, match=said):
            read(tmp_path / "a")


@pytest.mark.parametrize("labels", [["cat", "dog", "cat"], [3, 1, 2], [1.0, 2.0, 3.0]])
@pytest.mark.parametrize("kind", ["as it is", "category"])
def test_parquet_against_pandas(tmp_path, labels, kind, monkeypatch):
    monkeypatch.setattr("prer.data.formats.parquet.ROWS_READ", 2)
    frame = pandas.DataFrame({"a": [1.5, 2, 3], "kind": labels, "b": [1, 2, 3], "c": [True, False, True]})
    if kind == "category":
        frame["kind"] = frame["kind"].astype("category")
    frame.to_parquet(tmp_path / "a")
    expected = frame[["a", "b", "c"]].to_numpy(np.float32)
    assert same(read(tmp_path / "a", label="kind"), expected, labels)


def test_parquet_without_pyarrow_says_what_to_install(tmp_path, monkeypatch):
    parquet_with(tmp_path / "a")
    plain = builtins.__import__

    def without(name, *rest):
        if name.startswith("pyarrow"):
            raise ImportError(name)
        return plain(name, *rest)

    for name in [name for name in sys.modules if name.startswith("pyarrow")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(InputError, match=r"/a: Parquet files need pyarrow; install it with: pip install pyarrow"):
        read(tmp_path / "a")


def test_parquet_that_has_fewer_rows_than_it_says_is_refused():
    class Lying:
        metadata = SimpleNamespace(num_rows=5)
        schema_arrow = pyarrow.schema([("a", pyarrow.float64()), ("label", pyarrow.int64())])

        def iter_batches(self, *_, **__):
            return [pyarrow.record_batch({"a": [1.0, 2.0], "label": [0, 1]})]

    with pytest.raises(InputError, match="its row count is wrong"):
        parquet._read(Lying(), ["a", "label"], 1, Asked())
