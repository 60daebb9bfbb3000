"""NumPy's .npz archives of plain arrays; their headers are checked first, and nothing is unpickled."""

from __future__ import annotations

import math
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import IO, NamedTuple

import numpy as np

from prer.data.arrays import Data, as_labels
from prer.data.formats.zips import opened
from prer.data.guards import about, fill, sound
from prer.disk import room
from prer.errors import InputError
from prer.text import shown


class Header(NamedTuple):
    """The header of an .npy file."""

    start: int  # offset of its numbers
    shape: tuple[int, ...]
    fortran: bool
    type: np.dtype


class Part(NamedTuple):
    """The archive members that hold the samples and labels of a part."""

    x: zipfile.ZipInfo
    y: zipfile.ZipInfo


def read(path: Path, labelled: bool = True) -> Data:
    """Read x, y or x_train, y_train, and x_test, y_test as the test part; samples are not converted.

    Samples to predict (not `labelled`) may be x alone.
    """
    with opened(path) as (archive, files), about(path):
        if not labelled and "x.npy" in files and "y.npy" not in files:
            x = files["x.npy"]
            return Data(_pool(archive, [x], [_header(archive, x)]), np.empty(0, dtype=str))
        parts = _parts(files)
        headers = [_header(archive, part.x) for part in parts]
        labels = [as_labels(_pool(archive, [part.y], [_header(archive, part.y)])) for part in parts]
        _check(headers, labels)
        x = _pool(archive, [part.x for part in parts], headers)
    return Data(x, np.concatenate(labels), len(labels[1]) if len(parts) == 2 else 0)


def read_array(path: Path) -> Data:
    """Samples without labels, from one .npy file."""
    size = path.stat().st_size
    if size > room():
        raise MemoryError
    with sound(path), about(path), path.open("rb") as file:
        header = _header_of(file, size)
        flat = fill(file, np.empty(math.prod(header.shape), header.type))
    return Data(flat.reshape(header.shape, order="F" if header.fortran else "C"), np.empty(0, dtype=str))


def _parts(files: Mapping[str, zipfile.ZipInfo]) -> list[Part]:
    arrays = {name.removesuffix(".npy"): info for name, info in files.items()}
    x, y = arrays.get("x_train", arrays.get("x")), arrays.get("y_train", arrays.get("y"))
    if x is None or y is None:
        there = shown(", ".join(arrays) or "nothing", 60)
        raise InputError(f"it contains {there}, but no arrays x, y or x_train, y_train; rename the arrays")
    if ("x_test" in arrays) != ("y_test" in arrays):
        raise InputError("a test part needs both x_test and y_test")
    return [Part(x, y), Part(arrays["x_test"], arrays["y_test"])] if "x_test" in arrays else [Part(x, y)]


def _check(headers: list[Header], labels: list[np.ndarray]) -> None:
    """Check that there are as many samples as labels, and that both parts are of one kind; `as_samples` checks more."""
    for header, y in zip(headers, labels, strict=True):
        if header.shape[0] != len(y):
            raise InputError(
                f"x has {header.shape[0]} samples and y has {len(y)} labels; give one label for each sample"
            )
    if len({(header.shape[1:], _kind(header)) for header in headers}) > 1:
        raise InputError("the test part and the training part have different shapes or types; convert one of them")
    if len({y.dtype.kind for y in labels}) > 1:
        raise InputError("the labels of one part are numbers and those of the other strings; convert one of them")


def _kind(header: Header) -> str:
    """The kind that samples get later: vectors of any numbers become floats, and so do boolean images."""
    kind = header.type.kind.replace("u", "i").replace("b", "f")
    return "f" if kind == "i" and len(header.shape) == 2 else kind


def _header(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> Header:
    with archive.open(info) as file:
        return _header_of(file, info.file_size)


def _header_of(file: IO[bytes], size: int) -> Header:
    """Read the header of an array; the size of the file must match it exactly."""
    version = np.lib.format.read_magic(file)
    read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    header = Header(file.tell(), *read(file))._replace(start=file.tell())
    if header.type.hasobject:
        raise InputError("it contains Python objects; save plain arrays with np.savez(x=..., y=...)")
    if not header.shape:
        raise InputError("expected an array, found a single number; give one row for each sample")
    claimed = math.prod(header.shape) * header.type.itemsize
    if min(header.shape, default=0) < 0 or header.start + claimed != size:
        raise EOFError
    return header


def _pool(archive: zipfile.ZipFile, infos: list[zipfile.ZipInfo], headers: list[Header]) -> np.ndarray:
    """Concatenate arrays, each read directly into its place."""
    types = {header.type for header in headers}
    kind = types.pop() if len(types) == 1 else np.result_type(*types)
    if kind.kind == "f" and all(header.type.kind in "iu" for header in headers):
        kind = np.dtype(np.int64)  # signed and unsigned would become floats, which mean something else in images
    shapes = [header.shape for header in headers]
    pool, start = np.empty((sum(shape[0] for shape in shapes), *shapes[0][1:]), kind), 0
    for info, header in zip(infos, headers, strict=True):
        _fill(archive, info, header, pool[start : start + header.shape[0]])
        start += header.shape[0]
    return pool


def _fill(archive: zipfile.ZipFile, info: zipfile.ZipInfo, header: Header, place: np.ndarray) -> None:
    direct = header.type == place.dtype and not header.fortran
    flat = place.reshape(-1) if direct else np.empty(place.size, header.type)
    with archive.open(info) as file:
        file.read(header.start)
        fill(file, flat)
    if not direct:
        place[...] = flat.reshape(header.shape, order="F" if header.fortran else "C")
