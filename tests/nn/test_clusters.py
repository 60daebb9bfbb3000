"""k-means, against scikit-learn's."""

import numpy as np
import torch
from hypothesis import given
from hypothesis import strategies as st
from sklearn.cluster import KMeans

from prer.nn import clusters


def data(n, width, seed=0):
    return torch.from_numpy(np.random.default_rng(seed).normal(size=(n, width))) + 3 * torch.arange(n).unsqueeze(1) % 7


def test_centres_are_those_of_scikit_learn():
    x = data(500, 4)
    ours = clusters.k_means(x, x[:6], rounds=100)
    theirs = KMeans(6, init=x[:6].numpy(), n_init=1, max_iter=100, tol=0).fit(x.numpy())
    torch.testing.assert_close(ours, torch.from_numpy(theirs.cluster_centers_))
    assert clusters.nearest(x, ours).tolist() == theirs.labels_.tolist()


def test_many_samples_are_taken_in_parts(monkeypatch):
    x = data(301, 3)
    whole = clusters.k_means(x, x[:5])
    monkeypatch.setattr(clusters, "AT_ONCE", 100)
    torch.testing.assert_close(clusters.k_means(x, x[:5]), whole)


def test_an_empty_cluster_keeps_its_centre():
    x, far = data(50, 2), torch.full((1, 2), 1e6, dtype=torch.float64)
    assert torch.equal(clusters.k_means(x, torch.cat([x[:2], far]))[2:], far)


@given(n=st.integers(1, 40), K=st.integers(1, 8), seed=st.integers(0, 99))
def test_no_sample_is_nearer_to_another_centre(n, K, seed):
    x = data(n, 3, seed)
    centres = clusters.k_means(x, x[torch.arange(K) % n])
    distance = torch.cdist(x, centres)
    own = distance.gather(1, clusters.nearest(x, centres).unsqueeze(1)).squeeze(1)
    torch.testing.assert_close(own, distance.amin(1))
