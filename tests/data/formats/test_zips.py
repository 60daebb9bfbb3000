"""Zip archives: what is in them, and what an honest archive does not hold."""

import zipfile

import pytest
from support.data_files import zipped

from prer.data import guards
from prer.data.formats import zips
from prer.errors import InputError


def test_the_files_of_an_archive_by_their_names(tmp_path):
    zipped(tmp_path / "z", {"a/": b"", "a\\b.txt": b"one", "c": b"two"}, zipfile.ZIP_DEFLATED)
    with zips.opened(tmp_path / "z") as (archive, files):
        assert {name: zips.contents(archive, info) for name, info in files.items()} == {"a/b.txt": b"one", "c": b"two"}


@pytest.mark.parametrize("name", ["/a", "../a", "a/../b", "C:/a", "..\\a", "a/.."])
def test_names_that_lead_out_of_the_archive_are_refused(tmp_path, name):
    zipped(tmp_path / "z", {"sound": b"one", name: b"two"})
    with pytest.raises(InputError, match="points outside the archive"), zips.opened(tmp_path / "z"):
        pass


@pytest.mark.parametrize("name", ["..a", "a..b/c", "a/...", ".a"])
def test_dots_in_a_name_do_no_harm(tmp_path, name):
    zipped(tmp_path / "z", {name: b"one"})
    with zips.opened(tmp_path / "z") as (_, files):
        assert list(files) == [name]


def test_archives_of_too_many_files_are_refused(tmp_path, monkeypatch):
    zipped(tmp_path / "z", {"a": b"one", "b": b"two"})
    monkeypatch.setattr(zips, "ENTRIES", 2)
    with zips.opened(tmp_path / "z") as (_, files):
        assert len(files) == 2
    monkeypatch.setattr(zips, "ENTRIES", 1)
    with pytest.raises(InputError, match="it contains more than 1 files"), zips.opened(tmp_path / "z"):
        pass


def test_all_files_together_must_be_within_the_bound(tmp_path, monkeypatch):
    zipped(tmp_path / "z", {"a": bytes(600), "b": bytes(600)})
    monkeypatch.setattr(guards, "FOLD", 0)
    monkeypatch.setattr(guards, "FREE", 1200)
    with zips.opened(tmp_path / "z"):
        pass
    monkeypatch.setattr(guards, "FREE", 1199)
    with pytest.raises(InputError, match=r"would inflate to 1\.2e\+03 bytes; refused as a possible zip bomb"):
        zips.opened(tmp_path / "z").__enter__()


def test_a_file_that_holds_less_than_was_announced_is_refused(tmp_path):
    zipped(tmp_path / "z", {"a": b"one"})
    with pytest.raises(InputError, match="damaged or incomplete"), zips.opened(tmp_path / "z") as (archive, files):
        files["a"].file_size = 4
        zips.contents(archive, files["a"])
