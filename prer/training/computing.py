"""Process settings during training: threads, TF32 and cuDNN, set in a scope and restored."""

from __future__ import annotations

import contextlib
import ctypes
import os
from collections.abc import Iterator

import torch

from prer.address import Address


@contextlib.contextmanager
def computing(device: str, threads: int | None = None) -> Iterator[None]:
    """Use fast and deterministic settings in this scope, and restore the previous ones on exit.

    The settings are global to the process: if two threads train at once, the last one to finish restores what the
    other had set.

    Args:
        device: "cpu" or "cuda".
        threads: number of CPU threads; by default one, unless OMP_NUM_THREADS is set. Steps are far too short to be
            parallelised: a second thread gains little, and on a busy machine it costs minutes.
    """
    before = torch.get_num_threads(), torch.backends.cudnn.deterministic
    if threads is None and "OMP_NUM_THREADS" not in os.environ:
        threads = 1
    try:
        if threads is not None:
            torch.set_num_threads(threads)
        torch.backends.cudnn.deterministic = True  # its other convolutions sum in no fixed order and are no faster
        with _tf32() if device == "cuda" else contextlib.nullcontext():
            yield
    finally:
        torch.set_num_threads(before[0])
        torch.backends.cudnn.deterministic = before[1]


@contextlib.contextmanager
def _tf32() -> Iterator[None]:
    """Use TF32 for matrix products, as for convolutions by default."""
    try:
        before = torch.get_float32_matmul_precision()
    except RuntimeError:  # the process uses torch's newer settings, which must not be mixed with the older ones
        yield
        return
    torch.set_float32_matmul_precision("high")
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)


def rows_at_once(address: Address) -> int:
    """Batch size of each seed for inference."""
    return 1024 if address.device == "cpu" else max(32_768 // len(address.seeds), 1)


def keep_memory() -> None:
    """Keep freed memory in the process, if the C library supports it: allocating it again takes a fifth of a step.

    This cannot be undone, so only a process of our own may do it: the command line or a benchmark.
    """
    with contextlib.suppress(OSError, AttributeError, TypeError):
        library = ctypes.CDLL(None)
        library.mallopt(-1, 2**30)  # M_TRIM_THRESHOLD, in bytes
        library.mallopt(-3, 2**25)  # M_MMAP_THRESHOLD, the largest value allowed
