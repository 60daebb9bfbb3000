"""What is done to samples on their device: exact against the same done by hand, and the same at the same address."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import ndimage
from support.arrays import tensor_images

from prer.address import Address
from prer.streams.transforms import Moves, Permuted, Rotated

few = settings(max_examples=40, deadline=None, database=None)


# -- a task's own view ------------------------------------------------------------------------------------------------


@few
@given(st.integers(1, 4), st.integers(1, 9), st.integers(1, 9), st.integers(0, 99))
def test_a_permutation_moves_all_channels_alike_and_loses_nothing(channels, height, width, draw):
    x = tensor_images(2, 3, channels, height, width)
    seen = Permuted.drawn((channels, height, width), Address((draw,)))(x)
    assert (seen.shape, seen.dtype) == (x.shape, x.dtype)
    places = torch.arange(height * width).view(1, 1, height, width).expand(1, channels, -1, -1)
    order = Permuted.drawn((channels, height, width), Address((draw,)))(places)[0].flatten(1)
    assert all(order[c].equal(order[0]) for c in range(channels))
    assert sorted(order[0].tolist()) == list(range(height * width))
    assert torch.equal(seen.flatten(3), x.flatten(3)[..., order[0]])


def test_vectors_are_permuted_by_feature():
    x = torch.arange(12.0).view(1, 2, 6)
    seen = Permuted.drawn((6,), Address((3,)))(x)
    assert not torch.equal(seen, x)
    assert torch.equal(seen.sort(-1).values, x)
    assert torch.equal(seen[0, 1] - seen[0, 0], torch.full((6,), 6.0))


def test_the_permutation_of_an_address_is_the_same_for_ever():
    assert Permuted.drawn((8,), Address((0,)) / "pixels" / 1).order.tolist() == [0, 2, 7, 4, 3, 1, 6, 5]


@pytest.mark.parametrize("turns", [0, 1, 2, 3, 4, -1])
@pytest.mark.parametrize("size", [8, 9])
@pytest.mark.parametrize("dtype", [torch.uint8, torch.float32])
def test_quarter_turns_are_exact(turns, size, dtype):
    x = tensor_images(2, 3, 3, size, size, dtype=dtype)
    torch.testing.assert_close(Rotated(90.0 * turns)(x), torch.rot90(x, turns, (-2, -1)), atol=2e-5, rtol=0)


def test_half_a_turn_is_exact_for_oblong_images():
    x = tensor_images(2, 3, 1, 8, 12)
    assert torch.equal(Rotated(180.0)(x), x.flip(-1, -2))


@pytest.mark.parametrize("degrees", [10.0, 45.0, 77.0, 200.0])
@pytest.mark.parametrize("shape", [(16, 16), (12, 20)])
def test_other_angles_are_what_scipy_gives(degrees, shape):
    smooth = ndimage.gaussian_filter(np.random.default_rng(0).uniform(0, 1, shape), 1.5).astype(np.float32)
    theirs = ndimage.rotate(smooth, degrees, reshape=False, order=1, mode="grid-constant")
    ours = Rotated(degrees)(torch.from_numpy(smooth)[None, None])[0, 0].numpy()
    np.testing.assert_allclose(ours, theirs, atol=2e-4)


@pytest.mark.parametrize("size", [8, 28])
def test_floats_stay_within_their_range(size):
    assert float(Rotated(33.0)(torch.ones(1, 2, 1, size, size)).max()) <= 1.0


# -- random moves -----------------------------------------------------------------------------------------------------


@few
@given(st.integers(0, 5), st.booleans(), st.integers(1, 4), st.integers(1, 7), st.integers(1, 7), st.integers(0, 99))
def test_moves_are_crops_of_the_padded_image_then_flips(crop, flip, channels, height, width, seed):
    moves, x = Moves(crop, flip), tensor_images(2, 3, channels, height, width, seed=seed)
    drawn = moves.draw(torch.zeros(2, 4, 3), Address((seed, seed + 1)))[:, 0]
    seen = moves(x, drawn)
    if not (crop or flip):
        assert drawn.shape == (2, 3, 0)
        assert seen is x
        return
    for s in range(2):
        for b in range(3):
            down, right, mirrored = drawn[s, b].tolist()
            top, left = math.floor(down * (2 * crop + 1)), math.floor(right * (2 * crop + 1))
            padded = np.pad(x[s, b].numpy(), ((0, 0), (crop, crop), (crop, crop)))
            expected = padded[:, top : top + height, left : left + width]
            expected = expected[:, :, ::-1] if flip and mirrored < 0.5 else expected
            assert np.array_equal(seen[s, b].numpy(), expected)


def test_moves_go_in_every_direction_and_every_second_image_is_flipped():
    drawn = Moves(2, True).draw(torch.zeros(1, 10, 1000), Address((0,))).flatten(0, 2)
    tops = (drawn[:, 0] * 5).long().bincount()
    assert len(tops) == 5
    assert (tops - 2000).abs().max() < 200
    assert abs(float((drawn[:, 2] < 0.5).float().mean()) - 0.5) < 0.02


def test_moves_depend_on_the_address_alone():
    batches, moves = torch.zeros(3, 4, 5), Moves(crop=2)
    three = moves.draw(batches, Address((0, 1, 7)) / 2 / "classifier" / 5)
    assert torch.equal(moves.draw(batches[:1], Address((7,)) / 2 / "classifier" / 5)[0], three[2])
    assert not torch.equal(moves.draw(batches, Address((0, 1, 7)) / 2 / "classifier" / 6), three)
