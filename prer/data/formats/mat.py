"""MATLAB's .mat files, version 5 to 7: plain numeric arrays, read without ever trusting what a file claims."""

from __future__ import annotations

import math
import struct
from pathlib import Path
from typing import BinaryIO, NamedTuple

import numpy as np

from prer.data.guards import Inflating, Readable, check_growth, take
from prer.errors import InputError
from prer.text import shown

HEADER, MATRIX, COMPRESSED = 128, 14, 15
TYPES = {1: "i1", 2: "u1", 3: "<i2", 4: "<u2", 5: "<i4", 6: "<u4", 7: "<f4", 9: "<f8", 12: "<i8", 13: "<u8"}
COMPLEX, NUMERIC = 0x800, range(6, 16)  # flags and classes of arrays
VARIABLES = 1000  # more than any such file has


class Variable(NamedTuple):
    """An array in a file: where it lies and what it is."""

    path: Path
    start: int
    length: int
    packed: bool
    skip: int  # bytes between its start and its numbers
    shape: tuple[int, ...]
    type: np.dtype


def variables(path: Path) -> dict[str, Variable]:
    """The numeric arrays of a file by their names; all else is stepped over."""
    found, size, start = {}, path.stat().st_size, HEADER
    with path.open("rb") as file:
        _check_version(path, file.read(HEADER))
        for _ in range(VARIABLES):
            file.seek(start)
            tag = file.read(8)
            if len(tag) < 8:
                break
            kind, length = struct.unpack("<II", tag)
            start += 8
            if start + length > size:
                raise EOFError
            if kind in (MATRIX, COMPRESSED):
                found |= _variable(path, _at(file, start, length, kind == COMPRESSED), start, length, kind)
            start += length
    return found


def numbers(file: BinaryIO, variable: Variable) -> Readable:
    """The file, or what is inflated from it, at the first number of an array."""
    source = _at(file, variable.start, variable.length, variable.packed)
    take(source, variable.skip)
    return source


def _at(file: BinaryIO, start: int, length: int, packed: bool) -> Readable:
    file.seek(start)
    return Inflating(file, length) if packed else file


def _check_version(path: Path, header: bytes) -> None:
    if header[124:128] == b"\x01\x00MI":
        raise InputError(f"{shown(path)}: written on a big-endian machine; save it anew on this one")
    if header[124:128] == b"\x00\x02IM" or header.startswith(b"MATLAB 7.3"):
        raise InputError(f"{shown(path)}: MATLAB 7.3 files (HDF5) are not read; save it with -v7")
    if header[124:128] != b"\x00\x01IM":
        raise EOFError


def _variable(path: Path, source: Readable, start: int, length: int, kind: int) -> dict[str, Variable]:
    """One array by its name; nothing where it does not hold plain numbers."""
    elements = _Elements(source)
    if kind == COMPRESSED and elements.tag()[0] != MATRIX:
        return {}
    flags = struct.unpack("<II", elements.small(8))[0]
    shape = tuple(np.frombuffer(elements.small(4 * 32), "<i4").tolist())
    name = elements.small(64).decode("ascii", "replace")
    if flags & 0xFF not in NUMERIC or flags & COMPLEX or min(shape) < 0:
        return {}
    code, claimed = elements.tag()
    if code not in TYPES or claimed != math.prod(shape) * np.dtype(TYPES[code]).itemsize:
        raise EOFError
    if kind == COMPRESSED:
        check_growth(path, claimed, path.stat().st_size)
    elif elements.place + claimed > length:
        raise EOFError
    return {name: Variable(path, start, length, kind == COMPRESSED, elements.place, shape, np.dtype(TYPES[code]))}


class _Elements:
    """The small elements at the start of an array, each a tag and its data, padded to eight bytes."""

    def __init__(self, source: Readable) -> None:
        self.source, self.place = source, 0

    def take(self, count: int) -> bytes:
        """So many bytes."""
        self.place += count
        return take(self.source, count)

    def tag(self) -> tuple[int, int]:
        """The type and the bytes of the next element; up to four bytes may lie in the tag itself."""
        head = self.take(4)
        kind = struct.unpack("<I", head)[0]
        if kind >> 16:
            return kind & 0xFFFF, kind >> 16
        return kind, struct.unpack("<I", self.take(4))[0]

    def small(self, most: int) -> bytes:
        """The data of the next element, which must not be large."""
        before = self.place
        _, count = self.tag()
        inside = self.place - before == 4
        if count > (4 if inside else most):
            raise EOFError
        data = self.take(count)
        self.take(-(self.place - before) % 8)
        return data
