"""Bounds on what a file may become, and names that can be shown."""

import gzip
import io
import os
import warnings

import numpy as np
import pytest

from prer.data import guards
from prer.data.guards import Limited, about, as_text, bound, check_growth, check_names, fill, in_parts, sound, take
from prer.errors import InputError


def test_small_files_may_grow_to_what_harms_nobody_and_large_ones_in_proportion():
    assert bound(0) == bound(1 << 20) == 256 << 20
    assert bound(10 << 20) == 200 * (10 << 20)


def test_growth_beyond_the_bound_is_refused(tmp_path):
    check_growth(tmp_path / "a", 256 << 20, 5)
    with pytest.raises(
        InputError, match=r"/a: 5 bytes would inflate to 2\.68e\+08 bytes; refused as a possible zip bomb"
    ):
        check_growth(tmp_path / "a", (256 << 20) + 1, 5)


def test_an_array_is_filled_piece_by_piece(monkeypatch):
    monkeypatch.setattr(guards, "CHUNK", 7)
    numbers = np.arange(30, dtype=np.int16).reshape(5, 6)
    file = io.BytesIO(numbers.tobytes() + b"more")
    assert np.array_equal(fill(file, np.empty((5, 6), np.int16)), numbers)
    assert take(file, 3) == b"mor"
    with pytest.raises(EOFError):
        take(file, 2)


def test_what_is_inflated_stays_within_the_bound(tmp_path, monkeypatch):
    monkeypatch.setattr(guards, "FOLD", 0)
    monkeypatch.setattr(guards, "FREE", 1000)
    (tmp_path / "a.gz").write_bytes(gzip.compress(bytes(range(100)) * 20))
    with gzip.open(tmp_path / "a.gz") as file:
        limited = Limited(tmp_path / "a.gz", file)
        assert limited.seek(990) == limited.tell() == 990
        assert limited.read(10) == bytes(range(90, 100))
        for beyond in (lambda: limited.read(1), lambda: limited.seek(1001)):
            with pytest.raises(InputError, match="zip bomb"):
                beyond()
        assert limited.tell() == 1000


def test_what_a_library_says_about_a_damaged_file_becomes_one_sentence():
    said = "a/b: it cannot be read because it is damaged or incomplete; download or create it again"
    with pytest.raises(InputError) as caught, sound("a/b"):
        warnings.warn("odd bytes", stacklevel=1)
        raise KeyError("deep inside")
    assert str(caught.value) == said


OTHERS = [InputError("own words"), MemoryError(), OSError(5, "Input/output error"), KeyError(1)]


@pytest.mark.parametrize("error", OTHERS)
def test_errors_that_are_not_the_files_fault_stay_as_they_are(error):
    with pytest.raises(type(error)) as caught, sound("file", KeyError):
        raise error
    assert caught.value is error


def test_an_error_of_the_system_without_a_number_is_the_files_fault():
    with pytest.raises(InputError, match="damaged"), sound("file"):
        raise OSError("broken data stream when reading image file")


def test_the_name_of_the_file_is_put_before_the_sentence():
    with pytest.raises(InputError, match=r"^a\\nb: it is bad$"), about("a\nb"):
        raise InputError("it is bad")
    with pytest.raises(KeyError), about("a"):
        raise KeyError


@pytest.mark.parametrize(("name", "text"), [(b"caf\xe9", "caf\\xe9"), ("café".encode(), "café"), (b"plain", "plain")])
def test_a_name_becomes_text_that_can_be_written(name, text):
    assert as_text(os.fsdecode(name)) == text
    assert as_text(os.fsdecode(name)).encode()


def test_labels_may_be_as_long_as_names_are():
    check_names(["a" * 1000, b"b" * 1000, 10**2000])
    for label in ("a" * 1001, b"b" * 1001):
        with pytest.raises(InputError, match="a label has 1001 characters, more than the limit of 1000"):
            check_names(["a", label])


@pytest.mark.parametrize(
    ("names", "train", "test"),
    [
        ("train test", "train", "test"),
        ("train t10k valid", "train", "t10k"),
        ("train val", "train", "val"),
        ("a-train b-validation", "a-train", "b-validation"),
        ("latest value valley", "latest value valley", ""),
        ("test", "test", ""),
        ("valid", "valid", ""),
        ("Train TEST", "Train", "TEST"),
    ],
)
def test_parts_are_told_by_their_names(names, train, test):
    assert in_parts(names.split(), str) == (train.split(), test.split())
