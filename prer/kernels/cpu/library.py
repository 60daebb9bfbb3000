"""Our C, built when the package is installed (`setup.py`): a shared library for each set of instructions.

A library is opened by its full path beside this file. Neither a search path nor an environment variable nor the current
folder has a say in it, and whoever can write to this folder can change the package itself.

The libraries have vectors of different widths and so sum in a different order; `baseline` has no fused multiply-add on
x86-64. Their results agree but for rounding, and a run notes which one computed.
"""

from __future__ import annotations

import ctypes
import functools
import os
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path

import torch
from torch import Tensor

from prer.errors import InputError

# By what torch calls the processor, so that both take the same instructions; the first that was built is opened.
VARIANTS = {"AVX512": ("avx512", "avx2", "baseline"), "AVX2": ("avx2", "baseline")}
FUNCTIONS = ("forward", "backward", "prior_forward", "prior_backward", "kept", "scratch", "narrow", "widen", "weights")


class Library(ctypes.CDLL):
    """The functions of our C, and which variant they are."""

    made_by: str


@functools.cache
def loaded() -> Library | None:
    """The library for this processor, where it was built."""
    variants = VARIANTS.get(torch.backends.cpu.get_cpu_capability(), ("baseline",))
    return next(filter(None, map(_opened, variants)), None) if switched_on() else None


@functools.cache
def switched_on() -> bool:
    """Whether kernels may be used; `PRER_KERNELS=off` leaves everything to torch."""
    given = os.environ.get("PRER_KERNELS", "")
    if given not in ("", "on", "off"):
        raise InputError(f"PRER_KERNELS is {given!r}; set it to 'off' to compute without kernels, or leave it out")
    return given != "off"


def call(name: str, sizes: ctypes.Structure, *tensors: Tensor) -> None:
    """One of the functions, which know a tensor by where it begins."""
    getattr(loaded(), name)(ctypes.byref(sizes), *[ctypes.c_void_p(t.data_ptr()) for t in tensors])


def _opened(variant: str) -> Library | None:
    try:
        found = Library(str(Path(__file__).with_name(f"_{variant}{EXTENSION_SUFFIXES[0]}")))
        compiler = ctypes.string_at(ctypes.c_char_p.in_dll(found, "compiler"))
        for name in FUNCTIONS:
            getattr(found, name)
    except (OSError, ValueError, AttributeError):  # not built, for another kind of processor, or of another version
        return None
    found.made_by = f"C, {variant}, {compiler.decode(errors='replace')}"
    return found
