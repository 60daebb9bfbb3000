"""Mixtures of Gaussians, against scikit-learn and torch."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.mixture import GaussianMixture
from support.densities import assert_close, seeds
from torch.distributions import Categorical, MixtureSameFamily, MultivariateNormal

from prer.densities.mixture import FEWEST, RIDGE, Mixture, MixtureSettings, components
from prer.learners.prer import PRER
from prer.nn.stacked import floats, stack

D = 3


def groups(n, seed=0):
    """Samples of a class that has three groups [n, D]."""
    generator = np.random.default_rng(seed)
    centres = np.array([[0, 0, 0], [6, 0, 0], [0, 6, 3]])[generator.integers(0, 3, n)]
    return torch.from_numpy(centres + generator.normal(size=(n, D)) @ np.diag([1, 0.5, 2]))


def mixture(counts, most=16, shrinkage=0.3, n=2):
    """A mixture that has learned these many samples of each class, in one lesson."""
    density = stack(lambda: Mixture(D, most, shrinkage), seeds(n)).double()
    z = torch.cat([groups(count, c) + 10 * c for c, count in enumerate(counts)])
    y = torch.arange(len(counts)).repeat_interleave(torch.tensor(counts))
    density.add(torch.tensor(counts), seeds(n))
    density.start(z.expand(n, -1, -1), y.expand(n, -1))
    return density, z, y


def of_torch(density, c, s=0):
    """The mixture of a class by torch."""
    place = slice(density._places()[c].start, density._places()[c].stop)
    L = torch.zeros(place.stop - place.start, D, D, dtype=torch.float64)
    row, column = torch.tril_indices(D, D)
    L[:, row, column] = density.factors[s, place]
    return MixtureSameFamily(
        Categorical(logits=density.weights[s, place]), MultivariateNormal(density.means[s, place], scale_tril=L)
    )


def test_without_shrinkage_it_is_the_maximum_that_scikit_learn_finds():
    z = groups(600)
    weights, means, packed = components(z, 3, torch.eye(D, dtype=z.dtype), 0.0)
    theirs = GaussianMixture(3, random_state=0, reg_covar=0, tol=1e-5, max_iter=500, means_init=means.numpy()).fit(
        z.numpy()
    )
    order = [int(np.argmin(((theirs.means_ - mean) ** 2).sum(1))) for mean in means.numpy()]
    assert sorted(order) == [0, 1, 2]
    assert_close(means, torch.from_numpy(theirs.means_[order]), 0.1)
    assert_close(weights.exp(), torch.from_numpy(theirs.weights_[order]), 0.02)
    place = range(3)
    density = stack(lambda: Mixture(D, 3, 0.0), seeds(1)).double()
    density.weights, density.means, density.factors = weights[None], means[None], packed[None]
    assert float(density._of_class(z[None], place).mean()) == pytest.approx(theirs.score(z.numpy()), abs=2e-3)


def test_one_component_has_the_shrunk_covariance():
    z, shared = groups(50), 3.0 * torch.eye(D, dtype=torch.float64)
    _, means, packed = components(z, 1, shared, 0.5)
    own, prior = z.mT.cov(correction=0), 0.5 * D
    pooled = (50 * own + prior * shared) / (50 + prior)
    expected = (50 * own + prior * pooled) / (50 + prior)
    expected = expected + (RIDGE * pooled.diagonal().mean() + 1e-8) * torch.eye(D, dtype=z.dtype)
    assert_close(means[0], z.mean(0))
    assert_close(packed[0], torch.linalg.cholesky(expected)[*torch.tril_indices(D, D)])


def test_log_prob_is_that_of_torch():
    density, z, y = mixture([300, 90, 30])
    log_prob = density.log_prob(z.expand(2, -1, -1), y.expand(2, -1))
    every = density.log_probs(z.expand(2, -1, -1), [0, 1, 2])
    for c in range(3):
        expected = of_torch(density, c).log_prob(z)
        assert_close(every[1, :, c], expected)
        assert_close(log_prob[1][y == c], expected[y == c])


def test_a_class_has_as_many_components_as_its_samples_allow():
    density, _, _ = mixture([16 * FEWEST, 5 * FEWEST, FEWEST - 1, 1], most=7)
    assert [len(place) for place in density._places()] == [7, 5, 1, 1]
    assert floats(density) == 14 * (1 + D + D * (D + 1) // 2) + D * D + 4


def test_samples_have_the_distribution_of_their_class():
    density, _, _ = mixture([400, 200])
    n = 40_000
    z = density.sample((torch.arange(n) % 2).expand(2, -1), seeds(2))
    for c in range(2):
        theirs, own = of_torch(density, c), z[0, c::2]
        assert_close(own.mean(0), theirs.mean, 0.08)
        assert_close(own.var(0) / theirs.variance, torch.ones(D), 0.05)
        assert abs(float(theirs.log_prob(own).mean() - theirs.log_prob(theirs.sample((n,))).mean())) < 0.05


def test_few_samples_of_many_components_are_those_that_are_drawn_one_component_at_a_time(monkeypatch):
    density, _, _ = mixture([400, 200])
    ids = (torch.arange(30) % 2).expand(2, -1)
    few = density.sample(ids, seeds(2))
    monkeypatch.setattr("prer.densities.mixture.AT_ONCE", 4 * D**2)
    in_parts = density.sample(ids, seeds(2))
    monkeypatch.setattr("prer.densities.mixture.FEW", 0)
    assert_close(density.sample(ids, seeds(2)), few)
    assert_close(in_parts, few)


def test_a_lower_temperature_narrows_components_but_chooses_them_alike():
    density, _, _ = mixture([400])
    ids = torch.zeros(2, 2000, dtype=torch.long)
    wide, narrow = (density.sample(ids, seeds(2), temperature) for temperature in (1.0, 1e-6))
    place = density.means[0]
    nearest = torch.cdist(narrow[0], place).argmin(1)
    assert_close(narrow[0], place[nearest], 1e-4)
    shares = torch.bincount(nearest, minlength=len(place)) / 2000
    assert_close(shares, density.weights[0].exp(), 0.05)
    assert wide.std() > narrow.std()


def test_old_classes_are_kept_as_they_were():
    density, _, _ = mixture([300, 90])
    before = {name: buffer.clone() for name, buffer in density.named_buffers()}
    density.add(torch.tensor([80]), seeds(2))
    density.start((groups(80, 9) - 10).expand(2, -1, -1), torch.full((2, 80), 2))
    for name in ("weights", "means", "factors", "counts"):
        there = before[name]
        assert torch.equal(getattr(density, name)[:, : there.shape[1]], there)
    assert density.means.shape[1] == before["means"].shape[1] + 2


def test_the_shared_covariance_is_the_mean_over_all_samples_so_far():
    density, z, y = mixture([300, 90])
    more = groups(80, 9)
    density.add(torch.tensor([80]), seeds(2))
    density.start(more.expand(2, -1, -1), torch.full((2, 80), 2))
    parts = [z[y == 0], z[y == 1], more]
    expected = sum(len(part) * part.mT.cov(correction=0) for part in parts) / 470
    assert_close(density.shared[1], expected)


def test_a_class_without_enough_samples_of_a_refit_keeps_its_fit_and_others_follow():
    density, z, y = mixture([300, 90])
    before = density.means.clone()
    few, many = z[y == 0][:D], z[y == 1] + 5
    density.start(torch.cat([few, many]).expand(2, -1, -1), torch.tensor([0] * D + [1] * 90).expand(2, -1))
    centre = density._centre()[0]
    assert centre.mean() > before.mean()
    first = density._places()[0].stop
    assert torch.equal(density.means[:, :first], before[:, :first])
    assert_close(density.means[:, first:].mean() - before[:, first:].mean(), torch.tensor(5.0), 0.3)


def test_it_knows_the_spread_of_all_its_data():
    density, z, _ = mixture([300, 90], shrinkage=0.0)
    mean, std = density._centre()
    assert density._centre()[0] is mean
    assert_close(mean[0, 0], z.mean(0), 1e-6)
    assert_close(std[0, 0] / z.std(0), torch.ones(D), 0.01)


@settings(max_examples=30)
@given(count=st.integers(1, 130), shrinkage=st.floats(0, 3), flat=st.booleans())
def test_any_number_of_samples_gives_finite_densities_and_samples(count, shrinkage, flat):
    density = stack(lambda: Mixture(D, 3, shrinkage), seeds(1))
    z = torch.zeros(1, count, D) if flat else groups(count).float().unsqueeze(0)
    density.add(torch.tensor([count]), seeds(1))
    density.start(z, torch.zeros(1, count, dtype=torch.long))
    assert density.log_prob(z, torch.zeros(1, count, dtype=torch.long)).isfinite().all()
    assert density.sample(torch.zeros(1, 50, dtype=torch.long), seeds(1)).isfinite().all()


def test_the_component_of_a_sample_is_chosen_by_its_share():
    density, _, _ = mixture([400], n=1)
    noise = torch.linspace(-6, 6, 20_001, dtype=torch.float64)
    chosen = density._choose(torch.zeros(1, len(noise), dtype=torch.long), noise.unsqueeze(0))[0]
    assert chosen.min() == 0 and chosen.max() == len(density._places()[0]) - 1 and (chosen.diff() >= 0).all()
    below = 0.5 * (1 + math.erf(float(noise[chosen == 0].max()) / math.sqrt(2)))
    assert below == pytest.approx(float(density.weights[0, 0].exp()), abs=1e-3)


def test_the_shrinkage_fits_the_shape_of_a_sample():
    auto = MixtureSettings(shrinkage="auto")
    assert [auto.fitting(shape).shrinkage for shape in ((384,), (1, 8, 8), (3, 32, 32))] == [1.0, 0.3, 0.3]
    assert MixtureSettings(shrinkage=0.7).fitting((384,)).shrinkage == 0.7
    learner = PRER(density={"name": "mixture", "shrinkage": "auto"}, encoder="identity")
    learner.start((12,), (0,))
    assert learner.density_.shrinkage == 1.0
