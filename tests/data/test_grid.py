"""Images side by side and below each other, as one."""

import numpy as np
import pytest

from prer.data.grid import grid


def test_images_stand_in_rows_with_a_gap_of_one_pixel():
    images = np.arange(1, 4, dtype=np.uint8).repeat(4).reshape(3, 1, 2, 2)
    assert grid(images, across=2, gap=9)[..., 0].tolist() == [
        [1, 1, 9, 2, 2],
        [1, 1, 9, 2, 2],
        [9, 9, 9, 9, 9],
        [3, 3, 9, 9, 9],
        [3, 3, 9, 9, 9],
    ]


@pytest.mark.parametrize(("count", "shape"), [(1, (8, 9)), (2, (8, 19)), (4, (17, 19)), (5, (17, 29)), (9, (26, 29))])
def test_there_are_about_as_many_rows_as_columns(count, shape):
    page = grid(np.ones((count, 1, 8, 9), np.float32))
    assert (page.shape, page.dtype) == ((*shape, 1), np.float32)


@pytest.mark.parametrize(("channels", "colours"), [(1, 1), (3, 3), (4, 3)])
def test_colours_are_the_last_axis_and_transparency_is_left_out(channels, colours):
    images = np.random.default_rng(0).random((2, channels, 8, 8))
    page = grid(images, across=1)
    assert page.shape == (17, 8, colours)
    assert np.array_equal(page[9:], np.moveaxis(images[1, :colours], 0, -1))
    assert not page[8].any()
