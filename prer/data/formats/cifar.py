"""The binary files of CIFAR-10 and CIFAR-100: loose, in a folder, or in a tar archive, which is never unpacked."""

from __future__ import annotations

import gzip
import io
import tarfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import NamedTuple, cast

import numpy as np

from prer.data.arrays import Data
from prer.data.guards import Limited, Readable, fill, in_parts, sound
from prer.errors import InputError
from prer.text import shown

PIXELS = 3 * 32 * 32
RECORDS_READ = 1000  # records at a time, so that memory never holds both all records of a file and its images
MEMBERS = 10_000  # maximum members of an archive; CIFAR's have nine
LIMITS = {1: (10,), 2: (20, 100)}  # number of label bytes in a record: number of labels for each of them

Open = Callable[[], AbstractContextManager[Readable]]


class Batch(NamedTuple):
    """A file of records: label bytes (the last one is used) and pixels."""

    name: str
    size: int
    open: Open


def is_cifar(path: Path) -> bool:
    """Whether a file may be CIFAR's, by its size and first label bytes; the format has no magic bytes."""
    size = path.stat().st_size
    with path.open("rb") as file:
        head = file.read(2)
    return any(size % (PIXELS + n) == 0 and _in_range(np.frombuffer(head[:n], np.uint8), n) for n in LIMITS if size)


def read(path: Path, paths: Sequence[Path]) -> Data:
    """Images [N, 3, 32, 32] and their labels from loose files."""
    return _read(path, [Batch(p.name, p.stat().st_size, lambda p=p: p.open("rb")) for p in paths])


def read_tar(path: Path, packed: bool) -> Data:
    """Images [N, 3, 32, 32] and their labels from a .tar or .tar.gz."""
    with sound(path), gzip.open(path) if packed else path.open("rb") as file:
        limited = Limited(path, cast(io.BufferedIOBase, file))
        with tarfile.open(fileobj=limited, mode="r:") as archive:
            batches = [
                Batch(member.name.rpartition("/")[2], member.size, lambda member=member: _member(archive, member))
                for member in _members(archive)
            ]
            if not batches:
                raise InputError(f"{shown(path)}: it contains no .bin files; use the binary version of CIFAR")
            return _read(path, batches)


def _members(archive: tarfile.TarFile) -> Iterator[tarfile.TarInfo]:
    """Yield the .bin files; links, sparse files and all others are skipped, so their paths cannot do harm."""
    for count, member in enumerate(archive):
        if count == MEMBERS:
            raise EOFError
        if member.isreg() and not member.issparse() and member.name.endswith(".bin"):
            yield member


def _member(archive: tarfile.TarFile, member: tarfile.TarInfo) -> AbstractContextManager[Readable]:
    file = archive.extractfile(member)
    if file is None:
        raise EOFError
    return cast(AbstractContextManager[Readable], file)


def _read(path: Path, batches: list[Batch]) -> Data:
    """Read all batches into one array, in the order of the archive, so that it is inflated only once."""
    train, test = in_parts(sorted(batches, key=lambda batch: batch.name), lambda batch: batch.name)
    extra = _label_bytes(path, train + test)
    counts = {id(batch): batch.size // (PIXELS + extra) for batch in train + test}
    total = sum(counts.values())
    x, y = np.empty((total, 3, 32, 32), np.uint8), np.empty(total, np.int64)
    starts = dict(zip(counts, np.cumsum([0, *counts.values()]).tolist(), strict=False))
    for batch in batches:
        if id(batch) in counts:
            rows = slice(starts[id(batch)], starts[id(batch)] + counts[id(batch)])
            _fill(path, batch, extra, x[rows].reshape(-1, PIXELS), y[rows])
    return Data(x, y, sum(counts[id(batch)] for batch in test))


def _label_bytes(path: Path, batches: list[Batch]) -> int:
    """Number of label bytes in each record: one in CIFAR-10, two in CIFAR-100."""
    for extra in LIMITS:
        if all(batch.size and batch.size % (PIXELS + extra) == 0 for batch in batches):
            return extra
    odd = next((b for b in batches if not b.size or b.size % (PIXELS + 1)), batches[0])
    what = "its size is not a multiple of 3073 (CIFAR-10) or 3074 (CIFAR-100)"
    raise InputError(f"{shown(path, 50)}: {shown(odd.name, 30)} cannot be read: {what}; download it again")


def _fill(path: Path, batch: Batch, extra: int, x: np.ndarray, y: np.ndarray) -> None:
    records = np.empty((min(RECORDS_READ, len(x)), PIXELS + extra), np.uint8)
    with sound(path), batch.open() as file:
        for start in range(0, len(x), RECORDS_READ):
            some = records[: len(x) - start]
            fill(file, some)
            if not _in_range(some[:, :extra], extra):
                name = f"{shown(path, 50)}: {shown(batch.name, 30)}"
                raise InputError(f"{name} is not a CIFAR file, because its labels are out of range; download it again")
            x[start : start + RECORDS_READ], y[start : start + RECORDS_READ] = some[:, extra:], some[:, extra - 1]


def _in_range(labels: np.ndarray, extra: int) -> bool:
    return bool((labels < np.array(LIMITS[extra])).all())
