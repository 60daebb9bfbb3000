"""Images of one size and with the wanted channels."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image
from scipy import ndimage
from support.arrays import tensor_images

from prer.data.resizing import as_type_of, coloured, grey, resized

few = settings(max_examples=40, deadline=None, database=None)


@pytest.mark.parametrize("size", [8, 16, 40])
def test_resizing_is_what_pillow_gives(size):
    picture = ndimage.gaussian_filter(np.random.default_rng(1).uniform(0, 255, (24, 30)), 2).astype(np.uint8)
    ours = resized(torch.from_numpy(picture)[None, None], size)[0, 0].numpy()
    theirs = np.asarray(Image.fromarray(picture).resize((size, size), Image.Resampling.BILINEAR))
    assert np.abs(ours.astype(int) - theirs).max() <= 1


@few
@given(st.integers(1, 20), st.integers(1, 20), st.integers(1, 20))
def test_padding_centres_and_crops(height, width, size):
    x = tensor_images(3, 2, height, width)
    seen = resized(x, size, "pad")
    assert seen.shape == (3, 2, size, size)
    down, right = (size - height) // 2, (size - width) // 2
    kept = x[:, :, max(-down, 0) : max(-down, 0) + size, max(-right, 0) : max(-right, 0) + size]
    inside = seen[:, :, max(down, 0) :, max(right, 0) :][:, :, : kept.shape[2], : kept.shape[3]]
    assert torch.equal(inside, kept)
    assert int(seen.long().sum()) == int(kept.long().sum())  # black all around


def test_what_has_the_size_is_left_as_it_is():
    x = tensor_images(3, 1, 16, 16)
    assert resized(x, 16) is x
    assert resized(x, 16, "pad") is x


def test_many_images_are_resized_like_one():
    x = tensor_images(2100, 1, 9, 9)
    assert torch.equal(resized(x, 12)[2099], resized(x[2099:], 12)[0])


def test_floats_stay_floats():
    x = tensor_images(2, 3, 9, 9, dtype=torch.float32)
    assert resized(x, 12).dtype == torch.float32
    assert float(resized(x, 12).max()) <= 1


@pytest.mark.parametrize("size", range(8, 65, 7))
def test_floats_stay_within_their_range(size):
    ones = torch.ones(2, 1, 28, 28)
    assert float(resized(ones, size).max()) == 1.0


def test_grey_becomes_colour_and_colour_stays():
    grey, colour = tensor_images(2, 1, 8, 8), tensor_images(2, 3, 8, 8)
    assert torch.equal(coloured(grey), grey.expand(-1, 3, -1, -1))
    assert coloured(colour) is colour


def test_colours_become_grey_by_the_usual_weights():
    colours = torch.tensor([[255, 0, 0], [0, 255, 0], [0, 0, 255], [200, 100, 50]], dtype=torch.uint8).view(4, 3, 1, 1)
    seen = grey(colours.expand(-1, -1, 2, 2))
    assert (seen.shape, seen.dtype) == ((4, 1, 2, 2), torch.uint8)
    assert seen[:, 0, 0, 0].tolist() == [76, 150, 29, 124]
    for x in (tensor_images(2, 1, 8, 8), tensor_images(2, 4, 8, 8)):
        assert grey(x) is x


def test_floats_take_the_type_and_the_range_of_what_they_came_from():
    floats = torch.tensor([-3.0, 0.4, 0.6, 254.6, 300.0])
    assert as_type_of(floats, torch.empty(0, dtype=torch.uint8)).tolist() == [0, 0, 1, 255, 255]
    half = as_type_of(floats, torch.empty(0, dtype=torch.float64))
    assert half.dtype == torch.float64 and half.tolist() == pytest.approx([0, 0.4, 0.6, 1, 1])
