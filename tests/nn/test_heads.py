"""Heads: their widths, dropout by given noise, and all heads as one module."""

import copy
import math

import pytest
import torch
from support.networks import SEEDS

from prer.address import Address
from prer.nn.heads import Head, Heads
from prer.nn.stacked import stack


@pytest.mark.parametrize(("embedding", "expected"), [(50, (25, 12)), (200, (100, 50)), (20, (10, 8)), (1, (8, 8))])
def test_each_layer_of_a_head_halves_its_input_but_keeps_eight_units(embedding, expected):
    assert Head.widths(embedding) == expected
    assert stack(lambda: Head(embedding, 3, 0.2), SEEDS)(SEEDS.normal(4, embedding)).shape == (3, 4, 3)


# -- dropout -----------------------------------------------------------------------------------------------------------


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


# -- all heads as one --------------------------------------------------------------------------------------------------


TWO = Address((0, 4))


def three_heads(dropout=0.3):
    widths = (2, 5, 3)
    return [stack(lambda k=k: Head(12, k, dropout), TWO / k) for k in widths]


@pytest.mark.parametrize("noisy", [False, True])
def test_heads_compute_for_each_sample_what_its_own_head_computes(noisy):
    heads = three_heads()
    bank = Heads(heads)
    place = TWO / "test"
    z = (place / "z").normal(20, 12).requires_grad_()
    which = ((place / "which").uniform(20) * 3).long()
    assert set(which.flatten().tolist()) == {0, 1, 2}
    noise = (place / "noise").uniform(20, sum(Head.widths(12))) if noisy else None
    found = bank(z, which, noise)
    masked = bank.masked(found, which)
    total = torch.zeros(())
    for s in range(2):
        for b in range(20):
            head = heads[int(which[s, b])]
            alone = head(z, noise)[s, b]
            torch.testing.assert_close(found[s, b, : head.classes], alone, atol=1e-6, rtol=1e-5)
            assert (found[s, b, head.classes :] == 0).all()
            assert torch.equal(masked[s, b, : head.classes], found[s, b, : head.classes])
            assert (masked[s, b, head.classes :] == -torch.inf).all()
            total = total + alone.square().sum() / (b + 1)
    for t, head in enumerate(heads):
        torch.testing.assert_close(bank.of(t, z, noise), head(z, noise), atol=1e-6, rtol=1e-5)
    mine = (found.square().sum(-1) / torch.arange(1, 21)).sum()
    parameters = [p for head in heads for layer in head.linears() for p in (layer.weight, layer.bias)]
    of_z, *theirs = torch.autograd.grad(total, [z, *parameters])
    stacked = [p for pair in zip(bank.weights, bank.biases, strict=True) for p in pair]
    of_z_too, *ours = torch.autograd.grad(mine, [z, *stacked])
    torch.testing.assert_close(of_z_too, of_z, atol=1e-6, rtol=1e-4)
    for i, g in enumerate(theirs):
        part = ours[i % 6][:, i // 6]
        torch.testing.assert_close(part[:, : g.shape[1]], g, atol=1e-6, rtol=1e-4)
        assert part[:, g.shape[1] :].abs().sum() == 0


def test_heads_give_back_exactly_what_they_learned():
    heads = three_heads()
    before = copy.deepcopy(heads)
    bank = Heads(heads)
    bank.give_back()
    for head, old in zip(heads, before, strict=True):
        assert all(map(torch.equal, head.state_dict().values(), old.state_dict().values()))
    z = (TWO / "z").normal(20, 12)
    which = torch.tensor([0, 2] * 10).expand(2, -1)  # the second head has no sample
    optimiser = torch.optim.Adam(bank.parameters(), 0.1, fused=True)
    for _ in range(3):
        optimiser.zero_grad()
        bank(z, which).square().sum().backward()
        optimiser.step()
    logits = bank(z, which)
    for head, old in zip(heads, before, strict=True):  # nothing is written before `give_back`
        assert all(map(torch.equal, head.state_dict().values(), old.state_dict().values()))
    bank.give_back()
    for t in (0, 2):
        assert not torch.equal(heads[t].layers[0].weight, before[t].layers[0].weight)
        torch.testing.assert_close(heads[t](z)[:, t // 2 :: 2], logits[:, t // 2 :: 2, : heads[t].classes])
        for i, layer in enumerate(heads[t].linears()):
            assert torch.equal(layer.weight, bank.weights[i][:, t, : layer.weight.shape[1]])
            assert torch.equal(layer.bias, bank.biases[i][:, t, : layer.bias.shape[1]])
    assert all(map(torch.equal, heads[1].state_dict().values(), before[1].state_dict().values()))
