"""One Gaussian for each class."""

import numpy as np
import pytest
import torch
from support.densities import CLASSES, assert_close, draw, gaussian, seeds
from torch.distributions import MultivariateNormal

from prer.address import Address
from prer.densities.gaussian import Gaussian
from prer.nn.stacked import floats, stack


@pytest.fixture(scope="module")
def fitted():
    """A fitted density, its data, and mean and covariance of each seed and class by numpy."""
    z, y = draw(4, 600, seeds(2) / "data")
    expected = {}
    for seed in range(2):
        for c in range(CLASSES):
            own = z[seed][y[seed] == c].double().numpy()
            covariance = np.cov(own.T, bias=True)
            covariance += (1e-4 * covariance.trace() / 4 + 1e-8) * np.eye(4)  # few samples suffice, too
            expected[seed, c] = torch.from_numpy(own.mean(0)), torch.from_numpy(covariance)
    return gaussian(), z.double(), y, expected


def test_gaussians_are_fitted_in_closed_form(fitted):
    density, _, _, expected = fitted
    factors = density._unpacked()
    for (seed, c), (mean, covariance) in expected.items():
        assert_close(density.means[seed, c], mean)
        assert_close(factors[seed, c] @ factors[seed, c].T, covariance)


def test_gaussian_log_prob_is_that_of_torch(fitted):
    density, z, y, expected = fitted
    log_prob = density.log_prob(z, y)
    for (seed, c), (mean, covariance) in expected.items():
        own = y[seed] == c
        assert_close(log_prob[seed][own], MultivariateNormal(mean, covariance).log_prob(z[seed][own]))


@pytest.mark.parametrize("temperature", [1.0, 0.5])
def test_gaussian_samples_have_the_mean_and_covariance_of_their_class(fitted, temperature):
    density, _, _, expected = fitted
    y = torch.arange(30_000).expand(2, -1) % CLASSES
    z, noise = density.sample(y, seeds(2), temperature), (seeds(2) / 0).normal(30_000, 4).double()
    for (seed, c), (mean, covariance) in expected.items():
        own, spread = z[seed][y[seed] == c], covariance.diagonal().sqrt()
        assert_close(own, mean + temperature * noise[seed][y[seed] == c] @ torch.linalg.cholesky(covariance).T)
        assert_close((own.mean(0) - mean) / spread, torch.zeros(4), 0.05)
        assert_close((own.T.cov() / temperature**2 - covariance) / spread.outer(spread), torch.zeros(4, 4), 0.06)


def test_gaussian_knows_the_spread_of_all_its_data(fitted):
    density, z, _, _ = fitted
    mean, std = density._centre()
    assert_close(mean.squeeze(1), z.mean(1))
    assert_close(std.squeeze(1), z.std(1), 1e-2)


@pytest.mark.parametrize(("dimension", "count"), [(4, 14), (50, 1325), (200, 20_300)])
def test_gaussian_grows_by_mean_and_triangle_for_each_class(dimension, count):
    density = stack(lambda: Gaussian(dimension), seeds(2))
    assert floats(density) == 0
    for classes in (1, 3):
        density.add(torch.full((classes - density.counts.shape[1],), 10), seeds(2))
        density.start(seeds(2).normal(30, dimension), torch.arange(30).expand(2, -1) % classes)
        assert floats(density) == classes * (count + 1)


@pytest.mark.parametrize("samples", [0, 1, 2])
def test_gaussian_of_few_samples_is_finite(samples):
    density = stack(lambda: Gaussian(6), seeds(2))
    density.add(torch.tensor([20, samples]), seeds(2))
    y = torch.tensor([0] * 20 + [1] * samples).expand(2, -1)
    z = seeds(2).normal(20 + samples, 6)
    density.start(z, y)
    assert density.log_prob(z, y).isfinite().all()
    assert density.sample(torch.ones(2, 5).long(), seeds(2)).isfinite().all()


def test_a_gaussian_without_enough_new_embeddings_keeps_what_it_has():
    address = Address((0, 1))
    density = stack(lambda: Gaussian(3), address)
    density.add(torch.tensor([50, 50]), address)
    z, condition = address.normal(100, 3), (torch.arange(100) % 2).expand(2, -1)
    density.start(z, condition)
    means, factors = density.means, density.factors
    density.add(torch.tensor([50]), address)
    few = torch.cat([torch.zeros(2, 2), torch.ones(2, 40), torch.full((2, 50), 2.0)], dim=1).long()
    density.start(5 + (address / "more").normal(92, 3), few)
    assert torch.equal(density.means[:, 0], means[:, 0])
    assert torch.equal(density.factors[:, 0], factors[:, 0])
    assert (density.means[:, 1:] > 4).all()
