"""Description of a data set: its files, their mirrors, and the local folders they may be in."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

from prer.errors import InputError


class Progress(Protocol):
    """What is called while data is downloaded, or while its features are computed."""

    def __call__(self, what: str, done: int, total: int, unit: str = "bytes") -> None:
        """Show how much is done, in these units."""
        ...


def silent(what: str, done: int, total: int, unit: str = "bytes") -> None:
    """Show no progress."""


@dataclass(frozen=True)
class File:
    """A file as its publisher serves it, with one of two checksums.

    Attributes:
        name: file name, on the mirrors and here.
        urls: mirrors, in the order in which they are tried.
        size: bytes as served; an estimate if mirrors recompress the file.
        sha256: checksum of the bytes as served.
        content_sha256: checksum of the decompressed bytes, if mirrors recompress the file.
        content_size: number of decompressed bytes.
    """

    name: str
    urls: tuple[str, ...]
    size: int
    sha256: str = ""
    content_sha256: str = ""
    content_size: int = 0

    @property
    def limit(self) -> int:
        """Maximum number of bytes to accept for this file."""
        return self.size if self.sha256 else 2 * self.size


@dataclass(frozen=True)
class Form:
    """A local form of a data set: these files in this folder of the data folder."""

    folder: str
    files: tuple[File, ...]

    @property
    def place(self) -> Path:
        """Path of the folder."""
        return data_folder() / self.folder

    @property
    def archive(self) -> bool:
        """Whether it is one archive, which is read without unpacking it."""
        return self.files[0].name.endswith(".tar.gz")

    @property
    def path(self) -> Path:
        """Path to read: the archive or the folder."""
        return self.place / self.files[0].name if self.archive else self.place

    def is_here(self) -> bool:
        """Whether all files exist; their content is not checked."""
        try:
            return all((self.place / file.name).is_file() for file in self.files)
        except OSError:  # no permission to enter the folder, or too long a name
            return False


@dataclass(frozen=True, kw_only=True)
class Entry:
    """A data set.

    Attributes:
        name: its name in experiments.
        title: what its images show.
        licence: its terms.
        source: whom to cite, or its home page.
        shape: of an image (C, H, W).
        classes: class names in the order of the labels; empty if the labels stay numbers.
        train: number of samples in the training part.
        test: number of samples in the given test part.
        folders: where its files may be; downloads go to the first.
        files: the files to download; empty if it is built in.
        unpacked: other local forms that are accepted.
    """

    name: str
    title: str
    licence: str
    source: str
    shape: tuple[int, int, int]
    classes: tuple[str, ...] = ()
    train: int
    test: int
    folders: tuple[str, ...] = ()
    files: tuple[File, ...] = ()
    unpacked: tuple[Form, ...] = ()

    @property
    def forms(self) -> tuple[Form, ...]:
        """The local forms that are accepted; the first is the one that is downloaded."""
        return (*(Form(folder, self.files) for folder in self.folders), *self.unpacked)

    @property
    def built_in(self) -> bool:
        """Whether the data set needs no files."""
        return not self.files

    @property
    def samples(self) -> int:
        """Number of samples in both parts."""
        return self.train + self.test

    @property
    def size(self) -> int:
        """Bytes to download."""
        return sum(file.size for file in self.files)

    def local_form(self) -> Form | None:
        """The first form whose files exist, or None."""
        return next((form for form in self.forms if form.is_here()), None)


def data_folder() -> Path:
    """Folder of the data sets: $PRER_DATA, or prer in the user's cache."""
    chosen = os.environ.get("PRER_DATA")
    try:
        cache = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
        return (Path(chosen) if chosen else Path(cache) / "prer").expanduser()
    except RuntimeError:  # the home folder is unknown
        raise InputError("the data folder cannot be determined; set PRER_DATA to a folder") from None


def idx_files(bases: tuple[str, ...], sizes: tuple[int, ...], sums: tuple[str, ...]) -> tuple[File, ...]:
    """The four files of a data set like MNIST."""
    stems = ("train-images-idx3", "train-labels-idx1", "t10k-images-idx3", "t10k-labels-idx1")
    names = [f"{stem}-ubyte.gz" for stem in stems]
    rows = zip(names, sizes, sums, strict=True)
    return tuple(File(name, tuple(base + name for base in bases), size, sha256) for name, size, sha256 in rows)


def decoded(files: tuple[File, ...], sizes: tuple[int, ...]) -> tuple[File, ...]:
    """The same files with checksums of the decompressed bytes, because mirrors compress them differently."""
    rows = zip(files, sizes, strict=True)
    return tuple(replace(f, sha256="", content_sha256=f.sha256, content_size=size) for f, size in rows)


def served(base: str, name: str, size: int, sha256: str) -> File:
    """A file with one mirror."""
    return File(name, (base + name,), size, sha256)


def cifar_batches(*sums: str) -> tuple[File, ...]:
    """The files in CIFAR-10's archive."""
    names = [*(f"data_batch_{i}.bin" for i in range(1, 6)), "test_batch.bin"]
    return tuple(File(name, (), 30730000, sha256) for name, sha256 in zip(names, sums, strict=True))
