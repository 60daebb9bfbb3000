"""Features on disk, so that runs over the same samples compute them once. `prer teach` does not use it.

A file's name is a checksum of the samples and of the extractor, so it is never stale; a checksum of its content comes
first in it. Files are written atomically, and a damaged one is computed again. Those that were not used for longest are
deleted once all of them are larger than `MOST`.
"""

# N samples, D features

from __future__ import annotations

import hashlib
import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import torch
from filelock import FileLock, Timeout
from safetensors import SafetensorError
from safetensors.torch import load, save
from torch import Tensor

from prer.data.entry import data_folder
from prer.disk import content, replace_file, room
from prer.features.extractor import Extractor

MOST = 2**32  # bytes of all files
FORMAT = "1"  # part of each name; another one makes older files useless
ENDING = ".features"
SHA = 32  # bytes of a checksum
SOON, LONG = 2, 3600  # seconds after which waiting is said, and given up; images on a CPU take many minutes


def folder() -> Path:
    """Where the features are."""
    return data_folder() / "features"


def key_of(raw: list[str] | Tensor, extractor: Extractor, how: str) -> str:
    """The name of the features of these samples by this extractor, if the samples are converted in this way before."""
    sha = hashlib.sha256(f"{FORMAT} {extractor.name} {extractor.sha256} {how} {len(raw)}".encode())
    if isinstance(raw, Tensor):
        sha.update(f"{raw.dtype} {tuple(raw.shape)}".encode())
        sha.update(raw.contiguous().numpy().data)
    else:
        for text in raw:
            encoded = text.encode("utf-8", "surrogatepass")
            sha.update(f"{len(encoded)} ".encode() + encoded)
    return sha.hexdigest()


@contextmanager
def locked(key: str) -> Iterator[str]:
    """Let one process compute these features while others wait; yields the key, empty if they waited too long."""
    lock = None
    if key:
        with suppress(OSError, NotImplementedError):  # without a place to write, or without locks, nothing is kept
            folder().mkdir(parents=True, exist_ok=True)
            lock = FileLock(folder() / f"{key}.lock")
            key = key if _acquired(lock) else ""
    try:
        yield key
    finally:
        if lock is not None:
            lock.release()


def _acquired(lock: FileLock) -> bool:
    """Wait until no other process has the lock; False if that takes too long."""
    with suppress(Timeout):
        lock.acquire(SOON)
        return True
    warnings.warn("another process is computing these features; waiting for it", stacklevel=2)
    with suppress(Timeout):
        lock.acquire(LONG)
        return True
    return False


def read(key: str, count: int) -> Tensor | None:
    """The features [N, D] of a key; None if they are not there, or damaged."""
    file = folder() / f"{key}{ENDING}"
    try:
        data = content(file, room())
        found = load(data[SHA:])["features"] if hashlib.sha256(data[SHA:]).digest() == data[:SHA] else None
    except (OSError, ValueError, KeyError, SafetensorError, RuntimeError):
        return None
    if found is None or found.dim() != 2 or len(found) != count or found.dtype != torch.float32:
        return None
    with suppress(OSError):
        os.utime(file)  # it was used now
    return found if found.isfinite().all() else None


def write(key: str, made: Tensor) -> None:
    """Keep features, and delete the files that were not used for longest; a full disk is no error."""
    if made.nbytes > MOST:
        return
    data, file = save({"features": made.contiguous()}), folder() / f"{key}{ENDING}"
    with suppress(OSError):
        if file.is_dir() and not file.is_symlink():
            file.rmdir()
        file.unlink(missing_ok=True)  # it is damaged, or a link, whose mode a new file would get
        replace_file(file, hashlib.sha256(data).digest() + data)
        _bound(key)


def _bound(newest: str) -> None:
    """Delete the files that were not used for longest until the rest is small enough."""
    files = []
    for file in folder().iterdir():  # also those that a killed process was writing
        with suppress(OSError):  # another process deleted it
            files.append((file.stat().st_mtime, file.stat().st_size, file))
    total = sum(size for _, size, _ in files)
    for _, size, file in sorted(files):
        if total > MOST and ENDING in file.name and file.stem != newest:
            total -= size
            file.unlink(missing_ok=True)
            file.with_suffix(".lock").unlink(missing_ok=True)
