"""Read files into arrays. The content of a file decides its format, each in its own module. Nothing is unpickled."""

from __future__ import annotations

import os
import re
import stat
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from prer.data.arrays import Data
from prer.data.formats import cifar, csvs, idx, images, npz, parquet, svhn, zips
from prer.data.guards import ACCEPTED
from prer.data.reading import Reading
from prer.data.resizing import Fit
from prer.errors import InputError
from prer.text import shown

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


def read(path: Path, *, label: str = "", size: int = 0, fit: Fit = "resize", only: Sequence[str] = ()) -> Data:
    """Read all samples and labels of a file or folder.

    Args:
        path: a file or folder; see the modules in `formats`.
        label: label column of a table; empty: the last.
        size: height and width in pixels after resizing, for images in a folder or zip; 0 leaves them unchanged.
        fit: how images are fitted to that size, "resize" or "pad".
        only: names of the files to use in a folder; empty: all.
    """
    with _readable(path):
        folder = path.is_dir()
        if label and (folder or _kind(path) not in ("csv", "parquet")):
            raise InputError(
                f"{shown(path)}: stream.label applies only to tables, and this is not a table; leave it out"
            )
        return _read_folder(path, size, fit, only) if folder else _read_file(path, label, size, fit)


def read_new(path: Path, known: Reading) -> Data:
    """Read samples to predict in the same way as the training data of the model; labels are optional.

    Besides everything `read` accepts: a .npy array, an .npz with x alone, one image, and images outside class folders.
    """
    with _readable(path):
        if path.is_dir():
            return _read_folder(path, known.size, known.fit, (), known)
        if path.is_file() and path.suffix.lower() == ".npy":  # a pipe is rejected below: opening it would block
            return npz.read_array(path)
        if path.is_file() and images.is_image(path):
            return images.read_one(path, known)
        return _read_file(path, known.label, known.size, known.fit, known)


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


def _read_folder(path: Path, size: int, fit: Fit, only: Sequence[str], known: Reading | None = None) -> Data:
    for folder in (path, *_lone_folder(path)):
        files = [file for file in _visible(folder) if file.is_file() and (not only or file.name in only)]
        kinds = {file: _kind_in_folder(file) for file in files}
        for kind, module in (("idx", idx), ("mat", svhn), ("bin", cifar)):
            if kind in kinds.values():
                return module.read(folder, [file for file in files if kinds[file] == kind])
        if files and set(kinds.values()) == {"pickle"}:
            raise InputError(f"{shown(path)}: {PICKLE}; for CIFAR, use the binary version")
    return images.read(path, size, fit, only, known)


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


def _read_file(path: Path, label: str, size: int, fit: Fit, known: Reading | None = None) -> Data:
    kind = _kind(path)
    if kind == "zip":
        return npz.read(path, known is None) if _is_npz(path) else images.read(path, size, fit, known=known)
    if kind in ("tar", "tar.gz"):
        return cifar.read_tar(path, kind == "tar.gz")
    if kind == "mat":
        return svhn.read(path, [path])
    if kind == "bin":
        return cifar.read(path, [path])
    if kind in ("csv", "parquet"):
        return (csvs if kind == "csv" else parquet).read(path, label, known)
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
    return not any(byte < 32 and byte not in b"\t\n\r\f" for byte in head)


def _is_npz(path: Path) -> bool:
    with zips.opened(path) as (_, files):
        if any(name.endswith("data.pkl") for name in files):
            raise InputError(f"{shown(path)}: {PICKLE}; save plain arrays with np.savez(x=..., y=...)")
        return any(name.endswith(".npy") for name in files)
