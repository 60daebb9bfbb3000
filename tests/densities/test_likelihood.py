"""Classification by likelihood, against Bayes' rule by hand."""

import torch
from support.densities import CLASSES, assert_close, draw, gaussian, rough, seeds
from torch.distributions import MultivariateNormal

from prer.densities.likelihood import likelihoods


def test_each_output_has_the_log_likelihood_of_its_class():
    density = rough(4)
    z = draw(4, 20, seeds(2) / "new")[0].double()
    found = likelihoods(density, z, {0: 2, 1: 0, 2: 1})
    assert found.shape == (2, 20, CLASSES)
    for i, output in {0: 2, 1: 0, 2: 1}.items():
        assert_close(found[..., output], density.log_prob(z, torch.full((2, 20), i)))


def test_a_class_that_came_again_is_a_mixture_weighted_by_its_samples():
    density = gaussian()
    density.counts[:] = torch.tensor([30.0, 50.0, 90.0])
    z = draw(4, 20, seeds(2) / "new")[0].double()
    found = likelihoods(density, z, {0: 0, 1: 1, 2: 0})
    each = torch.stack([density.log_prob(z, torch.full((2, 20), i)).exp() for i in range(3)])
    assert_close(found[..., 0], (0.25 * each[0] + 0.75 * each[2]).log())
    assert_close(found[..., 1], each[1].log())


def test_the_most_likely_gaussian_is_that_of_torch():
    density = gaussian()
    z = draw(4, 50, seeds(2) / "new")[0].double()
    own, y = draw(4, 600, seeds(2) / "data")
    expected = []
    for c in range(CLASSES):
        of_class = own[0][y[0] == c].double()
        covariance = of_class.T.cov(correction=0)
        covariance += (1e-4 * covariance.trace() / 4 + 1e-8) * torch.eye(4)
        expected.append(MultivariateNormal(of_class.mean(0), covariance).log_prob(z[0]))
    found = likelihoods(density, z, {c: c for c in range(CLASSES)})[0]
    assert_close(found, torch.stack(expected, dim=1), 1e-6)
