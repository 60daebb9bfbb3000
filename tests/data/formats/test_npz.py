""".npz archives: the arrays as they are, and which archives are refused."""

import gc
import zipfile

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.data_files import RNG, pixels, same

from prer.data.files import read
from prer.errors import InputError

few = settings(max_examples=40, deadline=None, database=None)
X, Y = pixels(7, 9, 8), np.arange(7, dtype=np.uint8)
X2, Y2 = pixels(3, 9, 8), np.arange(3, dtype=np.uint8) + 4
VECTORS, LABELS = np.arange(60, dtype=np.float32).reshape(20, 3), np.arange(20) % 4


@few
@given(
    st.sampled_from(["u1", "<f4", "<f8", "i8", "bool", ">f4", "f2"]),
    st.sampled_from([(4,), (8, 9), (8, 9, 3)]),
    st.integers(1, 5),
    st.integers(0, 4),
    st.booleans(),
    st.sampled_from(["C", "F"]),
)
def test_an_npz_gives_the_arrays_as_they_are(tmp_path_factory, kind, shape, n, tests, packed, order):
    x = np.asarray(RNG.integers(0, 2, (n + tests, *shape)).astype(kind), order=order)
    y, path = np.arange(n + tests), tmp_path_factory.mktemp("npz") / "a"
    parts = {"x_train": x[:n], "y_train": y[:n], "x_test": x[n:], "y_test": y[n:]} if tests else {"x": x, "y": y}
    with path.open("wb") as file:
        (np.savez_compressed if packed else np.savez)(file, **parts, more=np.array([None]))
    assert same(read(path), x, y, tests)


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"x_test": X2[:, :8]}, "different shapes or types"),
        ({"x_test": X2 / 255}, "different shapes or types"),
        ({"y_test": Y2.astype(str)}, "numbers and those of the other strings"),
        ({"y_test": Y2[:2]}, "3 samples and y has 2 labels"),
        ({"y_train": Y[:2]}, "7 samples and y has 2 labels"),
        ({"y_train": np.where(Y, np.nan, 0)}, "labels are missing"),
        ({"y_train": np.array(3)}, "a single number"),
    ],
)
def test_parts_of_an_npz_must_be_alike(tmp_path, more, said):
    np.savez(tmp_path / "a.npz", **{"x_train": X, "y_train": Y, "x_test": X2, "y_test": Y2} | more)
    with pytest.raises(InputError, match=rf"a\.npz: .*{said}"):
        read(tmp_path / "a.npz")


def test_parts_of_kinds_that_mean_the_same_go_together(tmp_path):
    np.savez(tmp_path / "a.npz", x_train=X.astype("i8"), y_train=Y, x_test=X2.astype("u8"), y_test=Y2)
    assert same(read(tmp_path / "a.npz"), np.concatenate([X, X2]).astype("i8"), [*Y, *Y2], 3)
    flat = X.reshape(7, -1)
    np.savez(tmp_path / "a.npz", x_train=flat / 2, y_train=Y, x_test=flat, y_test=Y)
    assert same(read(tmp_path / "a.npz"), np.concatenate([flat / 2, flat]), [*Y, *Y], 7)


# -- bad files --------------------------------------------------------------------------------------------------------


def flipped(path):
    """An archive whose compressed bytes are damaged, though its directory is whole."""
    np.savez_compressed(path, x=np.random.default_rng(0).normal(size=(400, 5)), y=np.arange(400) % 2)
    data = bytearray(path.read_bytes())
    data[200:3000] = bytes((byte * 7 + 13) % 256 for byte in data[200:3000])
    path.write_bytes(data)


def encrypted(path):
    np.savez(path, x=VECTORS, y=LABELS)
    data = bytearray(path.read_bytes())
    data[data.index(b"PK\x01\x02") + 8] |= 1  # the flag of the first entry in the archive's list
    path.write_bytes(data)


def text_inside(path):
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("x.npy", "hello")
        archive.writestr("y.npy", "world")


def one_npy(path):
    with path.open("wb") as file:
        np.save(file, VECTORS)


def truncated(path):
    np.savez(path, x=VECTORS, y=LABELS)
    path.write_bytes(path.read_bytes()[:200])


BAD_FILES = {
    "objects": (lambda path: np.savez(path, x=np.array([{}, None]), y=LABELS), "it contains Python objects"),
    "object labels": (
        lambda path: np.savez(path, x=VECTORS, y=np.array(["a", None] * 10)),
        "it contains Python objects",
    ),
    "a pickle": (
        lambda path: path.write_bytes(b"\x80\x04\x95\x05\x00\x00\x00\x00\x00\x00\x00K\x05."),
        "it is a pickle",
    ),
    "truncated": (truncated, "it cannot be read"),
    "no zip": (lambda path: path.write_text("some text\n"), "only one column"),
    "empty": (lambda path: path.write_bytes(b""), "it is empty"),
    "a folder": (lambda path: path.mkdir(), "it contains no folders with images"),
    "text inside": (text_inside, "cannot be read|give numbers"),
    "other names": (lambda path: np.savez(path, data=VECTORS, target=LABELS), "no arrays x, y or x_train, y_train"),
    "no labels": (lambda path: np.savez(path, x=VECTORS), "no arrays x, y"),
    "no samples": (lambda path: np.savez(path, y_train=LABELS), "no arrays x, y"),
    "wrong arrays": (lambda path: np.savez(path, x=VECTORS, y=LABELS[:5]), "20 samples and y has 5 labels"),
    "one array": (one_npy, "only one array"),
    "damaged inside": (flipped, "it cannot be read"),
    "encrypted": (encrypted, "it cannot be read"),
}


@pytest.mark.parametrize("case", BAD_FILES)
def test_a_bad_data_file_is_refused_in_one_sentence(tmp_path, case):
    write, said = BAD_FILES[case]
    write(tmp_path / "bad.npz")
    with pytest.raises(InputError, match=said) as caught:
        read(tmp_path / "bad.npz")
    assert "\n" not in str(caught.value)
    del caught
    gc.collect()  # so that a file left open fails this test and not a later one
