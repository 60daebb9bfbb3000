"""Files that survive a crash, files that the user names, and reading within bounds."""

import hashlib
import json
import math
import os
import stat
from pathlib import Path

import numpy as np
import pytest

from prer import disk
from prer.disk import (
    as_json,
    check_output,
    checksum,
    content,
    durable,
    exists,
    finite,
    replace_file,
    write_into,
    write_output,
)
from prer.errors import InputError


def names(folder):
    return sorted(path.name for path in folder.iterdir())


@pytest.fixture
def failing_sync(monkeypatch):
    """A disk that is full when a file is to be flushed."""

    def full(handle):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)


# -- files that survive a crash ---------------------------------------------------------------------------------------


def test_a_file_is_flushed_before_anything_goes_on(tmp_path, monkeypatch):
    flushed = []
    monkeypatch.setattr(os, "fsync", lambda handle: flushed.append(os.fstat(handle).st_size))
    durable(tmp_path / "a", b"four")
    assert ((tmp_path / "a").read_bytes(), flushed) == (b"four", [4])


def test_a_link_is_replaced_and_its_target_stays(tmp_path):
    (tmp_path / "target").write_bytes(b"old")
    (tmp_path / "a").symlink_to("target")
    durable(tmp_path / "a", b"new")
    assert not (tmp_path / "a").is_symlink() and (tmp_path / "target").read_bytes() == b"old"


@pytest.mark.usefixtures("failing_sync")
def test_nothing_half_is_left_and_the_old_file_stays(tmp_path):
    with pytest.raises(OSError, match="No space left"):
        durable(tmp_path / "a", b"new")
    assert names(tmp_path) == []
    (tmp_path / "a").write_bytes(b"old")
    with pytest.raises(OSError, match="No space left"):
        replace_file(tmp_path / "a", b"new")
    assert names(tmp_path) == ["a"] and (tmp_path / "a").read_bytes() == b"old"


def test_a_file_that_is_replaced_keeps_its_mode(tmp_path):
    (tmp_path / "a").write_bytes(b"old")
    (tmp_path / "a").chmod(0o640)
    replace_file(tmp_path / "a", b"new")
    assert (tmp_path / "a").read_bytes() == b"new" and stat.S_IMODE((tmp_path / "a").stat().st_mode) == 0o640
    assert names(tmp_path) == ["a"]


def test_a_folder_is_flushed_and_closed(tmp_path, monkeypatch):
    handles = []
    monkeypatch.setattr(os, "fsync", handles.append)
    disk.settle(tmp_path)
    (handle,) = handles
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(handle)


def test_a_path_that_cannot_be_looked_at_does_not_exist(tmp_path):
    (tmp_path / "a").touch()
    (tmp_path / "loop").symlink_to("loop")
    assert exists(tmp_path / "a")
    assert not any(exists(tmp_path / name) for name in ("b", "x" * 300, "a/b", "loop", "a\0"))


# -- plain values -----------------------------------------------------------------------------------------------------


def test_plain_values_are_written_in_one_way():
    assert as_json({"b": np.arange(2), "a": [1.5, None]}) == b'{"a": [1.5, null], "b": [0, 1]}'
    assert checksum({"a": 1, "b": 2}) == checksum({"b": 2, "a": 1}) == hashlib.sha256(b'{"a": 1, "b": 2}').hexdigest()
    assert checksum({"a": 1}) != checksum({"a": 2})


def test_numbers_that_json_does_not_have_become_none():
    value = {"a": [1.0, math.nan, {"b": -math.inf}], "c": "nan", "d": 3}
    assert finite(value) == {"a": [1.0, None, {"b": None}], "c": "nan", "d": 3}
    json.dumps(finite(value), allow_nan=False)


# -- reading within bounds --------------------------------------------------------------------------------------------


def test_a_file_is_read_up_to_a_size(tmp_path):
    (tmp_path / "a").write_bytes(b"four")
    assert content(tmp_path / "a", 4) == b"four"
    with pytest.raises(ValueError, match="is too large"):
        content(tmp_path / "a", 3)


def test_only_ordinary_files_are_read(tmp_path):
    (tmp_path / "a").write_bytes(b"four")
    (tmp_path / "link").symlink_to("a")
    os.mkfifo(tmp_path / "pipe")
    for name in ("link", "pipe", "."):
        with pytest.raises(ValueError, match="is not a regular file"):
            content(tmp_path / name, 100)
    with pytest.raises(FileNotFoundError):
        content(tmp_path / "nothing", 100)


def test_there_is_room_for_a_quarter_of_the_memory():
    assert disk.room() == os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 4 > 2**26


# -- files that the user names ----------------------------------------------------------------------------------------


def test_a_file_is_written_through_a_link(tmp_path):
    (tmp_path / "folder").mkdir()
    (tmp_path / "link").symlink_to("folder/a")
    write_output(tmp_path / "link", b"new", "-o")
    assert (tmp_path / "link").is_symlink() and (tmp_path / "folder" / "a").read_bytes() == b"new"


def test_what_is_no_file_is_refused(tmp_path):
    said = f"cannot write {tmp_path}: it is not a regular file; use another -o"
    for refuse in (lambda: write_output(tmp_path, b"", "-o"), lambda: check_output(tmp_path, "-o")):
        with pytest.raises(InputError) as caught:
            refuse()
        assert str(caught.value) == said


def test_an_output_is_tried_before_it_is_made(tmp_path):
    check_output(tmp_path / "a", "-o")
    check_output(Path("/dev/null"), "-o")
    assert names(tmp_path) == []
    with pytest.raises(InputError, match=r"cannot write .*/none/a: No such file or directory; use another --json"):
        check_output(tmp_path / "none" / "a", "--json")


def test_files_are_written_into_a_folder_that_is_made(tmp_path):
    folder = tmp_path / "a" / "b"
    assert write_into(folder, {"x": b"one", "y": b"two"}, "--out") == [folder / "x", folder / "y"]
    assert (folder / "x").read_bytes() == b"one" and names(folder) == ["x", "y"]
    with pytest.raises(InputError, match=r"cannot write .*/x: File exists; use another --out"):
        write_into(folder / "x", {"z": b""}, "--out")


def test_a_file_in_a_folder_of_others_is_written_in_place_and_nothing_is_left(tmp_path, monkeypatch):
    file = tmp_path / "mine.json"
    file.write_text("old")

    def refused(self, target):
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(Path, "replace", refused)  # as in a folder with the sticky bit
    write_output(file, b"new", "-o")
    assert names(tmp_path) == ["mine.json"] and file.read_text() == "new"
    with pytest.raises(InputError, match=r"cannot write .*; use another -o"):
        write_output(tmp_path / "other.json", b"new", "-o")
    assert names(tmp_path) == ["mine.json"]
