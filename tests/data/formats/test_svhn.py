"""SVHN's .mat files, compared with what scipy wrote."""

import numpy as np
import pytest
import scipy.io
from support.data_files import pixels, same

from prer.data.files import read

S = pixels(9, 8, 3, 7)  # H, W, C, N
SVHN = np.moveaxis(S, [3, 2], [0, 1])
DIGITS = np.array([1, 10, 3, 9, 10, 2, 5])


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("x_kind", ["u1", "f8", "i2", "f4"])
@pytest.mark.parametrize("y_kind", ["u1", "f8"])
def test_svhn_against_scipy(tmp_path, packed, x_kind, y_kind):
    labels = DIGITS[:, None].astype(y_kind)
    others = {"note": "hello", "cell": np.array([{"a": 1}, "b"], object), "z": np.array([1j]), "last": np.eye(3)}
    scipy.io.savemat(
        tmp_path / "train_32x32.mat", {"y": labels} | others | {"X": S.astype(x_kind)}, do_compression=packed
    )
    scipy.io.savemat(tmp_path / "test_32x32.mat", {"X": S[..., :2], "y": labels[:2]}, do_compression=packed)
    (tmp_path / "extra_32x32.mat").write_bytes((tmp_path / "test_32x32.mat").read_bytes())
    expected = DIGITS % 10
    assert same(read(tmp_path), np.concatenate([SVHN, SVHN[:2]]), [*expected, *expected[:2]], 2)
    assert same(read(tmp_path / "train_32x32.mat"), SVHN, expected)
    assert same(read(tmp_path / "extra_32x32.mat"), SVHN[:2], expected[:2])


@pytest.mark.parametrize("labels", [[0, 10, 3, 9, 1, 2, 5], [1, 11, 3, 9, 1, 2, 10], [1, 2, 3, 4, 5, 6, 7]])
def test_labels_that_are_not_svhns_stay(tmp_path, labels):
    scipy.io.savemat(tmp_path / "a.mat", {"X": S, "y": np.array(labels)[:, None]})
    assert read(tmp_path / "a.mat").y.tolist() == labels


def test_a_mat_with_one_sample_or_grey_ones(tmp_path):
    scipy.io.savemat(tmp_path / "one.mat", {"X": S[..., 0], "y": [[4]]})
    assert same(read(tmp_path / "one.mat"), SVHN[:1], [4])
    scipy.io.savemat(tmp_path / "grey.mat", {"X": S[:, :, 0], "y": DIGITS})
    assert same(read(tmp_path / "grey.mat"), SVHN[:, :1], DIGITS % 10)
