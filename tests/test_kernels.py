"""Triton's kernels: what they compute, and when they are used."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from prer.address import Address
from prer.kernels import registry as kernels
from prer.nn import convolution
from prer.nn.convolution import Conv2d, ConvTranspose2d
from prer.nn.stacked import stack

CHECKS = Path(__file__).with_name("kernels.py")


def test_kernels_compute_what_plain_operations_do():
    """In a process of its own: Triton decides when it is imported whether kernels are compiled or interpreted."""
    pytest.importorskip("triton")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:xdist", "-p", "no:cov", str(CHECKS)]
    environment = os.environ | {"TRITON_INTERPRET": "1", "CUDA_VISIBLE_DEVICES": ""}
    done = subprocess.run(command, env=environment, cwd=CHECKS.parents[1], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-8000:] + done.stderr[-2000:]


class Recorder:
    """In place of the kernels: notes what they are asked for."""

    def convolve(self, x, weight, bias, padding):
        return "convolve", tuple(x.shape), padding

    def mirror(self, x, weight, bias, padding, size):
        return "mirror", tuple(x.shape), padding, size


def test_layers_use_the_kernels_where_there_are_some(monkeypatch):
    down = stack(lambda: Conv2d(1, 2, (1, 2)), Address((0, 1)))
    up = stack(lambda: ConvTranspose2d(2, 1, (1, 2), (1, 0)), Address((0, 1)))
    monkeypatch.setattr(convolution, "_tiny", lambda *_: None)
    monkeypatch.setattr(convolution, "_kernels", lambda *_: Recorder())
    assert down(torch.zeros(2, 3, 1, 9, 8)) == ("convolve", (2, 3, 1, 9, 8), (1, 2))
    assert up(torch.zeros(2, 3, 2, 4, 5)) == ("mirror", (2, 3, 2, 4, 5), (1, 2), (9, 8))


def test_a_cpu_needs_no_triton():
    code = "import sys, torch; from prer.kernels.registry import kernels; x = torch.zeros(2); kernels('flow', x, x);"
    code += "kernels('convolution', x, x); assert 'triton' not in sys.modules, 'triton'"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_without_triton_there_are_no_kernels(monkeypatch):
    monkeypatch.setitem(sys.modules, "triton.runtime", None)
    kernels.ready.cache_clear()
    assert not kernels.ready()
    kernels.ready.cache_clear()
