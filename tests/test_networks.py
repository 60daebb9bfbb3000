import math

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st

from prer.address import Address
from prer.nn import convolution, networks
from prer.nn.convolution import Conv2d, ConvTranspose2d
from prer.nn.heads import Head
from prer.nn.networks import Decoder, Encoder, Inputs, Reshape, paddings
from prer.nn.stacked import Linear, floats, stack

SEEDS = Address((0, 1, 2))
IMAGES = [(1, 8, 8), (1, 28, 28), (3, 32, 32), (2, 9, 13), (4, 11, 10)]
CHANNELS = (2, 3, 5)


def widths(shape, sizes=CHANNELS):
    """An encoder's or decoder's arguments for this shape."""
    return shape, 6, sizes, sizes


def tags(cases):
    return pytest.mark.parametrize(("build", "shapes"), cases.values(), ids=cases.keys())


def alone(build, stacked, seed):
    """One seed's module, as it would be without a stack."""
    module = build().to(next(stacked.parameters()).dtype)
    module.load_state_dict({name: tensor[seed] for name, tensor in stacked.state_dict().items()})
    return module


# -- the seed axis ---------------------------------------------------------------------------------------------------

LAYERS = {
    "linear": (lambda: Linear(5, 4), [(5,)]),
    "head": (lambda: Head(13, 3, 0.2), [(13,)]),
    "head with dropout": (lambda: Head(13, 3, 0.2), [(13,), (sum(Head.widths(13)),)]),
    "encoder of vectors": (lambda: Encoder(*widths((7,))), [(7,)]),
    "decoder of vectors": (lambda: Decoder(*widths((7,))), [(6,)]),
    "encoder without hidden layers": (lambda: Encoder((7,), 6, (), ()), [(7,)]),
}
LAYERS |= {f"encoder {shape}": (lambda shape=shape: Encoder(*widths(shape)), [shape]) for shape in IMAGES}
LAYERS |= {f"decoder {shape}": (lambda shape=shape: Decoder(*widths(shape)), [(6,)]) for shape in IMAGES}


def assert_stack_is_each_seed(build, shapes):
    stacked = stack(build, SEEDS).double()
    inputs = [(SEEDS / i).uniform(4, *shape).double().requires_grad_() for i, shape in enumerate(shapes)]
    output = stacked(*inputs)
    direction = (SEEDS / "direction").normal(*output.shape[1:]).double()
    (output * direction).sum().backward()
    for seed in range(len(SEEDS.seeds)):
        own, own_inputs = alone(build, stacked, seed), [x[seed].detach().requires_grad_() for x in inputs]
        own_output = own(*own_inputs)
        torch.testing.assert_close(output[seed], own_output)
        (own_output * direction[seed]).sum().backward()
        torch.testing.assert_close(inputs[0].grad[seed], own_inputs[0].grad)
        for (name, parameter), theirs in zip(own.named_parameters(), stacked.parameters(), strict=True):
            torch.testing.assert_close(theirs.grad[seed], parameter.grad, msg=lambda m, name=name: f"{name}: {m}")


@tags(LAYERS)
def test_a_stack_computes_what_each_seed_computes_alone(build, shapes):
    assert_stack_is_each_seed(build, shapes)


CONVOLUTIONS = [((8, 8), (1, 1)), ((9, 13), (1, 2)), ((6, 11), (2, 1)), ((2, 3), (1, 1)), ((7, 7), (2, 2))]
both_kernels = pytest.mark.parametrize("tiny", [True, False], ids=["matrix product", "grouped convolution"])


@pytest.fixture
def kernel(tiny, monkeypatch):
    """Choose the kernel, which otherwise depends on the size of the maps and on the device."""

    def choice(layer, size, cuda):
        return convolution._positions(*layer.weight.shape[1:3], size, layer.padding) if tiny else None

    monkeypatch.setattr(convolution, "_tiny", choice)


@both_kernels
@pytest.mark.parametrize(("size", "padding"), CONVOLUTIONS)
@pytest.mark.usefixtures("kernel")
def test_convolutions_compute_what_each_seed_computes_alone(size, padding):
    maps = tuple(networks.halved(s, p) for s, p in zip(size, padding, strict=True))
    missing = tuple(s % 2 for s in size)
    assert_stack_is_each_seed(lambda: Conv2d(2, 3, padding), [(2, *size)])
    assert_stack_is_each_seed(lambda: ConvTranspose2d(3, 2, padding, missing), [(3, *maps)])


@both_kernels
@pytest.mark.parametrize(("size", "padding"), CONVOLUTIONS)
@pytest.mark.usefixtures("kernel")
def test_convolutions_are_those_of_torch(size, padding):
    layer = stack(lambda: Conv2d(2, 3, padding), SEEDS).double()
    x = SEEDS.normal(4, 2, *size).double()
    expected = [
        F.conv2d(x, w, b, stride=2, padding=padding) for x, w, b in zip(x, layer.weight, layer.bias, strict=True)
    ]
    torch.testing.assert_close(layer(x), torch.stack(expected))
    missing = tuple(s % 2 for s in size)
    mirror = stack(lambda: ConvTranspose2d(3, 2, padding, missing), SEEDS).double()
    expected = [
        F.conv_transpose2d(y, w, b, stride=2, padding=padding, output_padding=missing)
        for y, w, b in zip(layer(x), mirror.weight, mirror.bias, strict=True)
    ]
    torch.testing.assert_close(mirror(layer(x)), torch.stack(expected))
    assert mirror(layer(x)).shape == x.shape


