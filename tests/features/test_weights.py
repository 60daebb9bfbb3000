"""Weights inside packages: which are missing, and which are not the known ones."""

import hashlib

import pytest

from prer.errors import InputError
from prer.features.weights import installed, loading, verified

DATA = b"weights" * 100
SHA256 = hashlib.sha256(DATA).hexdigest()


def test_the_bytes_of_the_known_file_are_returned(tmp_path):
    (tmp_path / "w.pth").write_bytes(DATA)
    assert verified(tmp_path / "w.pth", SHA256) == DATA


@pytest.mark.parametrize("data", [DATA[:-1], DATA + b"\0", b"", bytes([DATA[0] ^ 1]) + DATA[1:]])
def test_other_bytes_are_refused(tmp_path, data):
    (tmp_path / "w.pth").write_bytes(data)
    with pytest.raises(
        InputError, match=r"the weights w\.pth are not the known ones: their sha256 differs; install them"
    ):
        verified(tmp_path / "w.pth", SHA256)


def test_a_file_that_cannot_be_read_is_named(tmp_path):
    sentence = r"the weights w.pth cannot be read \({}\); install their package again"
    with pytest.raises(InputError, match=sentence.format("No such file or directory")):
        verified(tmp_path / "w.pth", SHA256)
    (tmp_path / "w.pth").mkdir()
    with pytest.raises(InputError, match=sentence.format("Is a directory")):
        verified(tmp_path / "w.pth", SHA256)


def test_what_is_missing_comes_with_its_command():
    installed("json", "text", ("json", "csv"))
    sentence = r"the feature extractor tiny is not installed; install it with: pip install 'prer\[text\]'"
    for packages in (("json", "no_such_package"), ("no_such_package", "json")):
        with pytest.raises(InputError, match=sentence):
            installed("tiny", "text", packages)


@pytest.mark.parametrize(
    ("error", "reason"),
    [(ImportError("no libc\nmore lines"), "no libc"), (KeyError(), "KeyError"), (OSError(5, "io"), "io")],
)
def test_a_package_that_cannot_be_loaded_comes_with_its_command(error, reason):
    sentence = rf"tiny cannot be loaded \(.*{reason}\); install it again: pip install 'prer\[text\]'$"
    with pytest.raises(InputError, match=sentence), loading("tiny", "text"):
        raise error
    with pytest.raises(KeyboardInterrupt), loading("tiny", "text"):
        raise KeyboardInterrupt
