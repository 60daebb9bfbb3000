"""Read files into arrays. The content of a file decides its format, each in its own module. Nothing is unpickled."""

from __future__ import annotations

import os
import re
import stat
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from prer.data.arrays import Data, as_samples, with_medians
from prer.data.formats import cifar, csvs, idx, images, npz, parquet, svhn, zips
from prer.data.guards import ACCEPTED, about
from prer.data.reading import Missing, Reading
from prer.data.resizing import Fit
from prer.data.tables import Asked
from prer.errors import InputError
from prer.text import shown

TABLES = ("csv", "parquet")
HEAD = 512  # bytes to detect the format of a file
PICKLE = "it is a pickle, which is not loaded because it could run any code"
# Known formats that cannot be read, by their first bytes.
REFUSED = {
    b"\x89HDF\r\n\x1a\n": "HDF5 is not supported; save the arrays with np.savez(x=..., y=...)",
    b"\x93NUMPY": "it contains only one array; save samples and labels with np.savez(x=..., y=...)",
    b"\x89PNG": "it is a single image; give the folder that contains the class folders",
    b"\xff\xd8\xff": "it is a single image; give the folder that contains the class folders",
}


def find(data: str) -> Path | None:
    """Path of an existing file or folder, or None."""
    try:
        path = Path(data).expanduser()
        return path if data and path.exists() else None
    except (OSError, RuntimeError):  # too long a name, an unknown user
        return None


def read(
    path: Path,
    *,
    label: str = "",
    size: int = 0,
    fit: Fit = "resize",
    missing: Missing = "error",
    only: Sequence[str] = (),
    text: str | None = None,
    part: str = "",
    known: Reading | None = None,
) -> Data:
    """Read all samples and labels of a file or folder.

    Args:
        path: a file or folder; see the modules in `formats`.
        label: label column of a table; empty: that of `known`, or the last.
        size: height and width in pixels after resizing, for images in a folder or zip; 0 leaves images unchanged.
        fit: how images are fitted to that size, "resize" or "pad".
        missing: for tables and arrays of vectors, "error", or "median" to fill missing numbers.
        only: names of the files to use in a folder; empty: all.
        text: column of texts in a table; empty: that of `known`, the one called "text", or the only one besides the
            label; None: no column holds texts.
        part: column of such a table that tells training rows ("train") from test rows ("test").
        known: how earlier data was read, to learn more; this data is then read in the same way, and `size`, `fit` and
            `missing` have no effect.
    """
    with _readable(path):
        folder = path.is_dir()
        kind = "" if folder else _kind(path)
        text = known.text if text is None and known and known.inputs == "texts" else text
        for key, given, kinds in (
            ("text", text is not None, TABLES),
            ("label", label, TABLES),
            ("missing", missing != "error", (*TABLES, "zip")),
        ):
            if given and kind not in kinds:
                raise _no_table(path, key)
        asked = Asked(label, missing, known, text=text, part=part)
        size, fit = (known.size, known.fit) if known else (size, fit)
        data = _read_folder(path, size, fit, only, asked) if folder else _read_file(path, kind, size, fit, asked)
        if known and kind not in TABLES:
            return _as_known(path, data, known)
        if missing != "error" and kind == "zip":
            if np.ndim(data.x) != 2:
                raise _no_table(path, "missing")
            with about(path):
                return with_medians(data)
        return data


def read_new(path: Path, known: Reading) -> Data:
    """Read samples to predict in the same way as the training data of the model; labels are optional.

    Besides everything `read` accepts: a .npy array, an .npz with x alone, one image, and images outside class folders.
    """
    texts = known.inputs == "texts"
    asked = Asked(known=known, learning=False, text=known.text if texts else None)
    with _readable(path):
        if texts and (path.is_dir() or _kind(path) not in TABLES):
            raise _no_table(path, "text")
        if path.is_dir():
            return _read_folder(path, known.size, known.fit, (), asked)
        if path.is_file() and path.suffix.lower() == ".npy":  # a pipe is rejected below: opening it would block
            return npz.read_array(path)
        if path.is_file() and images.is_image(path):
            return images.read_one(path, known)
        return _read_file(path, _kind(path), known.size, known.fit, asked)


def _no_table(path: Path, key: str) -> InputError:
    if key == "text":
        what = "texts are read from a table, and this is not one"
        return InputError(f"{shown(path)}: {what}; give CSV or Parquet with a column of texts")
    what = f"{shown(path)}: stream.{key} applies only to tables, and this is not a table; leave it out"
    return InputError(what if key == "label" else what.replace("to tables", "to tables and vectors"))


def _as_known(path: Path, data: Data, known: Reading) -> Data:
    """Images of the size and channels of earlier data, or vectors filled as those were."""
    with about(path):
        is_bytes = str(getattr(data.x, "dtype", "")) == "uint8"  # few new images may all be dark
        x = known.fitted(as_samples(data.x, may_be_dark=is_bytes, reading=known))
        if known.shape and tuple(x.shape[1:]) != known.shape:
            wanted, given = ("x".join(map(str, shape)) for shape in (known.shape, x.shape[1:]))
            raise InputError(
                f"its samples have shape {given}, but those of the training data have shape {wanted}; convert them"
            )
    return data._replace(x=x, checked=True, reading=known)


