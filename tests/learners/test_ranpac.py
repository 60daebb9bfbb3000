"""RanPAC: its random features, and its weights against scikit-learn's ridge regression."""

import numpy as np
import pytest
import torch
from scipy.stats import kstest
from sklearn.linear_model import Ridge
from support.learners import images, pictures, started, vectors

from prer import learn
from prer.learners import RanPAC
from prer.learners.ranpac import _normal


@pytest.mark.parametrize("features", ["relu", "fourier"])
@pytest.mark.parametrize("stream", [images, vectors])
def test_scores_are_those_of_ridge_regression_on_the_random_features(stream, features):
    made = stream(scenario="class")
    learner = started(RanPAC(size=40, features=features, ridge=1e-3), made, (3,))
    h, y = [], []
    for task in made:
        learner.learn(task)
        rows = task.train_rows((3,))
        h.append(learner._random(learner._flat(task.x[rows]))[0].numpy())
        y += [task.labels[i] for i in task.y[rows][0]]
    h = np.concatenate(h)
    ridge = Ridge(alpha=1e-3 * (h**2).sum(0).mean(), fit_intercept=False).fit(h, np.eye(11)[y])
    x = torch.cat([task.x for task in made]).unsqueeze(0)
    expected = ridge.predict(learner._random(learner._flat(x))[0].numpy())
    np.testing.assert_allclose(learner.scores(x, 0)[0].numpy(), expected, atol=1e-8)


def test_fourier_features_approximate_a_gaussian_kernel():
    learner = RanPAC(size=20_000, features="fourier", scale=0.5)
    learner.start((1, 4, 4), (0, 1))
    x = torch.rand(2, 30, 16, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    h = learner._random(x)
    kernel = torch.exp(-torch.cdist(x, x).square() / (2 * 16 * 0.5**2))
    assert (2 * h @ h.mT / 20_000 - kernel).abs().max() < 0.05
    relu = torch.relu(x @ learner.weights_)
    torch.testing.assert_close(RanPAC._random(_with(learner, "relu"), x), relu)


def _with(learner, features):
    learner.features = features
    return learner


def test_the_projection_is_normal_and_that_of_the_seed():
    learner = RanPAC(size=50)
    learner.start((1, 8, 8), (0, 1))
    other = RanPAC(size=50)
    other.start((1, 8, 8), (1,))
    assert torch.equal(learner.weights_[1], other.weights_[0]) and torch.equal(learner.shift_[1], other.shift_[0])
    for weights in 8 * learner.weights_:
        assert kstest(weights.flatten().numpy(), "norm").pvalue > 0.001
    assert not torch.equal(*learner.weights_)
    assert _normal(learner.address_, 7).shape == (2, 7)


def test_the_projection_is_neither_saved_nor_counted():
    learner = RanPAC(size=10)
    result = learn(pictures(), learner, seeds=1, device="cpu")
    assert {name for name in learner.state() if not name.startswith("inputs")} == {
        "sums.count",
        "sums.products",
        "sums.totals",
    }
    assert result.memory_floats[-1] == 1 + 10 * 10 + 6 * 10


def test_the_ridge_of_few_samples_is_larger():
    """By default 30 / n: the same penalty for each feature, however many samples there are."""
    stream = pictures(scenario="class")
    learners = [started(RanPAC(size=32, ridge=ridge), stream) for ridge in ("auto", 30 / 38)]
    for learner in learners:
        learner.learn(stream[0])
    assert stream[0].size[0] == 38
    torch.testing.assert_close(learners[0].solve(), learners[1].solve())
