"""MATLAB's .mat files, version 5 to 7: plain numeric arrays, read without trusting the file's claims.

scipy.io.loadmat is not safe: it crashes on unknown type codes and deeply nested cells, and inflates zip bombs.
"""

from __future__ import annotations

import math
import struct
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, NamedTuple

import numpy as np

from prer.data.guards import check_growth
from prer.errors import InputError
from prer.text import shown

HEADER, MATRIX, COMPRESSED = 128, 14, 15
TYPES = {1: "i1", 2: "u1", 3: "<i2", 4: "<u2", 5: "<i4", 6: "<u4", 7: "<f4", 9: "<f8", 12: "<i8", 13: "<u8"}
COMPLEX, NUMERIC = 0x800, range(6, 16)  # flags and classes of arrays
VARIABLES = 1000  # more than any real file has
HEAD = 256  # bytes to read for the header of an array; 32 axes and a name of 64 characters need 240
BLOCK = 1 << 16  # compressed bytes to inflate at a time


class Element(NamedTuple):
    """Position of an element in a file."""

    start: int
    length: int
    packed: bool

    def read(self, file: BinaryIO, most: int) -> bytearray:
        """Return its first bytes, at most `most` of them, inflated if they are compressed."""
        file.seek(self.start)
        if not self.packed:
            return bytearray(file.read(min(self.length, most)))
        inflater, data, left = zlib.decompressobj(), bytearray(), self.length
        while len(data) < most and not inflater.eof and (packed := file.read(min(BLOCK, left))):
            data += inflater.decompress(packed, most - len(data))
            left -= len(packed)
        return data


def arrays(path: Path, *names: str) -> dict[str, np.ndarray]:
    """Return the plain numeric arrays of a file that have these names."""
    with path.open("rb") as file:
        _check_version(path, file.read(HEADER))
        found = {}
        for element in _elements(file, path.stat().st_size):
            found |= _described(path, element, element.read(file, HEAD))
        return {name: _numbers(file, *found[name]) for name in names if name in found}


def _check_version(path: Path, header: bytes) -> None:
    if header[124:128] == b"\x01\x00MI":
        raise InputError(
            f"{shown(path)}: big-endian .mat files are not supported; save it again on a little-endian machine"
        )
    if header[124:128] == b"\x00\x02IM" or header.startswith(b"MATLAB 7.3"):
        raise InputError(f"{shown(path)}: MATLAB 7.3 files (HDF5) are not supported; save it with -v7")
    if header[124:128] != b"\x00\x01IM":
        raise EOFError


def _elements(file: BinaryIO, size: int) -> Iterator[Element]:
    """Yield the elements of a file that may be arrays; a compressed one begins after its tag."""
    start = HEADER
    for _ in range(VARIABLES):
        file.seek(start)
        tag = file.read(8)
        if len(tag) < 8:
            return
        kind, length = struct.unpack("<II", tag)
        if start + 8 + length > size:
            raise EOFError
        if kind in (MATRIX, COMPRESSED):
            yield Element(start + 8, length, True) if kind == COMPRESSED else Element(start, 8 + length, False)
        start += 8 + length


def _described(path: Path, element: Element, head: bytearray) -> dict[str, tuple[Element, int, tuple[int, ...], str]]:
    """Return element, offset of the numbers, shape and type of an array, by its name; empty if it is not plain."""
    kind, _, _, eight, flags = struct.unpack_from("<5I", head)
    if kind != MATRIX or flags & 0xFF not in NUMERIC or flags & COMPLEX:
        return {}
    _, count, begin = _tag(head, 24)
    shape = tuple(np.frombuffer(head[begin : begin + count], "<i4").tolist())
    _, count, begin = _tag(head, -(-(begin + count) // 8) * 8)  # padded to eight bytes
    name = head[begin : begin + count].decode("ascii", "replace")
    code, claimed, begin = _tag(head, -(-(begin + count) // 8) * 8)
    if min(shape) < 0:
        return {}
    if eight != 8 or code not in TYPES or claimed != math.prod(shape) * np.dtype(TYPES[code]).itemsize:
        raise EOFError
    if element.packed:
        check_growth(path, claimed, path.stat().st_size)
    return {name: (element, begin, shape, TYPES[code])}


def _tag(head: bytearray, place: int) -> tuple[int, int, int]:
    """Return the type, length and start of a block of data; up to four bytes may be in the tag itself."""
    kind, count = struct.unpack_from("<II", head, place)
    return (kind & 0xFFFF, kind >> 16, place + 4) if kind >> 16 else (kind, count, place + 8)


def _numbers(file: BinaryIO, element: Element, begin: int, shape: tuple[int, ...], code: str) -> np.ndarray:
    count = math.prod(shape)
    end = -(-(begin + count * np.dtype(code).itemsize) // 8) * 8
    data = element.read(file, end + 1)  # to the end of a compressed element, where zlib verifies the checksum
    if element.packed and len(data) > end:
        raise EOFError
    return np.frombuffer(data, code, count, begin).reshape(shape, order="F")
