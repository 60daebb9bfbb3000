"""Zip archives, checked before anything in them is read; nothing is unpacked to disk."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath, PureWindowsPath

from prer.data.guards import check_growth, sound
from prer.errors import InputError
from prer.text import shown

ENTRIES = 1_000_000
METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)  # for others, Python inflates more than was requested


@contextmanager
def opened(path: Path) -> Iterator[tuple[zipfile.ZipFile, dict[str, zipfile.ZipInfo]]]:
    """Open an archive; yield it and its files, by their names with forward slashes."""
    with sound(path), zipfile.ZipFile(path) as archive:
        if len(archive.filelist) > ENTRIES:
            raise InputError(f"{shown(path)}: it contains more than {ENTRIES} files; give fewer files, or a folder")
        files: dict[str, zipfile.ZipInfo] = {}
        for info in archive.filelist:
            name = info.filename.replace("\\", "/")
            if not name.endswith("/"):
                _check(path, name, info)
                if files.setdefault(name, info) is not info:
                    raise InputError(f"{shown(path)}: it contains {shown(name)!r} twice; create the zip again")
        check_growth(path, sum(info.file_size for info in files.values()), path.stat().st_size)
        yield archive, files


def _check(path: Path, name: str, info: zipfile.ZipInfo) -> None:
    """Reject paths out of the archive, encryption and unknown compression."""
    if name.startswith("/") or PureWindowsPath(name).drive or ".." in PurePosixPath(name).parts:
        raise InputError(f"{shown(path)}: {shown(name)!r} points outside the archive; create the zip again")
    if info.flag_bits & 1:
        raise InputError(
            f"{shown(path)}: it cannot be read because it is encrypted; create the zip again without a password"
        )
    if info.compress_type not in METHODS:
        raise InputError(f"{shown(path)}: its compression is not supported; create the zip again with deflate")


def contents(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> bytes:
    """Read all bytes of a file, and never more than the archive announces."""
    with archive.open(info) as file:
        data = file.read(info.file_size)
    if len(data) != info.file_size:
        raise EOFError
    return data
