"""Samples in a file: an array, or one picture of all images."""

import numpy as np
import pytest
import torch

from prer.models.samples import write


@pytest.mark.parametrize("suffix", [".npy", ".NPY"])
def test_samples_are_where_the_command_says(tmp_path, suffix):
    file = tmp_path / f"x{suffix}"
    assert write(torch.ones(2, 3), "a", file) == file
    assert np.load(file).shape == (2, 3)
    assert [path.name for path in tmp_path.iterdir()] == [file.name]


def test_images_are_one_picture(tmp_path):
    from PIL import Image

    with Image.open(write(torch.zeros(4, 1, 8, 8, dtype=torch.uint8), "a", tmp_path / "x.PNG")) as picture:
        assert (picture.format, picture.size) == ("PNG", (17, 17))
