"""Encoder, decoder and inputs: shapes and ranges."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from support.networks import IMAGES, SEEDS, widths

from prer.address import Address
from prer.nn.networks import Decoder, Encoder, Inputs, Reshape, paddings
from prer.nn.stacked import floats, stack


@given(shape=st.tuples(st.integers(1, 4), st.integers(8, 40), st.integers(8, 40)))
@settings(derandomize=True, database=None, deadline=None, max_examples=40)
def test_decoder_gives_images_of_the_shape_that_the_encoder_took(shape):
    x = SEEDS.uniform(2, *shape)
    z = stack(lambda: Encoder(*widths(shape)), SEEDS)(x)
    assert z.shape == (3, 2, 6)
    assert stack(lambda: Decoder(*widths(shape)), SEEDS)(z).shape == x.shape


@pytest.mark.parametrize(("size", "expected"), [(28, [1, 2, 1]), (32, [1, 1, 1])])
def test_paddings_are_the_papers(size, expected):
    assert [padding for _, padding in paddings(size, 3)] == expected


@pytest.mark.parametrize(
    ("shape", "embedding", "channels", "count"),
    [((1, 28, 28), 50, (12, 24, 48), 61_766), ((3, 32, 32), 200, (24, 48, 96), 400_880)],
)
def test_encoder_has_as_many_parameters_as_the_paper_says(shape, embedding, channels, count):
    assert floats(stack(lambda: Encoder(shape, embedding, channels, ()), SEEDS)) == count


@pytest.mark.parametrize("shape", [*IMAGES, (7,)], ids=str)
def test_every_layers_output_can_be_seen_and_the_last_one_is_the_networks(shape):
    for network, entry in [(Encoder, shape), (Decoder, (6,))]:
        module, x = stack(lambda network=network: network(*widths(shape)), SEEDS), SEEDS.normal(2, *entry)
        outputs = list(module.outputs(x))
        assert len(outputs) == sum(not isinstance(layer, Reshape) for layer in module.layers)
        assert torch.equal(outputs[-1], module(x))
        assert min(output.min() for output in outputs[:-1]) >= 0  # ReLU


# -- ranges ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", IMAGES, ids=str)
def test_decoded_pixels_lie_between_0_and_1(shape):
    x = stack(lambda: Decoder(*widths(shape)), SEEDS)(1000 * SEEDS.normal(20, 6))
    assert 0 <= x.min() < 0.1 and 0.9 < x.max() <= 1


def test_decoded_vectors_and_embeddings_are_not_bounded():
    vectors = stack(lambda: Decoder(*widths((7,))), SEEDS)(1000 * SEEDS.normal(20, 6))
    embeddings = stack(lambda: Encoder(*widths((1, 8, 8))), SEEDS)(1000 * SEEDS.normal(20, 1, 8, 8))
    for x in (vectors, embeddings):
        assert x.min() < -2 and x.max() > 2


def test_bytes_are_scaled_and_other_pixels_are_left_as_they_are():
    inputs = stack(lambda: Inputs((1, 2, 2)), SEEDS)
    x = torch.tensor([0, 51, 102, 255], dtype=torch.uint8).view(1, 1, 1, 2, 2).expand(3, 1, 1, 2, 2)
    expected = torch.tensor([0, 0.2, 0.4, 1])
    torch.testing.assert_close(inputs(x), expected.view(1, 1, 1, 2, 2).expand(x.shape))
    assert torch.equal(inputs(inputs(x)), inputs(x))


def test_vectors_are_standardised_by_the_first_task():
    inputs, first = stack(lambda: Inputs((4,)), SEEDS), SEEDS.normal(50, 4) * torch.tensor([1, 0.01, 5, 300]) + 7
    inputs.start(iter(first))
    torch.testing.assert_close(inputs(first).mean(1), torch.zeros(3, 4), atol=1e-4, rtol=0)
    torch.testing.assert_close(inputs(first).std(1), torch.ones(3, 4), atol=1e-4, rtol=0)
    later = (SEEDS / 1).normal(20, 4)
    expected = (later - first.mean(1, keepdim=True)) / first.std(1, keepdim=True)
    torch.testing.assert_close(inputs(later), expected)


def test_one_vector_has_no_spread():
    inputs, x = stack(lambda: Inputs((4,)), SEEDS), SEEDS.normal(1, 4)
    inputs.start(iter(x))  # torch would warn of a variance of one number
    assert not inputs(x).any()
    torch.testing.assert_close(inputs(x + 1), torch.ones(3, 1, 4))


@pytest.mark.parametrize("constant", [0.0, 1e-3, 0.1, -1e6])
def test_constant_columns_are_harmless(constant):
    inputs, x = stack(lambda: Inputs((2,)), SEEDS), SEEDS.normal(333, 2)
    x[..., 1] = constant * (1 + 1e-7 * x[..., 0].sign())  # but for rounding
    inputs.start(iter(x))
    tolerance = 1e-6 * max(1, abs(constant))
    assert inputs(x)[..., 1].abs().max() <= tolerance
    x[..., 1] += 1  # were it divided by its own rounding error, a later task's value would explode
    torch.testing.assert_close(inputs(x)[..., 1], torch.ones(3, 333), atol=tolerance, rtol=0)


# -- embeddings --------------------------------------------------------------------------------------------------------


def scaled(x, fewest):
    """The inputs of one seed, after they were started with these vectors, and their spread."""
    inputs = stack(lambda: Inputs((x.shape[1],)), Address((0,)))
    inputs.start([x], fewest)
    return inputs(x.unsqueeze(0))[0], inputs.std[0]


@given(
    spreads=st.lists(st.floats(1, 9), min_size=3, max_size=30),
    unit=st.floats(1e-3, 1e3),
    shift=st.floats(-5, 5),
    seed=st.integers(0, 99),
)
@settings(derandomize=True, database=None, deadline=None, max_examples=50)
def test_the_numbers_of_an_embedding_have_one_scale(spreads, unit, shift, seed):
    """The root of their mean variance, computed in double precision; differences between numbers remain."""
    rng = np.random.default_rng(seed)
    x = (unit * (shift + rng.normal(size=(40, len(spreads))) * spreads)).astype(np.float32)
    own = x.astype(float).std(0, ddof=1)
    if 9.9 < own.max() / np.median(own) < 10.1:  # at the limit either is right
        return
    alike = own.max() <= 10 * np.median(own)
    made, std = scaled(torch.from_numpy(x), len(spreads))
    expected = np.full_like(own, np.sqrt((own**2).mean())) if alike else own
    np.testing.assert_allclose(std.numpy(), expected, rtol=1e-3)
    np.testing.assert_allclose(made.numpy(), (x - x.astype(float).mean(0)) / expected, atol=2e-3 * (1 + abs(shift)))


@pytest.mark.parametrize(("columns", "fewest", "alike"), [(8, 8, True), (8, 9, False), (8, None, False), (8, 1, True)])
def test_shorter_vectors_and_those_that_are_no_embeddings_are_scaled_each_by_itself(columns, fewest, alike):
    x = SEEDS.normal(50, columns)[0] * torch.linspace(1, 3, columns)
    _, std = scaled(x, fewest)
    torch.testing.assert_close(std, x.var(0).mean().sqrt().expand(columns) if alike else x.std(0))


@pytest.mark.parametrize(("largest", "alike"), [(9.9, True), (10.1, False)])
def test_a_spread_of_ten_times_the_median_is_the_limit(largest, alike):
    x = torch.tensor([[-1.0], [1.0]]).expand(2, 5) * torch.tensor([1.0, 1, 1, 1, largest])
    assert (len(scaled(x, 1)[1].unique()) == 1) == alike


def test_numbers_that_do_not_vary_have_no_part_in_the_scale():
    x = SEEDS.normal(50, 5)[0]
    x[:, 2] = 0.7
    made, std = scaled(x, 1)
    others = [0, 1, 3, 4]
    torch.testing.assert_close(std, x[:, others].var(0).mean().sqrt().expand(5))
    assert made[:, 2].abs().max() < 1e-6
    constant = torch.full((10, 5), 3.0)
    assert torch.equal(scaled(constant, 1)[1], torch.ones(5))
