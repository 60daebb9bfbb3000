"""Guards against hostile or damaged files: limits on decompressed sizes, and names that are safe to show."""

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

FOLD, FREE = 200, 256 << 20  # real data hardly compresses 200-fold; up to 256 MiB do no harm
CHUNK = 1 << 20
NAME = 1000  # maximum characters of a label
ACCEPTED = "give an .npz, CSV, Parquet, a folder or zip of CLASS/image, or of idx, CIFAR .bin or SVHN .mat files"

T = TypeVar("T")


class Readable(Protocol):
    """Anything that bytes can be read from."""

    def read(self, size: int = -1, /) -> bytes:
        """Read at most `size` bytes; none at the end."""
        ...


def bound(size: int) -> int:
    """Maximum decompressed size of a compressed file of `size` bytes."""
    return max(FOLD * size, FREE)


def check_growth(path: Path, claimed: int, size: int) -> None:
    """Reject a decompression bomb before memory is allocated for it."""
    if claimed > bound(size):
        raise InputError(
            f"{shown(path)}: {size} bytes would inflate to {claimed:.3g} bytes; refused as a possible zip bomb"
        )


def fill(file: Readable, array: np.ndarray) -> np.ndarray:
    """Fill a contiguous array from a file, in chunks, so that there is never a second copy of all of it."""
    view, done = array.reshape(-1).view(np.uint8), 0
    while done < len(view):
        piece = file.read(min(CHUNK, len(view) - done))
        if not piece:
            raise EOFError
        view[done : done + len(piece)] = np.frombuffer(piece, np.uint8)
        done += len(piece)
    return array


def take(file: Readable, count: int) -> bytes:
    """Read exactly `count` bytes, which must be few."""
    return fill(file, np.empty(count, np.uint8)).tobytes()


class Limited(io.RawIOBase):
    """A decompressed file with a size limit: seeking ahead in a gzip file inflates everything that is skipped."""

    def __init__(self, path: Path, file: io.BufferedIOBase) -> None:
        self._path, self._file, self._size = path, file, path.stat().st_size

    def read(self, size: int = -1, /) -> bytes:
        """Read `size` bytes, or as many as are left."""
        check_growth(self._path, self._file.tell() + max(size, 0), self._size)
        return self._file.read(max(size, 0))

    def seek(self, offset: int, whence: int = 0, /) -> int:
        """Seek to an offset from the start."""
        check_growth(self._path, offset, self._size)
        return self._file.seek(offset, whence)

    def tell(self) -> int:
        """Current offset in the file."""
        return self._file.tell()


@contextmanager
def sound(path: Path | str, *others: type[Exception]) -> Iterator[None]:
    """Turn any exception about a damaged file into an `InputError`, except `others`, which the caller handles.

    Libraries raise too many types of exceptions to list them.
    """
    try:
        with warnings.catch_warnings(action="ignore"):
            yield
    except (InputError, MemoryError, *others):
        raise
    except Exception as error:
        if isinstance(error, OSError) and error.errno:  # the disk failed; the file may be fine
            raise
        raise InputError(
            f"{shown(path)}: it cannot be read because it is damaged or incomplete; download or create it again"
        ) from None


@contextmanager
def about(path: Path | str) -> Iterator[None]:
    """Prefix an error about the content of a file with the file's name."""
    try:
        yield
    except InputError as error:
        raise InputError(f"{shown(path)}: {error}") from None


def as_text(name: str) -> str:
    """A file name as valid UTF-8 text; invalid bytes become escapes such as \\xe9."""
    return name.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")


def check_names(labels: Iterable[object]) -> None:
    """Reject labels that are too long: NumPy gives every label of an array as much memory as the longest."""
    longest = max((len(label) for label in labels if isinstance(label, (str, bytes))), default=0)
    if longest > NAME:
        raise InputError(f"a label has {longest} characters, more than the limit of {NAME}; shorten it")


def in_parts(items: Iterable[T], name: Callable[[T], str]) -> tuple[list[T], list[T]]:
    """Divide items into a training part and a test part by their names.

    Validation data becomes the test part if there is no other, and is left out otherwise. A lone part is for training,
    whatever its name.
    """
    train, test, valid = [], [], []
    for item in items:
        found = re.search(r"(?<![a-z])(?:(t10k|test)|val(?![a-z])|valid)", name(item).lower())
        (train if not found else test if found[1] else valid).append(item)
    test = test or valid
    return (train, test) if train else (test, [])
