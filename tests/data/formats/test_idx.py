"""idx files: pairs of images and labels, packed or not, and which part is which."""

import gzip

import numpy as np
import pytest
from support.data_files import idx_bytes, pixels, same, write_idx

from prer.data.files import read
from prer.errors import InputError

X, Y = pixels(7, 9, 8), np.arange(7, dtype=np.uint8)
X2, Y2 = pixels(3, 9, 8), np.arange(3, dtype=np.uint8) + 4


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("test", ["t10k-", "test-", "emnist-letters-test-", "validation-", "val_", "Valid."])
@pytest.mark.parametrize("kind", ["u1", ">i4"])
def test_idx_files_are_paired_and_the_test_part_comes_last(tmp_path, packed, test, kind):
    write_idx(tmp_path, "train-", X, Y.astype(kind), packed)
    write_idx(tmp_path, test, X2, Y2, packed)
    (tmp_path / "readme.txt").write_text("hello, world")
    assert same(read(tmp_path), np.concatenate([X, X2])[:, None], [*Y, *Y2], 3)


@pytest.mark.parametrize("prefix", ["t10k-", "train-", ""])
def test_one_pair_of_idx_files_is_the_whole_pool(tmp_path, prefix):
    write_idx(tmp_path / "raw", prefix, X, Y, ending="")
    assert same(read(tmp_path / "raw"), X[:, None], Y)
    assert same(read(tmp_path), X[:, None], Y)  # one folder further up


def test_of_test_and_validation_files_those_for_validation_are_left_out(tmp_path):
    for prefix, x, y in (("train-", X, Y), ("test-", X2, Y2), ("valid-", X2[:1], Y2[:1])):
        write_idx(tmp_path, prefix, x, y)
    assert same(read(tmp_path), np.concatenate([X, X2])[:, None], [*Y, *Y2], 3)


def test_an_idx_file_beside_its_gz_is_read_once(tmp_path):
    write_idx(tmp_path, "train-", X, Y, packed=True)
    write_idx(tmp_path, "train-", X, Y)
    assert same(read(tmp_path), X[:, None], Y)
    (tmp_path / "train-images-idx3-ubyte.gz").write_bytes(b"\x1f\x8b, broken off")  # and it is not needed
    assert same(read(tmp_path), X[:, None], Y)


def test_a_name_that_ends_in_test_is_no_test_part(tmp_path):
    write_idx(tmp_path, "latest-train-", X, Y)
    write_idx(tmp_path, "latest-test-", X2, Y2)
    assert read(tmp_path).tests == 3


def test_only_the_files_that_are_named_are_read(tmp_path):
    write_idx(tmp_path, "letters-train-", X, Y)
    write_idx(tmp_path, "digits-train-", X2, Y2)
    with pytest.raises(InputError, match="several data sets"):
        read(tmp_path)
    names = ("digits-train-images-idx3-ubyte", "digits-train-labels-idx1-ubyte")
    assert same(read(tmp_path, only=names), X2[:, None], Y2)


def test_gzip_in_several_members_is_one_file(tmp_path):
    data = idx_bytes(X)
    write_idx(tmp_path, "train-", X, Y)
    (tmp_path / "train-images-idx3-ubyte").write_bytes(gzip.compress(data[:100]) + gzip.compress(data[100:]))
    assert same(read(tmp_path), X[:, None], Y)
