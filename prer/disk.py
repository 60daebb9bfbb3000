"""Crash-safe writes, output files that the user names by an option, and reads with a size limit."""

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

MOST_TOML = 2**20  # bytes; parsing TOML is slow


def durable(file: Path, data: bytes) -> None:
    """Write a new file and flush it to disk, so that it survives a power loss; on an error, delete the partial file."""
    file.unlink(missing_ok=True)  # if it is a symlink, its target stays as it is
    try:
        with file.open("xb") as target:
            target.write(data)
            target.flush()
            os.fsync(target.fileno())
    except OSError:
        file.unlink(missing_ok=True)
        raise


def replace_file(file: Path, data: bytes) -> None:
    """Replace a file atomically and keep its mode: after a crash, the complete old or new file is there."""
    new = file.with_name(f".{file.name}.new")
    durable(new, data)
    try:
        if file.exists():
            shutil.copymode(file, new)
        new.replace(file)
    except OSError:
        new.unlink(missing_ok=True)
        raise


def exists(path: Path) -> bool:
    """Whether a path exists; False if the system does not say, because a name is too long or a folder is closed."""
    return os.path.exists(path)  # noqa: PTH110, the method of `Path` raises an error then


def settle(folder: Path) -> None:
    """Flush the entries of a folder to disk."""
    if os.name != "posix":
        return  # other systems cannot open a folder
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def room() -> int:
    """Maximum bytes to read at once: a quarter of the memory; writing a checkpoint takes over four times its size."""
    if not hasattr(os, "sysconf"):
        return 2**32
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 4


def as_json(plain: Any) -> bytes:
    """Serialize plain values and arrays to JSON, with sorted keys."""
    return json.dumps(plain, sort_keys=True, default=lambda array: array.tolist()).encode()


def finite(value: Any) -> Any:
    """Replace NaN and infinities in nested values by None, because JSON has neither."""
    if isinstance(value, dict):
        return {key: finite(v) for key, v in value.items()}
    if isinstance(value, list):
        return [finite(v) for v in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def checksum(plain: Any) -> str:
    """sha256 of plain values, independent of the order of keys."""
    return hashlib.sha256(as_json(plain)).hexdigest()


def content(file: Path, most: int) -> bytes:
    """Read a regular file of at most `most` bytes; ValueError if it is a symlink, a pipe, or larger."""
    about = file.lstat()
    if not stat.S_ISREG(about.st_mode):
        raise ValueError(f"{file} is not a regular file")
    if about.st_size > most:
        raise ValueError(f"{file} is too large")
    return file.read_bytes()


def write_output(file: Path, data: bytes, option: str) -> None:
    """Replace a file atomically, or write to a pipe or device. For a symlink, write its target and keep the link."""
    with _explained(file, option):
        if _is_stream(file):
            file.write_bytes(data)
            return
        target = Path(os.path.realpath(file))
        try:
            replace_file(target, data)
        except PermissionError:  # the file may be writable although its folder is not
            if not target.exists():
                raise
            target.write_bytes(data)


def write_into(folder: Path, files: Mapping[str, bytes], option: str) -> list[Path]:
    """Write files by name into a folder, create it if missing, and return their paths."""
    with _explained(folder, option):
        folder.mkdir(parents=True, exist_ok=True)
    for name, data in files.items():
        write_output(folder / name, data, option)
    return [folder / name for name in files]


def check_output(file: Path, option: str) -> None:
    """Reject an output file that cannot be written, before minutes are spent on its content."""
    with _explained(file, option):
        if not _is_stream(file):
            trial = Path(os.path.realpath(file)).with_name(f".{file.name}.new")
            trial.touch()
            trial.unlink()


def _is_stream(file: Path) -> bool:
    """Whether this is a pipe or a character device; OSError if it is neither of these nor a regular file."""
    try:
        mode = file.stat().st_mode
    except FileNotFoundError:
        return False
    if stat.S_ISFIFO(mode) or stat.S_ISCHR(mode):
        return True
    if not stat.S_ISREG(mode):
        raise OSError(errno.EINVAL, "it is not a regular file")
    return False


@contextmanager
def _explained(file: Path, option: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise InputError(f"cannot write {file}: {error.strerror}; use another {option}") from None
