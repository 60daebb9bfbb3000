"""Encoders that are computed: principal components against scikit-learn, patches against a direct computation."""

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA
from support.densities import seeds

from prer.nn.computed import Inverse, Patches, Projection
from prer.nn.stacked import stack

DIGITS = torch.from_numpy(load_digits().images / 16).float().unsqueeze(1)


def projection(x, embedding, n=2, **how):
    made = stack(lambda: Projection(x.shape[-1], embedding, **how), seeds(n))
    made.start([x] * n, seeds(n))
    return made


def patches(x, embedding=20, n=2):
    made = stack(lambda: Patches(x.shape[1:], embedding), seeds(n))
    made.start([x] * n, seeds(n))
    return made


@pytest.fixture(scope="module")
def vectors():
    """Vectors with a few strong directions."""
    generator = np.random.default_rng(0)
    x = generator.normal(size=(400, 8)) * (5, 4, 3, 2, 1.5, 1.2, 1.1, 1) @ generator.normal(size=(8, 30))
    return torch.from_numpy(x + 0.01 * generator.normal(size=x.shape)).float()


@pytest.fixture(scope="module")
def digits():
    """A dictionary of patches of the digits."""
    return patches(DIGITS[:600])


# -- vectors -----------------------------------------------------------------------------------------------------------


def test_vectors_that_are_short_enough_stay_as_they_are(vectors):
    made, x = projection(vectors, 30), vectors.expand(2, -1, -1)
    assert torch.equal(made(x), x) and torch.equal(made.inverse(x), x)
    assert all(b.numel() == 0 for b in made.buffers())


def test_long_vectors_become_whitened_principal_components(vectors):
    z = projection(vectors, 5)(vectors.expand(2, -1, -1))
    standard = ((vectors - vectors.mean(0)) / vectors.std(0, correction=0)).numpy()
    expected = PCA(5, whiten=True, svd_solver="full").fit_transform(standard) * np.sqrt(400 / 399)
    for of_seed in z.numpy():
        signs = np.sign((of_seed * expected).sum(0))
        np.testing.assert_allclose(of_seed, signs * expected, atol=2e-3)


def test_embeddings_become_principal_components_that_are_not_whitened(vectors):
    z = projection(vectors, 5, whitened=False)(vectors.expand(2, -1, -1))
    expected = PCA(5, svd_solver="full").fit_transform(vectors.double().numpy())
    for of_seed in z.numpy():
        signs = np.sign((of_seed * expected).sum(0))
        np.testing.assert_allclose(of_seed, signs * expected, atol=5e-3)
    assert not torch.allclose(z.std(1)[0], torch.ones(5), atol=0.5)  # else this would not tell the two apart


@pytest.mark.parametrize("random", [False, True])
@given(shift=st.floats(-100, 100), scale=st.floats(0.1, 10), n=st.integers(2, 60), seed=st.integers(0, 99))
@settings(derandomize=True, database=None, deadline=None, max_examples=20)
def test_directions_that_are_not_whitened_keep_lengths(random, shift, scale, n, seed):
    """They are orthonormal: no vector becomes longer, and one in their span keeps its length."""
    x = shift + scale * torch.randn(n, 12, generator=torch.Generator().manual_seed(seed))
    made = projection(x, 4, whitened=False, random=random)
    for basis in made.basis:
        torch.testing.assert_close(basis.mT @ basis, torch.eye(4), atol=1e-4, rtol=0)
        assert (basis.sum(0) >= -1e-4).all()  # the sign is not that of a library
    torch.testing.assert_close(made.mean, x.mean(0).expand(2, -1), atol=1e-4 * (1 + abs(shift)), rtol=0)
    z = made(x.expand(2, -1, -1))
    assert (z.norm(dim=2) <= (x - x.mean(0)).norm(dim=1) * 1.001 + 1e-3).all()
    torch.testing.assert_close(made(made.inverse(z)), z, atol=1e-3 * (scale + abs(shift) / 10), rtol=0)


def test_random_directions_do_not_depend_on_the_samples(vectors):
    one, other = (projection(x, 5, whitened=False, random=True) for x in (vectors, vectors[:30].roll(1, 1) ** 2))
    assert torch.equal(one.basis, other.basis) and not torch.equal(one.mean, other.mean)
    assert not torch.equal(one.basis[0], one.basis[1])  # each seed has its own
    directions = projection(vectors, 5, whitened=False).basis
    assert not torch.allclose(directions, one.basis, atol=0.1)
    x = vectors.expand(2, -1, -1)
    expected = (x.numpy() - vectors.mean(0).numpy()) @ one.basis.numpy()
    np.testing.assert_allclose(one(x).numpy(), expected, atol=1e-3)


