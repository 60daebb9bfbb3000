"""What tests of several kernels share."""

import pytest
import torch

from prer.kernels.cpu import library

compiled = pytest.mark.skipif(library.loaded() is None, reason="the C extension is not built, or off")


def numbers(*shape, seed=0):
    """Normal numbers."""
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))
