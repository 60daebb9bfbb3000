"""GEM against its formula, by hand, and its projection against a solver."""

import hypothesis
import numpy as np
import pytest
import torch
import torch.nn.functional as F
from hypothesis import strategies as st
from scipy.optimize import nnls
from support.learners import HEADS, SEEDS, TINY, started
from support.one_seed import alone, flat_gradient, memory_entries, midway

from prer.learners import GEM
from prer.learners.ewc import held_weights
from prer.learners.gem import FEW, nonnegative, project


def problems(kind, count, rng, most=50):
    """`count` problems of one size: gradients g [count, P] and constraints G [count, T, P]."""
    T = int(rng.integers(1, most + 1))
    P = int(rng.integers(2, 2 + T // 2 + 1)) if kind == "more constraints than weights" else int(rng.integers(T, 90))
    G = constraints(kind, count, T, P, rng)
    return rng.normal(size=(count, P)), G * 10 ** rng.uniform(-3, 3, size=(count, T, 1))


def constraints(kind, count, T, P, rng):
    """G alone, before every row is scaled."""
    G = rng.normal(size=(count, T, P)) + rng.normal(size=(count, 1, P)) / 2
    if kind == "duplicate":
        G = G[:, rng.integers(0, T, size=T)]
    if kind == "nearly parallel":
        G = G[:, rng.integers(0, T, size=T)] + 1e-4 * rng.normal(size=G.shape)
    if kind == "opposite":
        G[:, T // 2 : 2 * (T // 2)] = -G[:, : T // 2]
    if kind == "zero rows":
        G[:, rng.random(T) < 0.4] = 0
    return G


def projected(g, G):
    """The projection by nonnegative least squares (Lawson and Hanson), one problem at a time."""
    return np.stack([one + rows.T @ nnls(rows.T, -one, maxiter=5000)[0] for one, rows in zip(g, G, strict=True)])


def assert_projected(g, G, scale, strong=1.0):
    x = project(torch.tensor(scale * g), torch.tensor(scale * strong * G)).numpy() / scale
    sizes = np.linalg.norm(g, axis=1)
    norms = np.maximum(np.linalg.norm(G, axis=2), 1e-300)
    # Errors are relative to |g|: where only 0 is feasible, x is the rounding error of g.
    assert ((G @ x[..., None])[..., 0] / norms >= -1e-6 * sizes[:, None]).all()
    assert (np.linalg.norm(x - projected(g, G), axis=1) <= 1e-6 * sizes).all()


KINDS = [
    "plain", "duplicate", "nearly parallel", "opposite", "zero rows", "more constraints than weights",
]  # fmt: skip


@pytest.mark.parametrize("most", [6, 50])  # few constraints are solved by another algorithm
@pytest.mark.parametrize("kind", KINDS)
def test_the_projection_is_that_of_a_solver_for_any_problem(kind, most):
    rng = np.random.default_rng(KINDS.index(kind))
    for _ in range(12):
        assert_projected(*problems(kind, 14, rng, most), 1.0)  # 168 problems of each kind


@pytest.mark.parametrize(
    ("scale", "strong"), [(1e-14, 1.0), (1e-8, 1.0), (1e8, 1.0), (1e14, 1.0), (1.0, 1e-12), (1e-8, 1e12)]
)
def test_the_projection_does_not_depend_on_the_scale(scale, strong):
    rng = np.random.default_rng(9)
    for kind in KINDS:
        for most in (6, 50):
            assert_projected(*problems(kind, 6, rng, most), scale, strong)


@hypothesis.settings(max_examples=60, deadline=None, derandomize=True, database=None)
@hypothesis.given(
    T=st.integers(1, 40),
    P=st.integers(40, 60),
    kinds=st.lists(st.sampled_from([*KINDS, "allowed"]), min_size=1, max_size=6),
    draw=st.integers(0, 2**32 - 1),
)
def test_seeds_with_any_constraints_are_projected_together(T, P, kinds, draw):
    rng = np.random.default_rng(draw)
    g = rng.normal(size=(len(kinds), P))
    G = np.concatenate([constraints(kind, 1, T, P, rng) for kind in kinds])
    allowed = np.array(kinds) == "allowed"
    G[allowed] *= np.where(G[allowed] @ g[allowed, :, None] < 0, -1, 1)
    assert_projected(g, G, 1.0)


def pairs(T, P=60, count=20):
    """A and b of problems whose constraints are independent, so that only one guess is right."""
    rng = np.random.default_rng(T)
    g, G = torch.tensor(rng.normal(size=(count, P, 1))), torch.tensor(constraints("plain", count, T, P, rng))
    return G @ G.mT, (G @ g).squeeze(2)


@pytest.mark.parametrize("T", range(1, FEW + 1))
def test_exchanges_end_where_all_guesses_do_to_the_last_bit(T, monkeypatch):
    A, b = pairs(T)
    v = nonnegative(A, b)
    assert ((v > 0).any(1) & (v == 0).any(1)).any() or T == 1
    monkeypatch.setattr("prer.learners.gem.FEW", 0)
    assert torch.equal(nonnegative(A, b), v)


def test_few_constraints_are_solved_without_a_number_on_the_host():
    """Which a GPU that captures the step would not allow; a tensor without data has no numbers."""
    A, b = pairs(FEW)
    assert nonnegative(A.to("meta"), b.to("meta")).shape == b.shape
    A, b = pairs(FEW + 1)
    with pytest.raises((RuntimeError, NotImplementedError)):
        nonnegative(A.to("meta"), b.to("meta"))


@pytest.mark.parametrize("T", [7, 20, 40])
def test_a_problem_that_is_hard_for_single_exchanges_is_solved(T):
    """Those of Murty (1978) and Fathi (1979) take 2^T rounds if one variable is exchanged at a time."""
    L = np.tril(np.full((T, T), 2.0), -1) + np.eye(T)
    for A in (L @ L.T, (L @ L.T)[::-1, ::-1]):
        v = nonnegative(torch.tensor(A.copy())[None], -torch.ones(1, T, dtype=torch.float64))[0].numpy()
        np.testing.assert_array_less(-1e-9, A @ v - 1)
        np.testing.assert_allclose(v @ (A @ v - 1), 0, atol=1e-9)


def test_rounding_does_not_keep_exchanges_from_ending():
    """Thirty constraints on nine weights, some of them nearly equal: the systems are singular up to rounding."""
    rng = np.random.default_rng(0)
    for _ in range(5):
        G = constraints("duplicate", 20, 30, 9, rng)
        g, G = rng.normal(size=(20, 9)), G + 1e-5 * rng.normal(size=G.shape)
        x, sizes = project(torch.tensor(g), torch.tensor(G)).numpy(), np.linalg.norm(g, axis=1)
        assert (np.linalg.norm(x, axis=1) <= (1 + 1e-6) * sizes).all()  # a projection on a cone is never longer
        assert ((G @ x[..., None])[..., 0] / np.linalg.norm(G, axis=2) >= -1e-6 * sizes[:, None]).all()


def test_a_gradient_that_violates_nothing_stays_bit_for_bit():
    rng = np.random.default_rng(0)
    g = rng.normal(size=(30, 12))
    G = rng.normal(size=(30, 5, 12))
    G *= np.where((G @ g[..., None]) < 0, -1, 1)
    G[:10, 0] *= -1  # ten of the same batch violate one constraint
    g, G = torch.tensor(g, dtype=torch.float32), torch.tensor(G, dtype=torch.float32)
    for margin in (0.0, 0.5):
        x = project(g, G, margin)
        assert x.dtype == torch.float32
        assert torch.equal(x[10:], g[10:])
        assert not (x[:10] == g[:10]).all(1).any()


@hypothesis.settings(max_examples=100, deadline=None, derandomize=True, database=None)
@hypothesis.given(
    kind=st.sampled_from(KINDS),
    most=st.sampled_from([6, 20]),  # all guesses at once, and exchanges
    powers=st.lists(st.integers(-12, 12), min_size=4, max_size=4),
    margin=st.sampled_from([0.0, 0.5]),
    draw=st.integers(0, 2**32 - 1),
)
def test_the_projection_of_a_seed_does_not_depend_on_the_others(kind, most, powers, margin, draw):
    rng = np.random.default_rng(draw)
    g, G = map(torch.tensor, problems(kind, 7, rng, most))
    g[:4] *= 10.0 ** torch.tensor(powers).unsqueeze(1)  # neighbours of very different sizes
    G[4] *= torch.where(G[4] @ g[4] < 0, -1.0, 1.0).unsqueeze(1)  # one that violates nothing
    G[5, 0], g[6] = torch.nan, torch.inf  # and two that have diverged
    together = project(g, G, margin)
    for seed in range(5):
        single = project(g[seed : seed + 1], G[seed : seed + 1], margin)[0]
        # Products of several matrices may round differently from those of one.
        torch.testing.assert_close(together[seed], single, rtol=1e-6, atol=1e-6 * float(g[seed].norm()))


def test_the_margin_is_added_to_every_multiplier():
    rng = np.random.default_rng(2)
    g, G = rng.normal(size=(1, 9)), rng.normal(size=(1, 4, 9))
    v, _ = nnls(G[0].T, -g[0])
    assert (v > 0).any()
    assert (v == 0).any()
    x = project(torch.tensor(g), torch.tensor(G), 0.7)
    np.testing.assert_allclose(x[0], g[0] + G[0].T @ (v + 0.7), atol=1e-9)


@HEADS
@pytest.mark.parametrize("memory_batch", [8, 0])
@pytest.mark.parametrize("at_once", [True, False])
def test_a_step_is_projected_on_the_gradients_of_all_memories(stream, memory_batch, at_once, monkeypatch):
    monkeypatch.setattr("prer.learners.gem.at_once", lambda index: at_once)
    learner = started(GEM(**TINY | {"size": 10, "memory_batch": memory_batch, "margin": 0.2}), stream, SEEDS)
    batch = midway(learner, stream)
    assert batch.past[0].shape == (2, 2 * (memory_batch or 10))
    learner.loss(batch).sum().backward()
    learner.before_step(batch)
    after = torch.cat([p.grad.flatten(1) for p in held_weights(learner).values()], dim=1)
    moved = 0
    for seed in range(len(SEEDS)):
        encoder, head = alone(learner, seed, learner.head_of_[-1])
        weights = [*encoder.parameters(), *head.parameters()]
        g = flat_gradient(F.cross_entropy(head(encoder(batch.x[seed]), batch.noise[seed]), batch.y[seed]), weights)
        losses = [0.0, 0.0]
        for place, (x, notes) in zip(
            batch.past[0][seed].tolist(), memory_entries(learner, batch.past[0], seed), strict=True
        ):
            task = place // 10
            single = head if learner.head_of_[task] == learner.head_of_[-1] else alone(learner, seed, task)[1]
            losses[task] = losses[task] + F.cross_entropy(single(encoder(x)), notes["y"][None]) / (memory_batch or 10)
        G = torch.stack([flat_gradient(loss, weights) for loss in losses])
        against = bool((G @ g < 0).any())
        moved += against
        v = nnls(G.T.double().numpy(), -g.double().numpy())[0]
        expected = g + G.T @ torch.tensor(v + 0.2).float() if against else g
        torch.testing.assert_close(after[seed], expected, atol=1e-5 * float(g.norm()), rtol=1e-3)
    assert moved