@pytest.mark.parametrize("n", [3, 9, 30])
def test_of_few_samples_only_a_third_as_many_components_are_used(vectors, n):
    """The other directions are random, orthogonal to them."""
    made = projection(vectors[:n], 12, whitened=False)
    top = PCA(n // 3, svd_solver="full").fit(vectors[:n].double().numpy()).components_
    for basis in made.basis.double().numpy():
        np.testing.assert_allclose(np.abs((basis[:, : n // 3] * top.T).sum(0)), 1, atol=1e-3)
        np.testing.assert_allclose(top @ basis[:, n // 3 :], 0, atol=1e-3)
    assert not torch.allclose(made.basis[0][:, n // 3 :], made.basis[1][:, n // 3 :], atol=0.1)


def test_the_inverse_gives_back_what_the_directions_span(vectors):
    made, x = projection(vectors, 8), vectors.expand(2, -1, -1)
    torch.testing.assert_close(Inverse(made, (30,))(made(x)), x, atol=0.2, rtol=0)
    z = made(x)
    torch.testing.assert_close(made(made.inverse(z)), z, atol=1e-3, rtol=1e-3)


def test_an_inverse_has_no_tensors_of_its_own_and_knows_the_shape_of_images():
    made = projection(DIGITS.flatten(1), 10)
    inverse = Inverse(made, (1, 8, 8))
    assert not inverse.state_dict() and inverse(torch.zeros(2, 3, 10)).shape == (2, 3, 1, 8, 8)


@pytest.mark.parametrize("n", [1, 2, 4])
def test_fewer_samples_than_directions_give_finite_embeddings(vectors, n):
    z = projection(vectors[:n], 10)(vectors.expand(2, -1, -1))
    assert z.shape == (2, 400, 10) and z.isfinite().all()


def test_a_feature_that_never_changed_stays_without_weight(vectors):
    x = vectors.clone()
    x[:, 3] = 7.0
    made = projection(x, 5)
    changed = x.clone()
    changed[:, 3] = 1000.0
    torch.testing.assert_close(made(changed.expand(2, -1, -1)), made(x.expand(2, -1, -1)), atol=1e-2, rtol=1e-2)


# -- images ------------------------------------------------------------------------------------------------------------


def test_features_of_patches_are_those_of_a_direct_computation(digits):
    x = DIGITS[700:720]
    places = F.unfold(x, 3).mT  # [n, places, 9]
    off = places - places.mean(-1, keepdim=True)
    whole = off / (off.square().mean(-1, keepdim=True) + Patches.contrast**2).sqrt()
    for seed in range(2):
        response = whole @ digits.weight[seed].flatten(1).mT + digits.bias[seed]
        signed = torch.cat([response, -response], -1)
        maps = (signed - Patches.threshold).relu().mT.unflatten(2, (6, 6))
        expected = maps.unfold(2, 2, 2).unfold(3, 2, 2).mean((4, 5)).flatten(1).sqrt()  # 3 x 3 cells of 2 x 2 places
        torch.testing.assert_close(digits._features(x, seed), expected, atol=2e-4, rtol=1e-3)


def test_brightness_and_contrast_of_an_image_hardly_matter(digits):
    x = DIGITS[700:750].expand(2, -1, -1, -1, -1)
    z, darker = digits(x), digits(0.5 * x + 0.2)
    assert torch.nn.functional.cosine_similarity(z, darker, dim=-1).min() > 0.9


def test_seeds_have_filters_of_their_own_that_depend_on_that_seed_alone(digits):
    alone = stack(lambda: Patches((1, 8, 8), 20), seeds(1))
    alone.start([DIGITS[:600]], seeds(1))
    assert torch.equal(alone.weight[0], digits.weight[0]) and not torch.equal(digits.weight[0], digits.weight[1])
    torch.testing.assert_close(alone(DIGITS[None, :9])[0], digits(DIGITS[:9].expand(2, -1, -1, -1, -1))[0])


@pytest.mark.parametrize("shape", [(1, 8, 8), (3, 32, 32), (1, 28, 28), (3, 64, 48), (1, 4, 4), (1, 2, 9), (1, 1, 1)])
def test_images_of_any_size_have_embeddings(shape):
    x = torch.from_numpy(np.random.default_rng(0).random((30, *shape))).float()
    z = patches(x, 12)(x.expand(2, *x.shape))
    assert z.shape == (2, 30, 12) and z.isfinite().all()


@pytest.mark.parametrize("value", [0.0, 0.5])
def test_flat_images_give_finite_embeddings(value):
    x = torch.full((20, 1, 8, 8), value)
    assert patches(x)(x.expand(2, *x.shape)).isfinite().all()
