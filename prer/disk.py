"""Files that survive a crash, and reading that no file can abuse."""

import hashlib
import json
import os
import shutil
import stat
from pathlib import Path
from typing import Any

MOST_TOML = 2**20  # bytes; it is read slowly


def durable(file: Path, data: bytes) -> None:
    """Write a file anew, and return when it would survive a loss of power; where that fails, leave no part of it."""
    file.unlink(missing_ok=True)  # should it be a link, what it leads to stays as it is
    try:
        with file.open("xb") as target:
            target.write(data)
            target.flush()
            os.fsync(target.fileno())
    except OSError:
        file.unlink(missing_ok=True)
        raise


def replace_file(file: Path, data: bytes) -> None:
    """Replace a file, so that after a crash either the old or the new one is there, whole; its mode stays."""
    new = file.with_name(f".{file.name}.new")
    durable(new, data)
    try:
        if file.exists():
            shutil.copymode(file, new)
        new.replace(file)
    except OSError:
        new.unlink(missing_ok=True)
        raise


def settle(folder: Path) -> None:
    """Make the names in a folder durable."""
    if os.name != "posix":
        return  # elsewhere a folder cannot be opened
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def room() -> int:
    """The most bytes that are read at once; to be written, a checkpoint needs more than four times its size."""
    if not hasattr(os, "sysconf"):
        return 2**32
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 4


def as_json(plain: Any) -> bytes:
    """Plain values and arrays as JSON, always in the same way."""
    return json.dumps(plain, sort_keys=True, default=lambda array: array.tolist()).encode()


def checksum(plain: Any) -> str:
    """sha256 of plain values, however they are laid out."""
    return hashlib.sha256(as_json(plain)).hexdigest()


def content(file: Path, most: int) -> bytes:
    """The bytes of an ordinary file of at most so many; ValueError where it is a link, a pipe, or larger."""
    about = file.lstat()
    if not stat.S_ISREG(about.st_mode):
        raise ValueError(f"{file} is no ordinary file")
    if about.st_size > most:
        raise ValueError(f"{file} is too large")
    return file.read_bytes()
