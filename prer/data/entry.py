"""What a data set is: its files, where they come from, and where they may lie."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from prer.errors import InputError

Progress = Callable[[str, int, int], None]  # called with what is fetched, the bytes that are there, the bytes in all


def silent(what: str, done: int, total: int) -> None:
    """Show nothing of a download."""


@dataclass(frozen=True)
class File:
    """A file as its publisher serves it, with one of two checksums.

    Attributes:
        name: what it is called, there and here.
        urls: its mirrors, in the order in which they are asked.
        size: bytes as served; a guess where hosts compress it anew.
        sha256: of the bytes as served.
        content_sha256: of the decompressed bytes, where hosts compress them anew.
        content_size: how many these are.
    """

    name: str
    urls: tuple[str, ...]
    size: int
    sha256: str = ""
    content_sha256: str = ""
    content_size: int = 0

    @property
    def limit(self) -> int:
        """More bytes than this cannot be the file."""
        return self.size if self.sha256 else 2 * self.size


@dataclass(frozen=True)
class Form:
    """One form in which a data set may be here: these files in this folder of the data folder."""

    folder: str
    files: tuple[File, ...]

    @property
    def place(self) -> Path:
        """The folder."""
        return data_folder() / self.folder

    @property
    def archive(self) -> bool:
        """Whether it is one archive, to be read in place."""
        return self.files[0].name.endswith(".tar.gz")

    @property
    def path(self) -> Path:
        """What is read: the archive, or the folder."""
        return self.place / self.files[0].name if self.archive else self.place

    def is_here(self) -> bool:
        """Whether all files are there, whatever is in them."""
        try:
            return all((self.place / file.name).is_file() for file in self.files)
        except OSError:  # a folder that may not be entered, or too long a name
            return False


@dataclass(frozen=True, kw_only=True)
class Entry:
    """A data set.

    Attributes:
        name: what experiments call it.
        title: what it shows.
        licence: its terms.
        source: whom to cite, or its home page.
        shape: of an image (C, H, W).
        classes: their names in the order of the labels; none where the labels are the numbers themselves.
        train: how many samples the training part has.
        test: how many the given test part has.
        folders: where its files may lie; the first is where they are fetched to.
        files: what is fetched; nothing for what is built in.
        unpacked: other forms that count as being here.
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
        """The forms in which it may be here; the first is the one that is fetched."""
        return (*(Form(folder, self.files) for folder in self.folders), *self.unpacked)

    @property
    def built_in(self) -> bool:
        """Whether it needs no files."""
        return not self.files

    @property
    def samples(self) -> int:
        """How many there are in both parts."""
        return self.train + self.test

    @property
    def size(self) -> int:
        """Bytes to fetch."""
        return sum(file.size for file in self.files)

    def local_form(self) -> Form | None:
        """The first of its forms that is here."""
        return next((form for form in self.forms if form.is_here()), None)


def data_folder() -> Path:
    """Where data sets are kept: $PRER_DATA, or prer in the user's cache."""
    chosen = os.environ.get("PRER_DATA")
    try:
        cache = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
        return (Path(chosen) if chosen else Path(cache) / "prer").expanduser()
    except RuntimeError:  # there is no such user
        raise InputError("the data folder cannot be told; set PRER_DATA to a folder") from None


def idx_files(bases: tuple[str, ...], sizes: tuple[int, ...], sums: tuple[str, ...]) -> tuple[File, ...]:
    """The four files of a data set like MNIST."""
    stems = ("train-images-idx3", "train-labels-idx1", "t10k-images-idx3", "t10k-labels-idx1")
    names = [f"{stem}-ubyte.gz" for stem in stems]
    rows = zip(names, sizes, sums, strict=True)
    return tuple(File(name, tuple(base + name for base in bases), size, sha256) for name, size, sha256 in rows)


def decoded(files: tuple[File, ...], sizes: tuple[int, ...]) -> tuple[File, ...]:
    """The same, known by their decompressed bytes: their hosts compress them in their own ways."""
    rows = zip(files, sizes, strict=True)
    return tuple(replace(f, sha256="", content_sha256=f.sha256, content_size=size) for f, size in rows)


def served(base: str, name: str, size: int, sha256: str) -> File:
    """A file that one host has."""
    return File(name, (base + name,), size, sha256)


def cifar_batches(*sums: str) -> tuple[File, ...]:
    """CIFAR-10's archive as it unpacks."""
    names = [*(f"data_batch_{i}.bin" for i in range(1, 6)), "test_batch.bin"]
    return tuple(File(name, (), 30730000, sha256) for name, sha256 in zip(names, sums, strict=True))
