"""Sampling, by a flow and by Gaussians."""

import copy
import math

import pytest
import torch
from support.densities import CLASSES, assert_close, gaussian, new, rough, seeds

from prer.address import Address
from prer.densities.base import Density

both_densities = pytest.mark.parametrize(
    "build", [lambda n=2: rough(4, n), lambda n=2: gaussian(4, n)], ids=["flow", "gaussian"]
)


@both_densities
def test_five_seeds_draw_the_same_with_and_without_a_sixth(build):
    y = torch.arange(50).expand(6, -1) % CLASSES
    five, six = build(5).sample(y[:5], seeds(5) / "draw"), build(6).sample(y, seeds(6) / "draw")
    assert_close(six[:5], five, 1e-12)
    assert len(six.flatten(1).unique(dim=0)) == 6


@both_densities
def test_the_same_address_draws_the_same_and_another_does_not(build):
    density, y = build(), torch.arange(50).expand(2, -1) % CLASSES
    z, again, other = (density.sample(y, seeds(2) / place, limit=math.inf) for place in "aab")
    assert torch.equal(again, z)
    assert not (other == z).any()
    assert not z.requires_grad


def scripted(density: Density, monkeypatch, attempts):
    """Let a density draw these, in standard deviations from its mean, attempt by attempt; the last is repeated.

    The class of a sample must be its number.
    """
    mean, std = density._centre()
    asked = []

    def draw(condition, noise):
        asked.append(noise[0, 0, 0].item())
        values = attempts[min(len(asked), len(attempts)) - 1]
        return values.gather(1, condition.unsqueeze(-1).expand_as(noise)) * std + mean

    monkeypatch.setattr(density, "_draw", draw)
    return asked


@both_densities
def test_samples_that_are_not_finite_or_far_off_are_drawn_again(build, monkeypatch):
    density, y = build(), torch.arange(4).expand(2, -1)
    first, second = torch.zeros(2, 4, 4).double(), torch.full((2, 4, 4), 0.5).double()
    first[0, 0, 1], first[0, 2, 3], first[1, 1, 0], first[1, 3, 2] = math.nan, math.inf, -8.01, 7.99
    asked = scripted(density, monkeypatch, [first, second])
    z = density._standardised(density.sample(y, seeds(2) / "draw"))
    expected = first.clone()
    expected[0, 0] = expected[0, 2] = expected[1, 1] = 0.5
    assert_close(z, expected)
    assert len(asked) == len(set(asked)) == 2


@both_densities
def test_a_sample_drawn_again_does_not_depend_on_the_others(build):
    density, y = build(), torch.arange(50).expand(2, -1) % CLASSES
    alone = density.sample(y, seeds(2), limit=1.0, attempts=2)
    every = torch.where(
        (density._standardised(density.sample(y, seeds(2), limit=math.inf)).abs() <= 1).all(-1, keepdim=True),
        density._draw(y, (seeds(2) / 0).normal(50, 4).double()),
        density._draw(y, (seeds(2) / 1).normal(50, 4).double()),
    )
    mean, std = density._centre()
    assert_close(alone, torch.minimum(torch.maximum(every, mean - std), mean + std))


@both_densities
def test_samples_of_a_broken_density_are_clamped_to_the_limit(build, monkeypatch):
    density, y = build(), torch.arange(4).expand(2, -1)
    broken = torch.zeros(2, 4, 4).double()
    broken[0, 0, 1], broken[0, 2, 3], broken[1, 1, 0], broken[1, 3, 2] = math.nan, math.inf, -math.inf, 1e30
    asked = scripted(density, monkeypatch, [broken])
    z = density._standardised(density.sample(y, seeds(2), limit=6, attempts=3))
    assert z.isfinite().all()
    assert z.abs().max() < 6 + 1e-9
    assert_close(torch.stack([z[0, 2, 3], z[1, 1, 0], z[1, 3, 2]]), torch.tensor([6.0, -6, 6]))
    assert_close(z[0, 1], broken[0, 1])
    assert len(asked) == len(set(asked)) == 3


@pytest.mark.parametrize("broken", [math.nan, math.inf, 1e30])
@torch.no_grad()
def test_samples_of_a_broken_flow_are_within_the_limit(broken):
    flow, y = rough(4), torch.arange(50).expand(2, -1) % CLASSES
    flow.levels[1].bias_out.fill_(broken)
    assert not flow._draw(y, seeds(2).normal(50, 4).double()).abs().max() < 1e9
    assert (flow._standardised(flow.sample(y, seeds(2))).abs() < 8 + 1e-9).all()


@both_densities
def test_labels_follow_the_proportions_seen(build):
    density = build()
    density.counts = torch.tensor([[10.0, 0, 30, 60, 0], [50, 50, 0, 0, 900]])
    labels = density.labels(20_000, seeds(2), range(5))
    assert labels.shape == (2, 20_000)
    assert labels.dtype == torch.long
    shares = torch.stack([row.bincount(minlength=5) / 20_000 for row in labels])
    assert_close(shares, density.counts / density.counts.sum(1, keepdim=True), 0.015)
    assert (shares[density.counts == 0] == 0).all()


@pytest.mark.parametrize("count", [1, 4801, 2**23 - 1])
def test_labels_at_the_borders_of_intervals_are_of_classes_that_were_seen(count, monkeypatch):
    density = new(4)
    density.counts = torch.tensor([[0.0, count, count, 0]])
    monkeypatch.setattr(Address, "uniform", lambda self, n: torch.tensor([[0, 0.5, 1 - 2**-24]]))
    assert density.labels(3, seeds(1), range(4)).tolist() == [[1, 2, 2]]


@both_densities
def test_a_copy_is_independent(build):
    density, y = build(), torch.arange(9).expand(2, -1) % CLASSES
    twin, z = copy.deepcopy(density), density.sample(y, seeds(2))
    assert torch.equal(twin.sample(y, seeds(2)), z)
    with torch.no_grad():
        for tensor in (*density.parameters(), *density.buffers()):
            tensor.zero_()
    density.add(torch.tensor([1]), seeds(2))
    assert torch.equal(twin.sample(y, seeds(2)), z)
    assert twin.counts.shape == (2, CLASSES)
