"""Whether files are those that their publishers made."""

import gzip
import hashlib

import pytest
from support.data_sets import put

from prer.data import catalogue, checksums
from prer.data.catalogue import CATALOGUE
from prer.data.checksums import complaint, examine, state
from prer.data.entry import File

SERVED = File("x", (), 4, hashlib.sha256(b"body").hexdigest())
PACKED = File("x", (), 24, content_sha256=hashlib.sha256(b"body").hexdigest(), content_size=4)


@pytest.mark.parametrize(
    ("file", "content", "expected"),
    [
        (SERVED, None, "missing"),
        (SERVED, b"body", "ok"),
        (SERVED, b"bodY", "damaged"),
        (SERVED, b"", "damaged"),
        (PACKED, None, "missing"),
        (PACKED, gzip.compress(b"body", mtime=0), "ok"),
        (PACKED, gzip.compress(b"bo", mtime=0) + gzip.compress(b"dy", mtime=0), "ok"),
        (PACKED, gzip.compress(b"bodY", mtime=0), "damaged"),
        (PACKED, gzip.compress(b"body", mtime=0)[:-3], "damaged"),
        (PACKED, b"body", "damaged"),
    ],
)
def test_the_state_of_a_file(tmp_path, file, content, expected):
    if content is not None:
        (tmp_path / "x").write_bytes(content)
    assert state(file, tmp_path / "x") == expected


def test_a_folder_in_the_place_of_a_file_is_a_missing_file(tmp_path):
    assert state(SERVED, tmp_path) == "missing"


def test_a_file_that_cannot_be_read_is_damaged(tmp_path):
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    assert state(CATALOGUE["svhn"].files[0], tmp_path / "loop") == "missing"
    assert state(CATALOGUE["svhn"].files[0], tmp_path / ("a" * 300)) == "damaged"
    assert catalogue.known("svhn").size == 182040794 + 64275384


def test_few_bytes_that_unpack_to_very_many_are_not_unpacked(tmp_path, monkeypatch):
    class Bomb:
        reads = 0

        def __enter__(self):
            return self

        def __exit__(self, *error):
            pass

        def read(self, count):
            self.reads += 1
            assert self.reads < 10
            return bytes(count)

    (tmp_path / "x").touch()
    monkeypatch.setattr(checksums.gzip, "open", lambda path: Bomb())
    assert state(PACKED, tmp_path / "x") == "damaged"


def test_a_data_set_is_examined_in_the_form_that_is_here(tiny, data_folder):
    assert examine(CATALOGUE["digits"]) == {}
    fetched = [data_folder / "CIFAR10" / file.name for file in CATALOGUE["cifar10"].files]
    assert examine(CATALOGUE["cifar10"]) == dict.fromkeys(fetched, "missing")
    place = put("cifar10", "cifar-10-batches-bin")
    (place / "test_batch.bin").write_bytes(b"")
    states = examine(CATALOGUE["cifar10"])
    assert states.pop(place / "test_batch.bin") == "damaged"
    assert states == {place / f"data_batch_{i}.bin": "ok" for i in range(1, 6)}


def test_the_complaint_is_about_damage_first_and_about_what_was_asked_for(tmp_path):
    results = {"a": {tmp_path / "1": "missing"}, "b": {tmp_path / "2": "ok", tmp_path / "3": "damaged"}}
    assert complaint(results, ["a"]) == f"{tmp_path / '3'} is damaged; download it again with: prer data fetch b"
    results["b"][tmp_path / "3"] = "ok"
    assert complaint(results, ["b", "a"]) == f"{tmp_path / '1'} is missing; download it with: prer data fetch a"
    assert complaint(results, ["b"]) == complaint(results, []) == ""
