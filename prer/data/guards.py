"""What keeps a hostile or damaged file from doing harm: bounds on what it may become, names that can be shown."""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol, TypeVar

import numpy as np

from prer.errors import InputError
from prer.text import shown

FOLD, FREE = 200, 256 << 20  # honest data hardly shrinks 200-fold; below 256 MiB nobody is harmed
CHUNK = 1 << 20
NAME = 1000  # characters of a label
ACCEPTED = "give an .npz, CSV, Parquet, a folder or zip of CLASS/image, or of idx, CIFAR .bin or SVHN .mat files"

T = TypeVar("T")


class Readable(Protocol):
    """What bytes can be read from."""

    def read(self, size: int = -1, /) -> bytes:
        """At most so many bytes; none at the end."""
        ...


def bound(size: int) -> int:
    """How many bytes a compressed file of so many bytes may become."""
    return max(FOLD * size, FREE)


def check_growth(path: Path, claimed: int, size: int) -> None:
    """Refuse what would inflate beyond all reason, before anything is allocated for it."""
    if claimed > bound(size):
        raise InputError(f"{shown(path)}: {size} bytes would inflate to {claimed:.3g}; this is refused as a zip bomb")


def fill(file: Readable, array: np.ndarray) -> np.ndarray:
    """Read until a contiguous array is full, a piece at a time, so that there is never a second copy of all of it."""
    view, done = array.reshape(-1).view(np.uint8), 0
    while done < len(view):
        piece = file.read(min(CHUNK, len(view) - done))
        if not piece:
            raise EOFError
        view[done : done + len(piece)] = np.frombuffer(piece, np.uint8)
        done += len(piece)
    return array


def take(file: Readable, count: int) -> bytes:
    """Just so many bytes, which must be few."""
    return fill(file, np.empty(count, np.uint8)).tobytes()


class Limited(io.RawIOBase):
    """What is inflated from a file, within its bound: seeking ahead in a gzip file inflates all that is skipped."""

    def __init__(self, path: Path, file: io.BufferedIOBase) -> None:
        self._path, self._file, self._size = path, file, path.stat().st_size

    def read(self, size: int = -1, /) -> bytes:
        """So many bytes, or what is left of them."""
        check_growth(self._path, self._file.tell() + max(size, 0), self._size)
        return self._file.read(max(size, 0))

    def seek(self, offset: int, whence: int = 0, /) -> int:
        """Go to a place, counted from the start."""
        check_growth(self._path, offset, self._size)
        return self._file.seek(offset, whence)

    def tell(self) -> int:
        """The place in the file."""
        return self._file.tell()


@contextmanager
def sound(path: Path | str, *others: type[Exception]) -> Iterator[None]:
    """Whatever a library says about a damaged file becomes one sentence, but for others that have their own.

    They say it in too many ways to name.
    """
    try:
        with warnings.catch_warnings(action="ignore"):
            yield
    except (InputError, MemoryError, *others):
        raise
    except Exception as error:
        if isinstance(error, OSError) and error.errno:  # the disk's fault and not the file's
            raise
        raise InputError(f"{shown(path)}: it cannot be read, it is damaged or not whole; get or make it anew") from None


@contextmanager
def about(path: Path | str) -> Iterator[None]:
    """Put the name of the file before a sentence about what is in it."""
    try:
        yield
    except InputError as error:
        raise InputError(f"{shown(path)}: {error}") from None


def as_text(name: str) -> str:
    """A file name as text that can be written anywhere; bytes that are no UTF-8 become escapes such as \\xe9."""
    return name.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")


def check_names(labels: Iterable[object]) -> None:
    """Refuse labels that are no names: NumPy gives every label of an array the room of the longest."""
    longest = max((len(label) for label in labels if isinstance(label, (str, bytes))), default=0)
    if longest > NAME:
        raise InputError(f"a label of {longest} characters; {NAME} are the most")


def in_parts(items: Iterable[T], name: Callable[[T], str]) -> tuple[list[T], list[T]]:
    """What is to be learned from, and what is for testing, told by the names.

    Validation data is the test part where there is no other, and is left out where there is; a part that is alone is
    for learning, whatever its name.
    """
    train, test, valid = [], [], []
    for item in items:
        found = re.search(r"(?<![a-z])(?:(t10k|test)|val(?![a-z])|valid)", name(item).lower())
        (train if not found else test if found[1] else valid).append(item)
    test = test or valid
    return (train, test) if train else (test, [])
