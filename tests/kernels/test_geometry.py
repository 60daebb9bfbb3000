"""Sizes of maps before and after a convolution."""

import pytest
import torch
import torch.nn.functional as F

from prer.kernels.geometry import halved


@pytest.mark.parametrize("padding", [0, 1, 2])
@pytest.mark.parametrize("size", range(4, 33))
def test_the_size_is_that_of_torchs_convolution(size, padding):
    made = F.conv1d(torch.zeros(1, 1, size), torch.zeros(1, 1, 4), stride=2, padding=padding)
    assert halved(size, padding) == made.shape[2]
