"""Our C kernels, built when the package is installed (`setup.py`): a shared library for each instruction set.

A library is loaded by its full path, from the folder of this file. Search paths, environment variables and the current
folder are not used, and whoever can write to this folder can change the package anyway.

The libraries have vectors of different widths and so sum in a different order; `baseline` has no fused multiply-add on
x86-64. Their results agree except for rounding, and a run records which one it used.
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

# By torch's name of the CPU capability, so that both use the same instructions; the first that was built is loaded.
VARIANTS = {"AVX512": ("avx512", "avx2", "baseline"), "AVX2": ("avx2", "baseline")}
FUNCTIONS = ("forward", "backward", "prior_forward", "prior_backward", "kept", "scratch", "narrow", "widen", "weights")


class Library(ctypes.CDLL):
    """Our C functions, with the variant and its compiler."""

    made_by: str


@functools.cache
def loaded() -> Library | None:
    """The library for this processor, or None if none was built or kernels are off."""
    variants = VARIANTS.get(torch.backends.cpu.get_cpu_capability(), ("baseline",))
    return next(filter(None, map(_opened, variants)), None) if switched_on() else None


@functools.cache
def switched_on() -> bool:
    """Whether kernels may be used; `PRER_KERNELS=off` leaves everything to torch."""
    given = os.environ.get("PRER_KERNELS", "")
    if given not in ("", "on", "off"):
        raise InputError(f"PRER_KERNELS is {given!r}; set it to 'off' to compute without kernels, or unset it")
    return given != "off"


def call(name: str, sizes: ctypes.Structure, *tensors: Tensor) -> None:
    """Call a C function with the sizes and the tensors' data pointers."""
    getattr(loaded(), name)(ctypes.byref(sizes), *[ctypes.c_void_p(t.data_ptr()) for t in tensors])


def _opened(variant: str) -> Library | None:
    try:
        found = Library(str(Path(__file__).with_name(f"_{variant}{EXTENSION_SUFFIXES[0]}")))
        compiler = ctypes.string_at(ctypes.c_char_p.in_dll(found, "compiler"))
        for name in FUNCTIONS:
            getattr(found, name)
    except (OSError, ValueError, AttributeError):  # not built, built for another processor, or of another version
        return None
    found.made_by = f"C, {variant}, {compiler.decode(errors='replace')}"
    return found
