"""NCM against scikit-learn's nearest centroid."""

import numpy as np
import torch
from sklearn.neighbors import NearestCentroid
from support.learners import images, started, vectors

from prer.learners import NCM


def learned(stream):
    """NCM after all tasks, and the training samples and labels of its seed."""
    learner, x, y = started(NCM(), stream, (3,)), [], []
    for task in stream:
        learner.learn(task)
        rows = task.train_rows((3,))
        x.append(task.x[rows][0].flatten(1).double().numpy())
        y += [task.labels[i] for i in task.y[rows][0]]
    return learner, np.concatenate(x), np.array(y)


def predicted(learner, x):
    places = [output for _, output in sorted(learner.slots_)]
    return np.array([places[i] for i in learner.predict(x.unsqueeze(0), 0)[0]])


def test_pixels_are_compared_as_they_are():
    learner, x, y = learned(images(scenario="class"))
    new = torch.randint(0, 256, (200, 1, 8, 8), dtype=torch.uint8, generator=torch.Generator().manual_seed(0))
    expected = NearestCentroid().fit(x, y).predict(new.flatten(1).double().numpy())
    np.testing.assert_array_equal(predicted(learner, new), expected)


def test_features_of_vectors_are_scaled_by_their_spread_over_all_samples():
    learner, x, y = learned(vectors(scenario="class"))
    spread = x.std(0)
    new = torch.randn(200, 5, generator=torch.Generator().manual_seed(0)) * 4
    expected = NearestCentroid().fit(x / spread, y).predict(new.double().numpy() / spread)
    np.testing.assert_array_equal(predicted(learner, new), expected)
