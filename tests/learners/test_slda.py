"""SLDA against scikit-learn's linear discriminant analysis."""

import numpy as np
import pytest
import torch
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from support.learners import images, started, vectors

from prer.learners import SLDA


class Shrunk:
    """The covariance of a class, shrunk to the identity."""

    def __init__(self, share):
        self.share = share

    def fit(self, x):
        self.covariance_ = (1 - self.share) * np.cov(x.T, bias=True) + self.share * np.eye(x.shape[1])
        return self


@pytest.mark.parametrize("share", [1e-4, 0.1])
@pytest.mark.parametrize(("stream", "scaled"), [(images, False), (vectors, True)], ids=["images", "vectors"])
def test_scores_are_those_of_scikit_learn(stream, scaled, share):
    made = stream(scenario="class")
    learner, x, y = started(SLDA(shrinkage=share), made, (3,)), [], []
    for task in made:
        learner.learn(task)
        rows = task.train_rows((3,))
        x.append(learner._flat(task.x[rows])[0].numpy())
        y += [task.labels[i] for i in task.y[rows][0]]
    x = np.concatenate(x)
    mean, spread = (x.mean(0), x.std(0)) if scaled else (0, 1)
    priors = np.full(11, 1 / 11)
    oracle = LinearDiscriminantAnalysis(solver="lsqr", covariance_estimator=Shrunk(share), priors=priors)
    oracle.fit((x - mean) / spread, y)
    found = learner.scores(torch.cat([task.x for task in made]).unsqueeze(0), 0)[0].softmax(-1).numpy()
    every = learner._flat(torch.cat([task.x for task in made]).unsqueeze(0))[0].numpy()
    np.testing.assert_allclose(found, oracle.predict_proba((every - mean) / spread), atol=1e-8)
