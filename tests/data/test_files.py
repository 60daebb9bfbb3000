"""What a path holds is told by its content, whatever its name."""

import gzip
import io
import os
import tarfile

import numpy as np
import pytest
from support.data_files import GOOD, ROWS, folder, idx_bytes, mat, parquet_with, savez, tar_of, zipped

from prer.data import files
from prer.data.reading import Reading
from prer.errors import InputError


def npy_bytes(array):
    buffer = io.BytesIO()
    np.save(buffer, array)
    return buffer.getvalue()


KINDS = {
    "zip": lambda p: zipped(p, GOOD),
    "parquet": parquet_with,
    "pickle": lambda p: p.write_bytes(b"\x80\x04\x95."),
    "mat": mat,
    "tar": lambda p: tar_of(p, ("a.bin", tarfile.REGTYPE, bytes(3073)), packed=False),
    "tar.gz": lambda p: tar_of(p, ("a.bin", tarfile.REGTYPE, bytes(3073))),
    "idx": lambda p: p.write_bytes(gzip.compress(idx_bytes(np.ones((4, 8, 8))))),
    "bin": lambda p: p.write_bytes(bytes(3073)),
    "csv": lambda p: p.write_text(ROWS),
}


@pytest.mark.parametrize("kind", KINDS)
def test_a_format_is_told_by_the_content(tmp_path, kind):
    KINDS[kind](tmp_path / "data")
    assert files._kind(tmp_path / "data") == kind


def test_what_cannot_be_read_is_said_with_what_can(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "empty").touch()
    (tmp_path / "odd").write_bytes(b"\x01\x02\x03")
    for name, why in (("pipe", "not a regular file"), ("empty", "it is empty"), ("odd", "its format is unknown")):
        assert why in files._kind(tmp_path / name) and "; give an .npz, CSV" in files._kind(tmp_path / name)


def test_a_path_is_found_or_not(tmp_path, monkeypatch):
    (tmp_path / "a.csv").touch()
    monkeypatch.setenv("HOME", str(tmp_path))
    assert files.find(str(tmp_path / "a.csv")) == files.find("~/a.csv") == tmp_path / "a.csv"
    for data in (str(tmp_path / "nothing"), "", "~nobody-has-this-name/a", "a" * 300):
        assert files.find(data) is None


@pytest.mark.parametrize("kind", ["zip", "mat", "folder"])
def test_only_tables_have_a_column_of_labels_and_missing_values(tmp_path, kind):
    {"folder": lambda p: folder(p, GOOD), **KINDS}[kind](tmp_path / "data")
    with pytest.raises(InputError, match=r"data: stream\.label applies only to tables"):
        files.read(tmp_path / "data", label="a")
    with pytest.raises(InputError, match=r"data: stream\.missing applies only to tables and vectors, and this is not"):
        files.read(tmp_path / "data", missing="median")


def test_arrays_of_vectors_are_filled_by_the_medians_of_the_training_part(tmp_path):
    x = np.array([[1, np.nan], [3, 4], [8, 6], [np.nan, np.nan]])
    savez(tmp_path / "x.npz", x_train=x[:3], y_train=[0, 1, 0], x_test=x[3:], y_test=[1])
    data = files.read(tmp_path / "x.npz", missing="median")
    assert data.x.tolist() == [[1, 5], [3, 4], [8, 6], [3, 5]] and data.tests == 1
    known = Reading.of(data.reading.to_json(), [2])
    assert known == Reading(missing="median", medians=(3.0, 5.0), shape=(2,))
    more = files.read(tmp_path / "x.npz", known=known)
    assert more.x.tolist() == data.x.tolist() and more.reading == known and more.tests == 1
    savez(tmp_path / "x.npz", x=[[1, 2, 3]], y=[0])
    with pytest.raises(InputError, match=r"x\.npz: its samples have shape 3, but those of the training .* shape 2;"):
        files.read(tmp_path / "x.npz", known=known)
    savez(tmp_path / "x.npz", x=[[1, np.inf], [1, 2]], y=[0, 1])
    with pytest.raises(InputError, match=r"x\.npz: some samples contain infinite values"):
        files.read(tmp_path / "x.npz", missing="median")


def test_new_data_may_be_one_array_or_x_alone(tmp_path):
    x = np.arange(6.0).reshape(2, 3)
    (tmp_path / "x.npy").write_bytes(npy_bytes(x))
    savez(tmp_path / "x.npz", x=x)
    for name in ("x.npy", "x.npz"):
        data = files.read_new(tmp_path / name, Reading(shape=(3,)))
        assert np.array_equal(data.x, x) and len(data.y) == 0
        with pytest.raises(InputError):
            files.read(tmp_path / name)  # there is nothing to learn from
