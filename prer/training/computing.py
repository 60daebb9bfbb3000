"""How a process computes while something is learned: threads, TF32 and cuDNN, set in a scope and put back."""

from __future__ import annotations

import contextlib
import ctypes
import os
from collections.abc import Iterator

import torch


@contextlib.contextmanager
def computing(device: str, threads: int | None = None) -> Iterator[None]:
    """Compute in the way that is fast and repeatable here, and leave the process as it was.

    These are settings of the whole process: where two threads learn at once, the last to end puts back what the other
    had set.

    Args:
        device: "cpu" or "cuda".
        threads: of a CPU; one where none is given, unless OMP_NUM_THREADS says otherwise. Steps are far too short to
            share: a second thread gains little, and on a busy machine it costs minutes.
    """
    before = torch.get_num_threads(), torch.backends.cudnn.deterministic
    if threads is None and "OMP_NUM_THREADS" not in os.environ:
        threads = 1
    try:
        if threads is not None:
            torch.set_num_threads(threads)
        torch.backends.cudnn.deterministic = True  # its other convolutions add in no fixed order and are no faster
        with _tf32() if device == "cuda" else contextlib.nullcontext():
            yield
    finally:
        torch.set_num_threads(before[0])
        torch.backends.cudnn.deterministic = before[1]


@contextlib.contextmanager
def _tf32() -> Iterator[None]:
    """Products in TF32, as those of convolutions are anyway."""
    try:
        before = torch.get_float32_matmul_precision()
    except RuntimeError:  # the process has chosen by torch's newer settings, which the older ones must not meet
        yield
        return
    torch.set_float32_matmul_precision("high")
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)


def keep_memory() -> None:
    """Let freed memory stay with the process, where the C library can: to get it anew takes a fifth of a step.

    This cannot be put back, so only a process of our own may do it: the command line, a benchmark.
    """
    with contextlib.suppress(OSError, AttributeError, TypeError):
        library = ctypes.CDLL(None)
        library.mallopt(-1, 2**30)  # M_TRIM_THRESHOLD, in bytes
        library.mallopt(-3, 2**25)  # M_MMAP_THRESHOLD, the most that is allowed
