"""The idx files of MNIST and similar data sets: a folder with image files and label files, gzipped or not."""

# N samples, H and W image

from __future__ import annotations

import gzip
import math
import re
from collections.abc import Sequence
from pathlib import Path
from typing import BinaryIO, NamedTuple, cast

import numpy as np

from prer.data.arrays import Data
from prer.data.guards import check_growth, fill, in_parts, sound, take
from prer.errors import InputError
from prer.text import shown

GZIP = b"\x1f\x8b"
BYTES, INTS = 0x08, 0x0C
TYPES = {BYTES: np.dtype("u1"), INTS: np.dtype(">i4")}


class Idx(NamedTuple):
    """The header of an idx file."""

    path: Path
    packed: bool
    type: np.dtype
    shape: tuple[int, ...]


class Pair(NamedTuple):
    """A file of images and the file of their labels."""

    images: Idx
    labels: Idx


def is_idx(head: bytes) -> bool:
    """Whether a file that begins with these bytes is an idx file."""
    return len(head) >= 4 and head[:2] == b"\0\0" and head[2] in range(8, 15) and head[3] in range(1, 9)


def read(folder: Path, paths: Sequence[Path]) -> Data:
    """Images [N, 1, H, W] and their labels from the idx files of a folder."""
    train, test = in_parts(_pairs(folder, paths), lambda pair: pair.images.path.name)
    if len(train) > 1 or len(test) > 1:
        raise InputError(f"{shown(folder)}: it contains several data sets in idx files; put each into its own folder")
    first, counts = train[0].images, [pair.images.shape[0] for pair in train + test]
    x = np.empty((sum(counts), 1, *first.shape[1:]), np.uint8)
    y, start = np.empty(len(x), np.int64), 0
    for pair, count in zip(train + test, counts, strict=True):
        if pair.images.shape[1:] != first.shape[1:]:
            raise InputError(f"{shown(pair.images.path)}: its images differ in size from those of {first.path.name}")
        _fill(pair.images, x[start : start + count])
        y[start : start + count] = _fill(pair.labels, np.empty(count, pair.labels.type))
        start += count
    return Data(x, y, sum(counts[len(train) :]))


def _pairs(folder: Path, paths: Sequence[Path]) -> list[Pair]:
    """Pair image and label files by the rest of their names; if a file also exists as .gz, use the unpacked one."""
    chosen = {path.name.removesuffix(".gz"): path for path in sorted(paths, reverse=True)}
    found: dict[tuple[str, int], Idx] = {}
    for name, path in chosen.items():
        idx = _header(path)
        key = re.sub(r"images?|labels?|idx\d|ubyte|[^a-z0-9]", "", name.lower())
        found[key, len(idx.shape)] = idx
    pairs = []
    for (key, dimensions), idx in sorted(found.items(), key=lambda item: item[0]):
        other = found.get((key, 4 - dimensions))
        if other is None:
            what = "labels" if dimensions == 3 else "images"
            raise InputError(f"{shown(idx.path)}: its {what} are missing; put both idx files into {shown(folder, 40)}")
        if dimensions == 3:
            pairs.append(_checked(Pair(idx, other)))
    return pairs


def _checked(pair: Pair) -> Pair:
    images, labels = pair
    if images.type != TYPES[BYTES]:
        raise InputError(
            f"{shown(images.path)}: images have idx type {images.type}, but only bytes (0x08) are supported"
        )
    if images.shape[0] != labels.shape[0]:
        count = f"{images.shape[0]} images and {labels.shape[0]} labels"
        raise InputError(f"{shown(images.path)}: {count} do not match; download both files again")
    return pair


def _header(path: Path) -> Idx:
    """Read and validate type and shape; the array must not be larger than the file can hold."""
    with path.open("rb") as start:
        packed = start.read(2) == GZIP
    with sound(path), _opened(path, packed) as file:
        magic = file.read(4)
        if not is_idx(magic) or magic[2] not in TYPES or magic[3] not in (1, 3):
            raise InputError(f"{shown(path)}: neither images [N, H, W] nor labels [N] of bytes or 32-bit integers")
        dimensions = take(file, 4 * magic[3])
    shape = tuple(int(d) for d in np.frombuffer(dimensions, ">u4"))
    size, claimed = path.stat().st_size, math.prod(shape) * TYPES[magic[2]].itemsize
    if not claimed:
        raise InputError(f"{shown(path)}: it contains no samples; give idx files with samples")
    if packed:
        check_growth(path, claimed, size)
    elif 4 + len(dimensions) + claimed != size:
        raise InputError(
            f"{shown(path)}: it cannot be read because its size does not match its header; download it again"
        )
    return Idx(path, packed, TYPES[magic[2]], shape)


def _fill(idx: Idx, array: np.ndarray) -> np.ndarray:
    """Read the numbers after the header into an array; nothing may follow them."""
    with sound(idx.path), _opened(idx.path, idx.packed) as file:
        file.read(4 + 4 * len(idx.shape))
        fill(file, array)
        if file.read(1):
            raise EOFError
    return array


def _opened(path: Path, packed: bool) -> BinaryIO:
    return cast(BinaryIO, gzip.open(path)) if packed else path.open("rb")
