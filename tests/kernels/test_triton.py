"""Triton's kernels compute what plain operations compute."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

TESTS = Path(__file__).with_name("triton_interpreted.py")


def test_kernels_compute_what_plain_operations_do():
    """In a process of its own: Triton decides on import whether kernels are compiled or interpreted."""
    pytest.importorskip("triton")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:xdist", "-p", "no:cov", str(TESTS)]
    environment = os.environ | {"TRITON_INTERPRET": "1", "CUDA_VISIBLE_DEVICES": ""}
    done = subprocess.run(command, env=environment, cwd=TESTS.parents[2], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-8000:] + done.stderr[-2000:]
