"""A density that is trained becomes likelier on what it has seen, and keeps old classes."""

import pytest
import torch
from sklearn.datasets import load_digits

from prer import PRER, Stream, learn

X, Y = load_digits(return_X_y=True)
CHOSEN = Y < 4
HOW = {"encoder": "identity", "embedding": 10, "epochs": 1, "reencode": False}


def likelihood(epochs):
    """Mean log-likelihood of each class's own samples, after two tasks."""
    learner = PRER(**HOW, density={"name": "flow", "epochs": epochs, "lr": 3e-3})
    learn(Stream.split(X[CHOSEN], Y[CHOSEN], classes_per_task=2, scenario="class"), learner, seeds=2, warned=True)
    x = torch.from_numpy(X[CHOSEN]).float().expand(2, -1, -1)
    z, y = learner.encoder_(learner.inputs_(x)), torch.from_numpy(Y[CHOSEN]).expand(2, -1)
    with torch.no_grad():
        found = learner.density_.log_prob(z, y)
    return torch.stack([found[y == c].mean() for c in range(4)])


@pytest.fixture(scope="module")
def likelihoods():
    return likelihood(0), likelihood(15)


def test_training_makes_new_classes_likelier(likelihoods):
    untrained, trained = likelihoods
    assert (trained[2:] > untrained[2:] + 1).all()


def test_old_classes_stay_likely_by_samples_of_the_past(likelihoods):
    untrained, trained = likelihoods
    assert (trained[:2] > untrained[:2]).all()
