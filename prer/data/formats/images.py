"""Folders and zips of images, one folder for each class: CLASS/file, or train/CLASS/file and test/CLASS/file."""

# N images, C channels, H and W image

from __future__ import annotations

import io
import os
import warnings
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, BinaryIO, NamedTuple

import numpy as np
import torch

from prer.data.arrays import Data
from prer.data.formats.zips import contents, opened
from prer.data.guards import ACCEPTED, about, as_text, check_growth, check_names, in_parts, sound
from prer.data.reading import Reading
from prer.data.resizing import Fit, resized
from prer.errors import InputError
from prer.text import shown

if TYPE_CHECKING:
    from PIL.Image import Image

FORMATS = ("PNG", "JPEG", "BMP", "GIF", "WEBP", "TIFF", "PPM")
SUFFIXES = (".png", ".jpg", ".jpeg", ".bmp", ".gif", ".webp", ".tif", ".tiff", ".ppm", ".pgm")
PIXELS = 4096 * 4096  # maximum pixels of an image
GREY = ("1", "L", "LA", "La", "I", "I;16", "I;16B", "I;16L", "F")
PARTS = ({"train", "training"}, {"test", "testing", "val", "valid", "validation"})
TEXT = (".txt", ".csv", ".json", ".md", ".xml")


class Entry(NamedTuple):
    """A file in the folder or zip: the parts of its path, its size in bytes, and a function that opens it."""

    parts: tuple[str, ...]
    size: int
    open: Callable[[], BinaryIO]
    name: str  # the whole path; `parts` may be cut to its end


def read(
    path: Path,
    size: int = 0,
    fit: Fit = "resize",
    only: Sequence[str] = (),
    known: Reading | None = None,
    labelled: bool = True,
) -> Data:
    """Images [N, C, H, W], sorted by path, with the names of their folders as labels.

    C is 1 if all images are grey, else 3. Transparency and the camera's orientation tag are ignored.

    Args:
        path: a folder or a zip.
        size: height and width in pixels after resizing; 0 leaves images unchanged.
        fit: how images are fitted to that size, "resize" or "pad".
        only: names of the files to use in a folder; empty: all.
        known: how the data of a model was read, if these are to be read in the same way.
        labelled: whether class folders are required; otherwise all files are read as one part.
    """
    if path.is_dir():
        return _read(path, [e for e in _in_folder(path) if not only or e.parts[-1] in only], size, fit, known, labelled)
    with opened(path) as (archive, files):
        entries = [
            Entry(PurePosixPath(name).parts, info.file_size, lambda i=info: io.BytesIO(contents(archive, i)), name)
            for name, info in files.items()
        ]
        return _read(path, entries, size, fit, known, labelled)


def is_image(path: Path) -> bool:
    """Whether a file is an image, by its content or, if that is damaged, by its suffix."""
    from PIL import Image

    try:
        with warnings.catch_warnings(action="ignore"), Image.open(path, formats=FORMATS):
            return True
    except Exception:  # libraries raise too many types of exceptions for other files to list them
        return path.suffix.lower() in SUFFIXES


def read_one(path: Path, known: Reading) -> Data:
    """Read one image to predict."""
    entry = Entry((path.name,), path.stat().st_size, lambda: path.open("rb"), path.name)
    return _read(path, [entry], known.size, known.fit, known, labelled=False)


def _in_folder(folder: Path) -> Iterator[Entry]:
    """Yield every file below a folder; visit each folder once, even if links form a cycle."""
    seen: set[tuple[int, int]] = set()
    waiting: list[tuple[Path, tuple[str, ...]]] = [(folder, ())]
    while waiting:
        here, parts = waiting.pop()
        status = here.stat()
        if (status.st_dev, status.st_ino) in seen:
            continue
        seen.add((status.st_dev, status.st_ino))
        for entry in sorted(os.scandir(here), key=lambda entry: entry.name):
            path, names = here / entry.name, (*parts, entry.name)
            if entry.is_dir():
                waiting.append((path, names))
            elif not entry.is_file() and _is_wanted(names):  # a pipe, or a broken link
                raise InputError(f"{shown(path)}: it is not a regular file; remove it")
            elif entry.is_file():
                yield Entry(names, entry.stat().st_size, lambda path=path: path.open("rb"), "/".join(names))


def _read(path: Path, entries: list[Entry], size: int, fit: Fit, known: Reading | None, labelled: bool) -> Data:
    entries = [entry for entry in entries if _is_wanted(entry.parts)]
    train, test = _in_parts(entries) if labelled else (_by_path(entries), [])
    if not train:
        what = f"it contains no folders with images; {ACCEPTED}" if labelled else "it contains no images; give images"
        raise InputError(f"{shown(path)}: {what}")
    lone = next((entry for entry in train + test if len(entry.parts) < 2), None)
    if lone and labelled:
        raise InputError(f"{shown(path)}: {shown(lone.parts[-1])!r} is not in a class folder; give each class a folder")
    with about(path):
        check_names(entry.parts[0] for entry in train + test)
    labels = [] if lone else [as_text(entry.parts[0]) for entry in train + test]
    x = _pool(path, train + test, size, fit, known)
    names = tuple(as_text(entry.name) for entry in train + test)
    return Data(x, np.array(labels, dtype=str), len(test), reading=known or Reading(), names=names)


