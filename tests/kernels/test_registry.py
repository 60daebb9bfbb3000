"""Which kernels are used for which tensors."""

import subprocess
import sys

import torch
from support.kernels import compiled

from prer.kernels import registry
from prer.kernels.registry import kernels


@compiled
def test_c_computes_only_single_precision_on_a_cpu():
    x = torch.zeros(2)
    assert kernels("flow", x, x).__name__ == "prer.kernels.cpu.flow"
    assert kernels("convolution", x, x).__name__ == "prer.kernels.cpu.convolution"
    assert kernels("flow", x, x.double()) is None
    assert kernels("flow", x.to("meta"), x.to("meta")) is None


def test_a_cpu_needs_no_triton():
    code = "import sys, torch; from prer.kernels.registry import kernels; x = torch.zeros(2); kernels('flow', x, x);"
    code += "kernels('convolution', x, x); assert 'triton' not in sys.modules, 'triton'"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_without_triton_there_are_no_kernels(monkeypatch):
    monkeypatch.setitem(sys.modules, "triton.runtime", None)
    registry.ready.cache_clear()
    assert not registry.ready()
    registry.ready.cache_clear()
