"""Our own kernels for a GPU, written in Triton: the flow's blocks, and convolutions with an axis of seeds.

Only what asks for them on a GPU imports them. Without a GPU, a C compiler or Triton, which comes with torch on Linux,
everything is computed by torch's operations; results then agree but for rounding.
"""

from __future__ import annotations

import functools
import importlib
from subprocess import SubprocessError
from types import ModuleType

import torch
from torch import Tensor


def kernels(name: str, *tensors: Tensor) -> ModuleType | None:
    """The module of this name, where there are kernels for these tensors."""
    fitting = all(t.is_cuda and t.dtype == torch.float32 for t in tensors)
    return importlib.import_module(f"prer.kernels.{name}") if fitting and ready() else None


@functools.cache
def ready() -> bool:
    """Whether Triton can make kernels: it needs a C compiler, and we a GPU that knows TF32."""
    try:
        from triton.runtime import driver

        target = driver.active.get_current_target()
    except (ImportError, RuntimeError, OSError, SubprocessError):
        return False
    return target.backend == "cuda" and target.arch >= 80
