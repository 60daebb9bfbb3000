"""Files that survive a crash, and reading that no file can abuse."""

import os
import stat
from pathlib import Path


def durable(file: Path, data: bytes) -> None:
    """Write a file anew, and return when it would survive a loss of power."""
    file.unlink(missing_ok=True)  # should it be a link, what it leads to stays as it is
    with file.open("xb") as target:
        target.write(data)
        target.flush()
        os.fsync(target.fileno())


def settle(folder: Path) -> None:
    """Make the names in a folder durable."""
    if os.name != "posix":
        return  # elsewhere a folder cannot be opened
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def content(file: Path, most: int) -> bytes:
    """The bytes of an ordinary file of at most so many; ValueError where it is a link, a pipe, or larger."""
    about = file.lstat()
    if not stat.S_ISREG(about.st_mode):
        raise ValueError(f"{file} is no ordinary file")
    if about.st_size > most:
        raise ValueError(f"{file} is too large")
    return file.read_bytes()
