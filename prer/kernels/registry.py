"""Selects the kernels for an operation and a device."""

from __future__ import annotations

import functools
import importlib
from subprocess import SubprocessError
from types import ModuleType

import torch
from torch import Tensor

from prer.kernels.cpu.library import loaded, switched_on

MODULES = {
    ("flow", "cuda"): "triton.flow",
    ("convolution", "cuda"): "triton.convolution",
    ("flow", "cpu"): "cpu.flow",
    ("prior", "cpu"): "cpu.flow",
    ("convolution", "cpu"): "cpu.convolution",
}


def kernels(name: str, *tensors: Tensor) -> ModuleType | None:
    """The module with kernels for this operation and these tensors, or None if there are none."""
    device = tensors[0].device.type
    fitting = all(t.device.type == device and t.dtype == torch.float32 for t in tensors)
    module = MODULES.get((name, device))
    return importlib.import_module(f"prer.kernels.{module}") if fitting and module and made_by(device) else None


def made_by(device: str) -> str | None:
    """What compiled the kernels for a device, or None if there are none."""
    if device == "cuda":
        return "Triton" if ready() else None
    found = loaded()
    return found.made_by if found else None


@functools.cache
def ready() -> bool:
    """Whether Triton can compile kernels: it needs a C compiler, and we need a GPU that supports TF32."""
    if not switched_on():
        return False
    try:
        from triton.runtime import driver

        target = driver.active.get_current_target()
    except (ImportError, RuntimeError, OSError, SubprocessError):
        return False
    return target.backend == "cuda" and target.arch >= 80