@contextmanager
def _readable(path: Path) -> Iterator[None]:
    """Turn any error about a file or its content into an `InputError` of one sentence."""
    try:
        yield
    except MemoryError:
        raise InputError(f"{shown(path)}: it does not fit into memory; give fewer samples") from None
    except (OSError, ValueError) as error:
        if isinstance(error, InputError):
            raise
        reason = shown(getattr(error, "strerror", None) or error, 40)
        raise InputError(f"{shown(path)}: it cannot be read ({reason}); check the path and its permissions") from None


def _read_folder(path: Path, size: int, fit: Fit, only: Sequence[str], asked: Asked) -> Data:
    for folder in (path, *_lone_folder(path)):
        files = [file for file in _visible(folder) if file.is_file() and (not only or file.name in only)]
        kinds = {file: _kind_in_folder(file) for file in files}
        for kind, module in (("idx", idx), ("mat", svhn), ("bin", cifar)):
            if kind in kinds.values():
                return module.read(folder, [file for file in files if kinds[file] == kind])
        if files and set(kinds.values()) == {"pickle"}:
            raise InputError(f"{shown(path)}: {PICKLE}; for CIFAR, use the binary version")
    return images.read(path, size, fit, only, asked.known, asked.learning)


def _kind_in_folder(path: Path) -> str:
    """Format by content or name: a damaged part of a data set must raise an error, not be skipped silently."""
    kind, named = _kind(path), {".bin": "bin", ".mat": "mat"}.get(path.suffix, "")
    named = named or ("idx" if re.search(r"idx\d", path.name) else "")
    return kind if kind in ("idx", "mat", "bin") else named or kind


def _lone_folder(path: Path) -> list[Path]:
    """The only subfolder of a folder that holds nothing else; empty if there is none."""
    inside = _visible(path)
    return [folder for folder in inside if len(inside) == 1 and folder.is_dir()]


def _visible(folder: Path) -> list[Path]:
    return sorted(path for path in folder.iterdir() if not path.name.startswith("."))


def _read_file(path: Path, kind: str, size: int, fit: Fit, asked: Asked) -> Data:
    if kind == "zip" and _is_npz(path):
        return npz.read(path, asked.learning)
    if kind == "zip":
        return images.read(path, size, fit, known=asked.known, labelled=asked.learning)
    if kind in ("tar", "tar.gz"):
        return cifar.read_tar(path, kind == "tar.gz")
    if kind == "mat":
        return svhn.read(path, [path])
    if kind == "bin":
        return cifar.read(path, [path])
    if kind in TABLES:
        return (csvs if kind == "csv" else parquet).read(path, asked)
    if kind == "idx":
        raise InputError(f"{shown(path)}: it is a single idx file; give the folder that contains images and labels")
    if kind == "pickle":
        raise InputError(f"{shown(path)}: {PICKLE}; save plain arrays with np.savez(x=..., y=...)")
    raise InputError(f"{shown(path)}: {kind}")


def _kind(path: Path) -> str:
    """Format of a file, or the reason why it is rejected."""
    status = path.stat()
    if not stat.S_ISREG(status.st_mode):  # opening a pipe would block
        return f"it is not a regular file; {ACCEPTED}"
    if not status.st_size:
        return f"it is empty; {ACCEPTED}"
    with path.open("rb") as file:
        head = file.read(HEAD)
        file.seek(-min(4, status.st_size), os.SEEK_END)
        tail = file.read(4)
    inner = _gunzipped(head) if head.startswith(idx.GZIP) else b""
    return (
        _by_magic(head, tail)
        or ("idx" if idx.is_idx(inner) else "tar.gz" if inner[257:262] == b"ustar" else "")
        or next((why for magic, why in REFUSED.items() if head.startswith(magic)), "")
        or ("bin" if cifar.is_cifar(path) else "csv" if _is_text(head) else "")
        or f"its format is unknown; {ACCEPTED}"
    )


def _by_magic(head: bytes, tail: bytes) -> str:
    if head.startswith((b"PK\x03\x04", b"PK\x05\x06")):
        return "zip"
    if head.startswith(b"PAR1") and tail == b"PAR1":
        return "parquet"
    if head[:1] == b"\x80" and head[1:2] in (b"\x02", b"\x03", b"\x04", b"\x05"):
        return "pickle"
    if head.startswith(b"MATLAB") or head[124:128] in (b"\x00\x01IM", b"\x01\x00MI", b"\x00\x02IM"):
        return "mat"
    if head[257:262] == b"ustar":
        return "tar"
    return "idx" if idx.is_idx(head) else ""


def _gunzipped(head: bytes) -> bytes:
    try:
        return zlib.decompressobj(wbits=31).decompress(head, HEAD)
    except zlib.error:
        return b""


def _is_text(head: bytes) -> bool:
    """Whether there are no control characters; reading checks later whether it is a table in UTF-8."""
    return not any(byte < 32 and byte not in b"\t\n\v\f\r" for byte in head)


def _is_npz(path: Path) -> bool:
    with zips.opened(path) as (_, files):
        if any(name.endswith("data.pkl") for name in files):
            raise InputError(f"{shown(path)}: {PICKLE}; save plain arrays with np.savez(x=..., y=...)")
        return any(name.endswith(".npy") for name in files)
