"""Files that survive a crash, files that the user names by an option, and reading within bounds."""

import errno
import hashlib
import json
import math
import os
import shutil
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from prer.errors import InputError

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


def finite(value: Any) -> Any:
    """The same nested values with None for NaN and infinities, which JSON does not have."""
    if isinstance(value, dict):
        return {key: finite(v) for key, v in value.items()}
    if isinstance(value, list):
        return [finite(v) for v in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


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


def write_output(file: Path, data: bytes, option: str) -> None:
    """Replace a file atomically, or write into a pipe or device. A link stays: what it leads to is written."""
    with _explained(file, option):
        if _is_stream(file):
            file.write_bytes(data)
            return
        target = Path(os.path.realpath(file))
        try:
            replace_file(target, data)
        except PermissionError:  # its folder may not be ours, and the file may be
            if not target.exists():
                raise
            target.write_bytes(data)


def write_into(folder: Path, files: Mapping[str, bytes], option: str) -> list[Path]:
    """Write files by name into a folder, which is made where there is none; their paths."""
    with _explained(folder, option):
        folder.mkdir(parents=True, exist_ok=True)
    for name, data in files.items():
        write_output(folder / name, data, option)
    return [folder / name for name in files]


def check_output(file: Path, option: str) -> None:
    """Refuse a file that cannot be written, before minutes are spent on what would go there."""
    with _explained(file, option):
        if not _is_stream(file):
            trial = Path(os.path.realpath(file)).with_name(f".{file.name}.new")
            trial.touch()
            trial.unlink()


def _is_stream(file: Path) -> bool:
    """Whether this is a pipe or a character device; OSError where it is something else than these or a file."""
    try:
        mode = file.stat().st_mode
    except FileNotFoundError:
        return False
    if stat.S_ISFIFO(mode) or stat.S_ISCHR(mode):
        return True
    if not stat.S_ISREG(mode):
        raise OSError(errno.EINVAL, "this is not a file")
    return False


@contextmanager
def _explained(file: Path, option: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise InputError(f"cannot write {file}: {error.strerror}; give another {option}") from None