def test_tiny_maps_take_the_matrix_product_and_others_the_grouped_convolution(monkeypatch):
    grouped = []
    monkeypatch.setattr(convolution, "_seeds", lambda *arguments, **more: grouped.append(arguments[1]))
    small, large = (stack(lambda n=n: Conv2d(1, n, (1, 1)), SEEDS) for n in (2, 12))
    small(SEEDS.normal(4, 1, 8, 8)), large(SEEDS.normal(4, 1, 28, 28))
    assert grouped == [large]


def test_stack_leaves_the_global_generator_alone():
    torch.manual_seed(5)
    before = torch.get_rng_state()
    stack(lambda: Head(8, 2, 0.0), SEEDS)
    assert torch.equal(torch.get_rng_state(), before)


def test_stack_lays_buffers_on_the_axis_too():
    assert stack(lambda: Inputs((4,)), SEEDS).mean.shape == (3, 4)
    assert floats(stack(lambda: Inputs((4,)), SEEDS)) == 8
    assert floats(stack(lambda: Linear(3, 2), SEEDS), stack(lambda: Inputs((4,)), SEEDS)) == 16


# -- shapes ----------------------------------------------------------------------------------------------------------


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


@pytest.mark.parametrize(("embedding", "expected"), [(50, (25, 12)), (200, (100, 50)), (20, (10, 8)), (1, (8, 8))])
def test_each_layer_of_a_head_halves_its_input_but_keeps_eight_units(embedding, expected):
    assert Head.widths(embedding) == expected
    assert stack(lambda: Head(embedding, 3, 0.2), SEEDS)(SEEDS.normal(4, embedding)).shape == (3, 4, 3)


@pytest.mark.parametrize("shape", [*IMAGES, (7,)], ids=str)
def test_every_layers_output_can_be_seen_and_the_last_one_is_the_networks(shape):
    for network, entry in [(Encoder, shape), (Decoder, (6,))]:
        module, x = stack(lambda network=network: network(*widths(shape)), SEEDS), SEEDS.normal(2, *entry)
        outputs = list(module.outputs(x))
        assert len(outputs) == sum(not isinstance(layer, Reshape) for layer in module.layers)
        assert torch.equal(outputs[-1], module(x))
        assert min(output.min() for output in outputs[:-1]) >= 0  # ReLU


# -- ranges ----------------------------------------------------------------------------------------------------------


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


@pytest.mark.parametrize("constant", [0.0, 1e-3, 0.1, -1e6])
def test_constant_columns_are_harmless(constant):
    inputs, x = stack(lambda: Inputs((2,)), SEEDS), SEEDS.normal(333, 2)
    x[..., 1] = constant * (1 + 1e-7 * x[..., 0].sign())  # but for rounding
    inputs.start(iter(x))
    tolerance = 1e-6 * max(1, abs(constant))
    assert inputs(x)[..., 1].abs().max() <= tolerance
    x[..., 1] += 1  # were it divided by its own rounding error, a later task's value would explode
    torch.testing.assert_close(inputs(x)[..., 1], torch.ones(3, 333), atol=tolerance, rtol=0)


# -- dropout ---------------------------------------------------------------------------------------------------------


@pytest.fixture
def head():
    """A head in which every ReLU is open, so that it is linear and dropout keeps its expected value exactly."""
    module = stack(lambda: Head(40, 3, 0.2), SEEDS)
    for layer in module.layers:
        layer.weight.data.abs_()
        layer.bias.data.abs_()
    return module


def test_dropout_keeps_the_expected_value(head):
    z = SEEDS.uniform(1, 40)
    dropped = head(z.expand(-1, 20_000, -1), SEEDS.uniform(20_000, 30))
    assert dropped.std(1).min() > 0.01
    error = (dropped.mean(1) - head(z)[:, 0]).abs() / (dropped.std(1) / math.sqrt(20_000))
    assert error.max() < 4


def test_noise_of_zeros_drops_all_and_of_ones_keeps_all(head):
    z = SEEDS.uniform(5, 40)
    first, second, last = head.layers
    nothing = head(z, torch.zeros(3, 5, 30))
    torch.testing.assert_close(nothing, last.bias.unsqueeze(1).expand(nothing.shape))
    everything = head(z, torch.ones(3, 5, 30))
    torch.testing.assert_close(everything, last(second(first(z) / 0.8) / 0.8))


def test_noise_decides_unit_by_unit_and_first_layer_first(head):
    z, noise = SEEDS.uniform(5, 40), torch.ones(3, 5, 30)
    first, second, last = head.layers
    kept = torch.ones(30)
    kept[[1, 4, 19, 20, 28]] = 0
    noise[..., kept == 0] = 0.19  # below the share that is dropped
    a, b = (kept / 0.8).split((20, 10))
    torch.testing.assert_close(head(z, noise), last(second(first(z) * a) * b))
    noise[..., kept == 0] = 0.2
    torch.testing.assert_close(head(z, noise), head(z, torch.ones(3, 5, 30)))


def test_without_noise_nothing_is_dropped(head):
    z = SEEDS.uniform(5, 40)
    first, second, last = head.layers
    for mode in (True, False):
        torch.testing.assert_close(head.train(mode)(z), last(second(first(z))))