def _is_wanted(parts: tuple[str, ...]) -> bool:
    """Whether to read a file: hidden files, files of the system and text files are left out."""
    hidden = any(part.startswith(".") or part == "__MACOSX" for part in parts)
    return not hidden and parts[-1].lower() not in ("thumbs.db", "desktop.ini") and not parts[-1].lower().endswith(TEXT)


def _by_path(entries: list[Entry]) -> list[Entry]:
    """Sort files by path, and keep only the folder and name of each."""
    return [entry._replace(parts=entry.parts[-2:]) for entry in sorted(entries, key=lambda entry: entry.parts)]


def _in_parts(entries: list[Entry]) -> tuple[list[Entry], list[Entry]]:
    """Training and test part, each sorted by path, without the folders above the class folders."""
    entries = sorted(entries, key=lambda entry: entry.parts)
    for _ in range(2):  # the folder that was zipped, and a lone part
        if len({entry.parts[0] for entry in entries}) == 1 and all(len(entry.parts) > 2 for entry in entries):
            entries = [_below(entry) for entry in entries]
    tops = {entry.parts[0].lower() for entry in entries}
    if not tops & PARTS[0] or not tops <= PARTS[0] | PARTS[1]:
        return entries, []
    train, test = in_parts(entries, lambda entry: entry.parts[0])
    return [_below(entry) for entry in train], [_below(entry) for entry in test]


def _below(entry: Entry) -> Entry:
    return entry._replace(parts=entry.parts[1:])


def _pool(path: Path, entries: list[Entry], size: int, fit: Fit, known: Reading | None) -> np.ndarray:
    """All images in one array, which grows to three channels at the first colour image."""
    pool, decoded, packed = np.empty((0, 0, 0, 0), np.uint8), 0, sum(entry.size for entry in entries)
    for row, entry in enumerate(entries):
        image = _decoded(path, entry)
        decoded += image.size
        check_growth(path, decoded if size else image.size * len(entries), packed)
        if size:
            image = resized(torch.from_numpy(image)[None], size, fit)[0].numpy()
        if known and known.shape and image.shape[1:] != known.shape[1:]:
            raise _of_another_size(path, entry, image, known)
        if not row:
            pool = np.empty((len(entries), *image.shape), np.uint8)
        if image.shape[1:] != pool.shape[2:]:
            sizes = " and ".join(f"{shape[-1]}x{shape[-2]}" for shape in (pool.shape, image.shape))
            raise InputError(
                f"{shown(path)}: its images have different sizes, {sizes}; set stream.size, for example to 32"
            )
        if len(image) > pool.shape[1]:
            pool = np.repeat(pool, 3, axis=1)
        pool[row] = image  # a grey image fills all channels
    return pool


def _of_another_size(path: Path, entry: Entry, image: np.ndarray, known: Reading) -> InputError:
    name, given = _name(path, entry), f"{image.shape[2]}x{image.shape[1]}"
    if len(known.shape) != 3:
        return InputError(f"{name}: it is an image, but the model was trained on vectors; give a table or an array")
    wanted = f"{known.shape[2]}x{known.shape[1]}"
    what = f"{name}: it has {given} pixels, but the model was trained on images of {wanted}"
    return InputError(f"{what}; resize it, or train with stream.size, which also applies to new images")


def _name(path: Path, entry: Entry) -> str:
    inside = f": {shown('/'.join(entry.parts), 50)}" if entry.parts != (path.name,) else ""
    return f"{shown(path, 40)}{inside}"


def _decoded(path: Path, entry: Entry) -> np.ndarray:
    from PIL import Image, UnidentifiedImageError

    name = _name(path, entry)
    try:
        with (
            sound(name, UnidentifiedImageError),
            entry.open() as file,
            Image.open(file, formats=FORMATS) as image,
            about(name),
        ):
            _check_size(image)
            return pixels(image)
    except UnidentifiedImageError:
        raise InputError(
            f"{name}: it is not an image, or it is damaged; remove it, or give the folder of one data set"
        ) from None


def _check_size(image: Image) -> None:
    if image.width * image.height > PIXELS:
        raise InputError(f"an image has {image.width}x{image.height} pixels, more than the limit of 4096x4096")


def pixels(image: Image) -> np.ndarray:
    """An image as bytes [C, H, W]; C is 1 if it is grey, else 3."""
    if image.mode not in GREY:
        colours = np.ascontiguousarray(np.moveaxis(np.asarray(image.convert("RGB")), -1, 0))
        # An image with a palette, such as a GIF, may be grey; only its pixels tell.
        return colours[:1] if image.mode == "P" and (colours == colours[:1]).all() else colours
    if image.mode in ("1", "L", "LA", "La"):
        return np.array(image.convert("L"))[None]
    deep = np.asarray(image, np.float64)[None]
    most = 1.0 if image.mode == "F" else 65535.0  # 16 bits, whatever type stores them
    if not (deep.min() >= 0 and deep.max() <= most):
        raise InputError("an image contains grey values beyond 16 bits, or floats beyond [0, 1]; save it with 8 bits")
    return np.round(deep * (255 / most)).astype(np.uint8)
