"""The baselines held to their papers: every formula once more by hand, and what each keeps counted one by one."""

import copy
import gc
import weakref

import hypothesis
import numpy as np
import pytest
import torch
import torch.nn.functional as F
from hypothesis import strategies as st
from scipy import stats
from scipy.optimize import nnls
from test_learners import TINY, blobs, captured, make, one_head, reachable_tensors, started

from prer import Stream, learn
from prer.address import Address
from prer.learners import AGEM, DER, ER, EWC, GEM, LEARNERS, LWF, SI, Learner, Replay
from prer.learners.agem import averaged
from prer.learners.base import Batch
from prer.learners.ewc import GRADIENTS_AT_ONCE, held_weights
from prer.learners.gem import project
from prer.learners.memory import SampleMemory, chosen, smallest
from prer.nn.heads import Head, Heads
from prer.nn.networks import Encoder
from prer.nn.stacked import floats, stack

BASELINES = sorted(set(LEARNERS) - {"naive", "joint", "prer"})
REHEARSE = {"lwf", "gem", "agem", "er", "replay", "der"}
TASKS = [[0, 1, 2], [3, 4], [5, 6, 7, 8], [9, 10]]  # heads of 3, 2, 4 and 2 outputs: the widest comes in the middle
SEEDS = (0, 4)


def vectors(tasks=TASKS, per_class=20):
    rng = np.random.default_rng(3)
    y = np.repeat(np.arange(11), per_class)
    return Stream.split(3 * rng.normal(size=(11, 5))[y] + rng.normal(size=(len(y), 5)), y, tasks=tasks)


def images(tasks=TASKS, per_class=20):
    rng = np.random.default_rng(4)
    y = np.repeat(np.arange(11), per_class)
    return Stream.split(rng.integers(0, 256, size=(len(y), 8, 8), dtype=np.uint8), y, tasks=tasks)


STREAMS = pytest.mark.parametrize("stream", [vectors(), images()], ids=["vectors", "images"])


def alone(learner, seed, head=-1):
    """The networks of one seed without any axis of seeds: the ordinary layers of torch."""
    stacked = learner.heads_[head]
    encoder = Encoder(learner.shape_, learner.embedding, learner.channels, learner.hidden)
    single = Head(learner.embedding, stacked.classes, learner.dropout)
    encoder.load_state_dict({name: t[seed] for name, t in learner.encoder_.state_dict().items()})
    single.load_state_dict({name: t[seed] for name, t in stacked.state_dict().items()})
    return encoder, single


def disturb(*modules, scale=0.1):
    """Weights elsewhere, so that what was noted and what is said now differ."""
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for module in modules:
            for p in module.parameters():
                p += scale * torch.randn(p.shape, generator=generator)


def midway(learner, stream, tasks=3):
    """A learner in the first step of a task, with that step's batch; its weights have moved since the task before."""
    for task in stream.tasks[: tasks - 1]:
        learner.learn(task)
    task = stream[tasks - 1]
    if isinstance(learner, LWF) and learner.form == "classic":
        learner.said_ = learner._record(task)
    learner.meet(task)
    disturb(learner.encoder_, learner.heads_)
    if learner.old_heads():
        learner.bank_ = Heads(learner._heads())
    address = learner.address_ / "test"
    batches = learner.batches(task.train_rows(learner.address_.seeds), address)
    past = tuple(t[:, 0] for t in learner.rehearse(batches, address))
    x, y = task.samples(batches[:, 0])
    noise = learner.dropout_noise(batches, address)[:, 0]
    return Batch(learner.inputs_(x), learner.numbers(task.outputs)[y], noise, past)


def new_loss(learner, batch, seed):
    """Cross-entropy of the new samples of one seed."""
    encoder, head = alone(learner, seed, learner.head_of_[-1])
    return F.cross_entropy(head(encoder(batch.x[seed]), batch.noise[seed]), batch.y[seed])


def remembered(learner, index, seed):
    """Every sample of the memory a step sees, one after another: its input, and everything noted."""
    for place in index[seed].tolist():
        notes = {name: t[seed, place] for name, t in learner.kept_.named_buffers()}
        yield learner.inputs_(notes["x"].expand(len(SEEDS), 1, *notes["x"].shape))[seed], notes


# -- EWC ---------------------------------------------------------------------------------------------------------


def information_by_hand(learner, x, y, seed):
    """For each weight the mean over samples of sum_y p(y) (d log p(y))^2, and the square of the mean gradient."""
    encoder, head = alone(learner, seed)
    named = {f"encoder.{n}": p for n, p in encoder.named_parameters()}
    named |= {f"heads.{learner.head_of_[-1]}.{n}": p for n, p in head.named_parameters()}
    total = {name: torch.zeros_like(p) for name, p in named.items()}
    mean = {name: torch.zeros_like(p) for name, p in named.items()}
    for one, label in zip(x[seed], y[seed].tolist(), strict=True):
        log_p = head(encoder(one.unsqueeze(0)))[0].log_softmax(-1)
        for c in range(head.classes):
            share = float(log_p[c].detach().exp()) if learner.fisher == "model" else float(c == label)
            gradients = torch.autograd.grad(log_p[c], list(named.values()), retain_graph=True)
            for name, g in zip(named, gradients, strict=True):
                total[name] += share * g.square() / x.shape[1]
                mean[name] += (c == label) * g / x.shape[1]
    return total, {name: g.square() for name, g in mean.items()}


@STREAMS
@pytest.mark.parametrize("fisher", ["model", "empirical"])
def test_information_is_gathered_sample_by_sample(stream, fisher):
    learner = started(EWC(**TINY | {"fisher": fisher}), stream, SEEDS)
    learner.learn(stream[0])
    rows = stream[0].train_rows(SEEDS)[:, : GRADIENTS_AT_ONCE + 7]
    x, y = stream[0].samples(rows)
    x = learner.inputs_(x)
    found = learner.information(x, y)
    assert found.keys() == held_weights(learner).keys()
    for seed in range(len(SEEDS)):
        expected, of_mean = information_by_hand(learner, x, y, seed)
        for name, value in expected.items():
            torch.testing.assert_close(found[name][seed], value, atol=1e-7, rtol=1e-4)
            assert not torch.allclose(found[name][seed], of_mean[name], atol=1e-7, rtol=0.1), name


@pytest.mark.parametrize("fisher", ["model", "empirical"])
def test_information_of_a_logistic_regression_is_the_textbooks(fisher):
    """log p(0|x) / p(1|x) = w x + b: the information of w_j is the mean of p (1 - p) x_j^2."""
    stream = vectors([[0, 1]])
    learner = started(EWC(**TINY | {"embedding": 2, "fisher": fisher}), stream, SEEDS)
    learner.encoder_ = stack(lambda: Encoder((5,), 2, (), ()), Address(SEEDS))  # one linear layer
    learner.meet(stream[0])
    first, second, last = learner.head_.linears()
    w = torch.randn(2, 5, generator=torch.Generator().manual_seed(0)) / 2
    with torch.no_grad():
        for p in learner.head_.parameters():
            p.zero_()
        first.weight[:, 0, 0], first.weight[:, 1, 0] = 1, -1  # z passes a ReLU as its positive and its negative part
        second.weight[:, 0, 0] = second.weight[:, 1, 1] = 1
        last.weight[:, 0, 0], last.weight[:, 0, 1] = 1, -1
        (linear,) = learner.encoder_.layers
        linear.weight[:, 0], linear.bias[:, 0] = w, 0.3
    x, y = stream[0].samples(stream[0].train_rows(SEEDS))
    x = learner.inputs_(x)
    found = learner.information(x, y)
    for seed in range(len(SEEDS)):
        z = x[seed] @ w[seed] + 0.3
        p = torch.sigmoid(z)
        share = p * (1 - p) if fisher == "model" else torch.where(y[seed] == 0, 1 - p, p).square()
        torch.testing.assert_close(
            found["encoder.layers.0.weight"][seed, 0], (share[:, None] * x[seed] ** 2).mean(0), atol=1e-6, rtol=1e-4
        )
        torch.testing.assert_close(found["encoder.layers.0.bias"][seed, 0], share.mean(), atol=1e-6, rtol=1e-4)
        assert found["encoder.layers.0.weight"][seed, 1].abs().max() == 0
        torch.testing.assert_close(found["heads.0.layers.2.bias"][seed], share.mean().expand(2), atol=1e-6, rtol=1e-4)
        hidden = torch.stack([z.clamp_min(0), (-z).clamp_min(0)], 1)
        expected = (share[:, None] * hidden**2).mean(0).expand(2, 2)
        torch.testing.assert_close(found["heads.0.layers.2.weight"][seed, :, :2], expected, atol=1e-6, rtol=1e-4)


class Noting(EWC):
    """Writes down the information and the weights of each task."""

    def information(self, x, y):
        found = super().information(x, y)
        self.noted_.append((found, {name: p.detach().clone() for name, p in held_weights(self).items()}))
        return found


SETTINGS = [{"form": "separate"}, {"form": "online", "fading": 0.3}, {"form": "online"}]


@pytest.mark.parametrize("stream", [vectors(), one_head()], ids=["heads", "one head"])
@pytest.mark.parametrize("settings", SETTINGS, ids=str)
def test_the_penalty_of_ewc_and_its_gradient_are_those_of_the_quadratics(stream, settings):
    learner = started(Noting(**TINY | settings | {"weight": 7.0, "samples": 30}), stream, SEEDS)
    learner.noted_ = []
    batch = midway(learner, stream)
    weights = held_weights(learner)
    first, second = learner.noted_

    def expected():
        """0.5 lambda sum F (theta - theta*)^2, written out task by task."""
        total = 0
        for name, p in weights.items():
            if name not in second[0]:
                continue
            if settings["form"] == "separate":
                springs = [(f[name], at[name]) for f, at in (first, second) if name in f]
            else:
                old = settings.get("fading", 1.0) * first[0][name] if name in first[0] else 0
                springs = [(old + second[0][name], second[1][name])]
            for importance, anchor in springs:
                total = total + 0.5 * 7 * (importance * (p - anchor) ** 2).flatten(1).sum(1)
        return total

    def found():
        return learner.loss(batch) - Learner.loss(learner, batch)

    shared = [p for name, p in weights.items() if name in second[0]]
    assert len(shared) == (len(weights) if len(learner.heads_) == 1 else len(list(learner.encoder_.parameters())))
    for mine, theirs in zip(
        torch.autograd.grad(found().sum(), shared), torch.autograd.grad(expected().sum(), shared), strict=True
    ):
        assert theirs.abs().max() > 0
        torch.testing.assert_close(mine, theirs, atol=1e-4 * float(theirs.abs().max()), rtol=1e-3)
    constant = expected() - found()
    disturb(learner.encoder_, scale=0.2)
    torch.testing.assert_close(expected() - found(), constant, atol=2e-3, rtol=2e-3)
    assert (expected() > 1.2 * constant).all()
    if settings["form"] == "online":
        torch.testing.assert_close(expected(), found(), atol=1e-4, rtol=1e-3)


# -- SI ----------------------------------------------------------------------------------------------------------


def bowl(learner, number):
    """A loss 0.5 |theta - c|^2 of all weights a task may move, and its centres; no sample has a part in it."""
    generator = torch.Generator().manual_seed(number)
    centres = {name: torch.randn(p.shape, generator=generator) for name, p in held_weights(learner).items()}

    def loss(self, batch):
        parts = [(p - centres[name]).square().flatten(1).sum(1) for name, p in held_weights(self).items()]
        return 0.5 * torch.stack(parts).sum(0)

    return loss, centres


@pytest.mark.parametrize(("lr", "epochs"), [(0.1, 3), (2e-3, 120)])
def test_the_path_integral_of_si_is_the_drop_of_the_loss(lr, epochs, monkeypatch):
    stream = vectors()
    settings = TINY | {"lr": lr, "epochs": epochs, "optimiser": "sgd", "damping": 0.01}
    beginner = started(SI(**settings), stream, SEEDS)
    beginner.meet(stream[0])
    start = {name: p.detach().clone() for name, p in held_weights(beginner).items()}
    loss, centres = bowl(beginner, 0)
    monkeypatch.setattr(Learner, "loss", loss)
    learner = started(SI(**settings), stream, SEEDS)
    learner.learn(stream[0])
    steps = epochs * (stream[0].train_rows(SEEDS).shape[1] // 16)
    for name, p in held_weights(learner).items():
        importance, anchor = learner.quadratic_.spring(name)
        assert torch.equal(anchor, p)
        omega = importance * ((p - start[name]).square() + 0.01)
        before, after = (t - centres[name] for t in (start[name], p.detach()))
        along = lr * before**2 * (1 - (1 - lr) ** (2 * steps)) / (1 - (1 - lr) ** 2)  # sum of lr g^2, g falling by 1-lr
        torch.testing.assert_close(omega, along, atol=1e-5, rtol=1e-3)
        # The drop is the limit of small steps: for a quadratic, what is missed is half the step.
        drop = 0.5 * before**2 - 0.5 * after**2
        torch.testing.assert_close(omega * (1 - lr / 2), drop, atol=1e-5, rtol=1e-3)


def test_the_penalty_of_si_is_no_part_of_its_path(monkeypatch):
    stream, lr = vectors(), 0.05
    learner = started(SI(**TINY | {"lr": lr, "optimiser": "sgd", "damping": 0.1, "weight": 2.0}), stream, SEEDS)
    beginner = started(SI(**TINY), stream, SEEDS)
    beginner.meet(stream[0])
    monkeypatch.setattr(Learner, "loss", bowl(beginner, 0)[0])
    learner.learn(stream[0])
    beginner.meet(stream[1])
    loss, centres = bowl(beginner, 1)
    monkeypatch.setattr(Learner, "loss", loss)
    springs = {name: learner.quadratic_.spring(name) for name in centres}
    start = {name: p.detach().clone() for name, p in learner.encoder_.named_parameters()}
    learner.learn(stream[1])
    steps = 2 * (stream[1].train_rows(SEEDS).shape[1] // 16)
    for name, begin in start.items():
        importance, anchor = (t.double() for t in springs[f"encoder.{name}"])
        theta, omega = begin.double(), torch.zeros_like(begin.double())
        for _ in range(steps):
            own = theta - centres[f"encoder.{name}"]
            step = -lr * (own + 2 * 2.0 * importance * (theta - anchor))
            omega, theta = omega - own * step, theta + step
        torch.testing.assert_close(learner.encoder_.get_parameter(name).double(), theta, atol=1e-5, rtol=1e-4)
        expected = importance + omega.clamp_min(0) / ((theta - begin) ** 2 + 0.1)
        found = learner.quadratic_.spring(f"encoder.{name}")[0]
        torch.testing.assert_close(found.double(), expected, atol=1e-4, rtol=1e-3)


def test_the_penalty_of_si_reaches_the_weights():
    stream = vectors()
    learner = started(SI(**TINY | {"weight": 3.0}), stream, SEEDS)
    batch = midway(learner, stream)
    weights = {f"encoder.{name}": p for name, p in learner.encoder_.named_parameters()}
    penalty = learner.loss(batch) - Learner.loss(learner, batch)
    gradients = torch.autograd.grad(penalty.sum(), list(weights.values()))
    for (name, p), g in zip(weights.items(), gradients, strict=True):
        importance, anchor = learner.quadratic_.spring(name)
        assert (importance >= 0).all()
        torch.testing.assert_close(g, 2 * 3.0 * importance * (p - anchor), atol=1e-5, rtol=1e-4)


# -- GEM and A-GEM -----------------------------------------------------------------------------------------------


def problems(kind, count, rng, most=50):
    """Gradients g [count, P] and the constraints' G [count, T, P] of as many problems of one size."""
    T = int(rng.integers(1, most + 1))
    P = int(rng.integers(2, 2 + T // 2 + 1)) if kind == "more constraints than weights" else int(rng.integers(T, 90))
    G = rng.normal(size=(count, T, P)) + rng.normal(size=(count, 1, P)) / 2
    if kind == "duplicate":
        G = G[:, rng.integers(0, T, size=T)]
    if kind == "nearly parallel":
        G = G[:, rng.integers(0, T, size=T)] + 1e-4 * rng.normal(size=G.shape)
    if kind == "opposite":
        G[:, T // 2 : 2 * (T // 2)] = -G[:, : T // 2]
    if kind == "zero rows":
        G[:, rng.random(T) < 0.4] = 0
    return rng.normal(size=(count, P)), G * 10 ** rng.uniform(-3, 3, size=(count, T, 1))


def projected(g, G):
    """The nearest vector by another road: nonnegative least squares (Lawson and Hanson), one problem at a time."""
    return np.stack([one + rows.T @ nnls(rows.T, -one, maxiter=5000)[0] for one, rows in zip(g, G, strict=True)])


def assert_projected(g, G, scale, strong=1.0):
    x = project(torch.tensor(scale * g), torch.tensor(scale * strong * G)).numpy() / scale
    sizes = np.linalg.norm(g, axis=1)
    norms = np.maximum(np.linalg.norm(G, axis=2), 1e-300)
    # Relative to |g|: where only 0 is allowed, x is the rounding of g, and a share of |x| says nothing.
    assert ((G @ x[..., None])[..., 0] / norms >= -1e-6 * sizes[:, None]).all()
    assert (np.linalg.norm(x - projected(g, G), axis=1) <= 1e-6 * sizes).all()


KINDS = [
    "plain", "duplicate", "nearly parallel", "opposite", "zero rows", "more constraints than weights",
]  # fmt: skip


@pytest.mark.parametrize("most", [6, 50])  # few are solved in another way
@pytest.mark.parametrize("kind", KINDS)
def test_the_projection_is_that_of_a_solver_for_any_problem(kind, most):
    rng = np.random.default_rng(KINDS.index(kind))
    for _ in range(12):
        assert_projected(*problems(kind, 14, rng, most), 1.0)  # 6 kinds of 168


@pytest.mark.parametrize(
    ("scale", "strong"), [(1e-14, 1.0), (1e-8, 1.0), (1e8, 1.0), (1e14, 1.0), (1.0, 1e-12), (1e-8, 1e12)]
)
def test_the_projection_has_no_scale_of_its_own(scale, strong):
    rng = np.random.default_rng(9)
    for kind in KINDS:
        for most in (6, 50):
            assert_projected(*problems(kind, 6, rng, most), scale, strong)


def test_a_gradient_that_hurts_nobody_stays_bit_for_bit():
    rng = np.random.default_rng(0)
    g = rng.normal(size=(30, 12))
    G = rng.normal(size=(30, 5, 12))
    G *= np.where((G @ g[..., None]) < 0, -1, 1)
    G[:10, 0] *= -1  # ten are hurt by one, in the same batch
    g, G = torch.tensor(g, dtype=torch.float32), torch.tensor(G, dtype=torch.float32)
    for margin in (0.0, 0.5):
        x = project(g, G, margin)
        assert x.dtype == torch.float32
        assert torch.equal(x[10:], g[10:])
        assert not (x[:10] == g[:10]).all(1).any()


@hypothesis.settings(max_examples=100, deadline=None, derandomize=True, database=None)
@hypothesis.given(
    kind=st.sampled_from(KINDS),
    most=st.sampled_from([6, 20]),  # solved by enumeration, and by pivoting
    powers=st.lists(st.integers(-12, 12), min_size=4, max_size=4),
    margin=st.sampled_from([0.0, 0.5]),
    draw=st.integers(0, 2**32 - 1),
)
def test_a_seed_is_projected_alike_alone_and_among_any_others(kind, most, powers, margin, draw):
    rng = np.random.default_rng(draw)
    g, G = map(torch.tensor, problems(kind, 7, rng, most))
    g[:4] *= 10.0 ** torch.tensor(powers).unsqueeze(1)  # neighbours of quite other sizes
    G[4] *= torch.where(G[4] @ g[4] < 0, -1.0, 1.0).unsqueeze(1)  # one that has nothing to solve
    G[5, 0], g[6] = torch.nan, torch.inf  # and two that have diverged
    together = project(g, G, margin)
    for seed in range(5):
        single = project(g[seed : seed + 1], G[seed : seed + 1], margin)[0]
        # Products of several matrices may round otherwise than those of one.
        torch.testing.assert_close(together[seed], single, rtol=1e-6, atol=1e-6 * float(g[seed].norm()))


def test_the_margin_is_added_to_every_multiplier():
    rng = np.random.default_rng(2)
    g, G = rng.normal(size=(1, 9)), rng.normal(size=(1, 4, 9))
    v, _ = nnls(G[0].T, -g[0])
    assert (v > 0).any()
    assert (v == 0).any()
    x = project(torch.tensor(g), torch.tensor(G), 0.7)
    np.testing.assert_allclose(x[0], g[0] + G[0].T @ (v + 0.7), atol=1e-9)


def flat_gradient(loss, parameters):
    found = torch.autograd.grad(loss, parameters, allow_unused=True)
    return torch.cat([torch.zeros(p.numel()) if g is None else g.flatten() for p, g in zip(parameters, found)])  # noqa: B905


@pytest.mark.parametrize("stream", [vectors(), one_head()], ids=["heads", "one head"])
@pytest.mark.parametrize("memory_batch", [8, 0])
@pytest.mark.parametrize("at_once", [True, False])
def test_a_step_of_gem_is_projected_on_the_gradients_of_all_memories(stream, memory_batch, at_once, monkeypatch):
    monkeypatch.setattr("prer.learners.gem.at_once", lambda index: at_once)
    learner = started(GEM(**TINY | {"size": 10, "memory_batch": memory_batch, "margin": 0.2}), stream, SEEDS)
    batch = midway(learner, stream)
    assert batch.past[0].shape == (2, 2 * (memory_batch or 10))
    learner.loss(batch).sum().backward()
    learner.before_step()
    after = torch.cat([p.grad.flatten(1) for p in held_weights(learner).values()], dim=1)
    moved = 0
    for seed in range(len(SEEDS)):
        encoder, head = alone(learner, seed, learner.head_of_[-1])
        weights = [*encoder.parameters(), *head.parameters()]
        g = flat_gradient(F.cross_entropy(head(encoder(batch.x[seed]), batch.noise[seed]), batch.y[seed]), weights)
        losses = [0.0, 0.0]
        for place, (x, notes) in zip(
            batch.past[0][seed].tolist(), remembered(learner, batch.past[0], seed), strict=True
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


def test_a_part_against_the_memory_is_taken_away_and_no_other():
    reference = torch.tensor([[1.0, 1.0], [1.0, 1.0], [0.0, 0.0], [0.0, 2.0]])
    g = torch.tensor([[1.0, -3.0], [3.0, -1.0], [1.0, -3.0], [5.0, -1.0]])
    x = averaged(g, reference)
    assert torch.equal(x[1:3], g[1:3])
    torch.testing.assert_close(x, torch.tensor([[2.0, -2.0], [3.0, -1.0], [1.0, -3.0], [5.0, 0.0]]))


@pytest.mark.parametrize("stream", [vectors(), one_head()], ids=["heads", "one head"])
def test_a_step_of_agem_loses_its_part_against_the_whole_memory(stream):
    moved = 0
    learner = started(AGEM(**TINY | {"size": 10, "memory_batch": 8}), stream, SEEDS)
    batch = midway(learner, stream)
    current = learner.head_of_[-1]
    learner.loss(batch).sum().backward()
    learner.before_step()
    others = [h for h in range(len(learner.heads_)) if h != current]
    assert all(float(p.grad[:, others].abs().sum()) == 0 for p in learner.bank_.parameters())
    for seed in range(len(SEEDS)):
        encoder, head = alone(learner, seed, current)
        weights = [*encoder.parameters(), *head.parameters()]
        g = flat_gradient(F.cross_entropy(head(encoder(batch.x[seed]), batch.noise[seed]), batch.y[seed]), weights)
        loss = torch.zeros(())
        for x, notes in remembered(learner, batch.past[0], seed):
            which = int(notes["head"])
            single = head if which == current else alone(learner, seed, which)[1]
            loss = loss + F.cross_entropy(single(encoder(x)), notes["y"][None]) / 8
        r = flat_gradient(loss, weights)
        moved += bool(g @ r < 0)
        expected = g - (g @ r) / (r @ r) * r if g @ r < 0 else g
        bank = learner.bank_
        of_head = [
            t.grad[seed, current][: learner.head_.classes if i == 2 else None].flatten()
            for i in range(3)
            for t in (bank.weights[i], bank.biases[i])
        ]
        after = torch.cat([*(p.grad[seed].flatten() for p in learner.encoder_.parameters()), *of_head])
        torch.testing.assert_close(after, expected, atol=1e-5 * float(g.norm()), rtol=1e-3)
    assert moved


# -- what is held of old samples ---------------------------------------------------------------------------------


@STREAMS
def test_lwf_holds_the_predictions_noted_of_kept_samples(stream):
    learner = started(LWF(**TINY | {"size": 12, "memory_batch": 9, "weight": 0.7, "softness": 3.0}), stream, SEEDS)
    batch = midway(learner, stream)
    assert learner.kept_.get_buffer("logits").shape == (2, 24, 3)
    found = learner.loss(batch)
    for seed in range(len(SEEDS)):
        expected = new_loss(learner, batch, seed)
        for x, notes in remembered(learner, batch.past[0], seed):
            encoder, head = alone(learner, seed, int(notes["head"]))
            now, before = head(encoder(x))[0], notes["logits"][: head.classes]
            kl = F.kl_div((now / 3).log_softmax(-1), (before / 3).softmax(-1), reduction="sum")
            expected = expected + 0.7 * 9 * kl / 9
        torch.testing.assert_close(found[seed], expected, atol=1e-5, rtol=1e-4)


@STREAMS
def test_lwf_holds_what_old_heads_said_of_the_new_samples(stream):
    learner = started(LWF(**TINY | {"form": "classic", "weight": 0.7, "softness": 3.0}), stream, SEEDS)
    batch = midway(learner, stream)
    said = batch.past[0]
    found = learner.loss(batch)
    for seed in range(len(SEEDS)):
        expected = new_loss(learner, batch, seed)
        for t in range(2):
            encoder, head = alone(learner, seed, t)
            now, before = head(encoder(batch.x[seed])), said[seed, :, t, : head.classes]
            kl = F.kl_div((now / 3).log_softmax(-1), (before / 3).softmax(-1), reduction="batchmean")
            expected = expected + 0.7 * 9 * kl
        torch.testing.assert_close(found[seed], expected, atol=1e-5, rtol=1e-4)


@STREAMS
def test_what_lwf_holds_is_said_by_the_old_network_of_the_very_same_samples(stream, monkeypatch):
    learner = started(LWF(**TINY | {"form": "classic"}), stream, SEEDS)
    learner.learn(stream[0])
    learner.learn(stream[1])
    old = copy.deepcopy((learner.encoder_, learner.heads_))
    _, _, (rows, _, _, said), _ = captured(learner, stream[2], monkeypatch)["classifier"]
    assert said.shape == (*rows.shape, 2, 3)
    for step in range(rows.shape[1]):
        z = old[0](learner.inputs_(stream[2].x[rows[:, step]]))
        for t, width in enumerate((3, 2)):
            torch.testing.assert_close(said[:, step, :, t, :width], old[1][t](z), atol=1e-5, rtol=1e-4)
    assert learner.said_ is None
    bank = sum(p[0].numel() for p in Heads([*learner.heads_]).parameters())
    assert learner.transient_floats_ == stream[2].train_rows(SEEDS).shape[1] * 2 * 3 + bank
    assert learner.memory_floats() == learner.memory_samples() == 0


@pytest.mark.parametrize("distance", ["cosine", "l2"])
def test_er_holds_embeddings_where_they_were(distance):
    stream = vectors()
    settings = {"size": 12, "memory_batch": 9, "weight": 0.7, "distance": distance}
    learner = started(ER(**TINY | settings), stream, SEEDS)
    batch = midway(learner, stream)
    found = learner.loss(batch)
    for seed in range(len(SEEDS)):
        expected = new_loss(learner, batch, seed)
        for x, notes in remembered(learner, batch.past[0], seed):
            z, before = alone(learner, seed)[0](x)[0], notes["z"]
            cosine = 1 - (z @ before) / (z.norm() * before.norm())
            expected = expected + 0.7 * (cosine if distance == "cosine" else ((z - before) ** 2).sum()) / 9
        torch.testing.assert_close(found[seed], expected, atol=1e-5, rtol=1e-4)


@STREAMS
@pytest.mark.parametrize("selection", ["reservoir", "balanced"])
def test_replay_asks_each_old_sample_among_the_classes_of_its_head(stream, selection):
    settings = {"size": 30, "memory_batch": 9, "weight": 0.7, "selection": selection}
    learner = started(Replay(**TINY | settings), stream, SEEDS)
    batch = midway(learner, stream)
    index, noise = batch.past
    found = learner.loss(batch)
    for seed in range(len(SEEDS)):
        expected = new_loss(learner, batch, seed)
        for i, (x, notes) in enumerate(remembered(learner, index, seed)):
            encoder, head = alone(learner, seed, int(notes["head"]))
            expected = expected + 0.7 * F.cross_entropy(head(encoder(x), noise[seed, i]), notes["y"][None]) / 9
        torch.testing.assert_close(found[seed], expected, atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("label_weight", [0.0, 0.3])
@pytest.mark.parametrize("tasks", [2, 3, 4])
def test_der_holds_logits_of_some_and_labels_of_others(tasks, label_weight):
    stream = vectors()
    settings = {"size": 30, "memory_batch": 9, "weight": 0.7, "label_weight": label_weight}
    learner = started(DER(**TINY | settings), stream, SEEDS)
    batch = midway(learner, stream, tasks)
    index, noise = batch.past
    found = learner.loss(batch)
    for seed in range(len(SEEDS)):
        expected = new_loss(learner, batch, seed)
        for i, (x, notes) in enumerate(remembered(learner, index, seed)):
            encoder, head = alone(learner, seed, int(notes["head"]))
            logits = head(encoder(x), None if i < 9 else noise[seed, i - 9])  # what is compared has no dropout
            changed = ((logits[0] - notes["logits"][: head.classes]) ** 2).sum()
            labels = F.cross_entropy(logits, notes["y"][None])
            expected = expected + (0.7 * changed if i < 9 else label_weight * labels) / 9
        torch.testing.assert_close(found[seed], expected, atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("name", sorted(REHEARSE & {"lwf", "er", "der", "replay"}))
def test_the_gradient_of_what_is_held_reaches_the_encoder(name):
    stream = vectors()
    learner = started(make(name), stream, SEEDS)
    batch = midway(learner, stream, 4)
    held = learner.loss(batch) - Learner.loss(learner, batch)
    gradients = torch.autograd.grad(held.sum(), list(learner.encoder_.parameters()))
    assert all((g.flatten(1).abs().amax(1) > 1e-6).all() for g in gradients)


@pytest.mark.parametrize("name", sorted(REHEARSE - {"gem"}))
@pytest.mark.parametrize("stream", [vectors(), one_head()], ids=["heads", "one head"])
def test_what_is_noted_is_what_the_learner_says_when_the_task_ends(name, stream):
    learner = started(make(name, size=9), stream, SEEDS)
    learner.learn(stream[0])
    with torch.no_grad():
        z = learner.encoder_(learner.inputs_(learner.kept_.get_buffer("x")))
        logits = learner.heads_[0](z)
    notes = dict(learner.kept_.named_buffers())
    assert len(learner.kept_) == 9
    torch.testing.assert_close(notes.get("z", z), z, atol=1e-5, rtol=1e-4)
    torch.testing.assert_close(notes.get("logits", logits), logits, atol=1e-5, rtol=1e-4)
    for seed, number in enumerate(SEEDS if "y" in notes else ()):
        rows = stream[0].train_rows(SEEDS)[seed]
        for x, y in zip(notes["x"][seed], notes["y"][seed], strict=True):
            (same,) = [int(r) for r in rows if torch.equal(stream[0].x[r], x)]
            assert int(stream[0].y[same]) == int(y), number


# -- all heads as one --------------------------------------------------------------------------------------------


def three_heads(dropout=0.3):
    widths = (2, 5, 3)
    return [stack(lambda k=k: Head(12, k, dropout), Address(SEEDS) / k) for k in widths]


@pytest.mark.parametrize("noisy", [False, True])
def test_heads_answer_each_sample_as_its_own_head_does(noisy):
    heads = three_heads()
    bank = Heads(heads)
    place = Address(SEEDS) / "test"
    z = (place / "z").normal(20, 12).requires_grad_()
    which = ((place / "which").uniform(20) * 3).long()
    assert set(which.flatten().tolist()) == {0, 1, 2}
    noise = (place / "noise").uniform(20, sum(Head.widths(12))) if noisy else None
    found = bank(z, which, noise)
    masked = bank.masked(found, which)
    total = torch.zeros(())
    for s in range(len(SEEDS)):
        for b in range(20):
            head = heads[int(which[s, b])]
            alone = head(z, noise)[s, b]
            torch.testing.assert_close(found[s, b, : head.classes], alone, atol=1e-6, rtol=1e-5)
            assert (found[s, b, head.classes :] == 0).all()
            assert torch.equal(masked[s, b, : head.classes], found[s, b, : head.classes])
            assert (masked[s, b, head.classes :] == -torch.inf).all()
            total = total + alone.square().sum() / (b + 1)
    for t, head in enumerate(heads):
        torch.testing.assert_close(bank.of(t, z, noise), head(z, noise), atol=1e-6, rtol=1e-5)
    mine = (found.square().sum(-1) / torch.arange(1, 21)).sum()
    parameters = [p for head in heads for layer in head.linears() for p in (layer.weight, layer.bias)]
    of_z, *theirs = torch.autograd.grad(total, [z, *parameters])
    stacked = [p for pair in zip(bank.weights, bank.biases, strict=True) for p in pair]
    of_z_too, *ours = torch.autograd.grad(mine, [z, *stacked])
    torch.testing.assert_close(of_z_too, of_z, atol=1e-6, rtol=1e-4)
    for i, g in enumerate(theirs):
        part = ours[i % 6][:, i // 6]
        torch.testing.assert_close(part[:, : g.shape[1]], g, atol=1e-6, rtol=1e-4)
        assert part[:, g.shape[1] :].abs().sum() == 0


def test_heads_give_back_exactly_what_they_learned():
    heads = three_heads()
    before = copy.deepcopy(heads)
    bank = Heads(heads)
    bank.give_back()
    for head, old in zip(heads, before, strict=True):
        assert all(map(torch.equal, head.state_dict().values(), old.state_dict().values()))
    z = (Address(SEEDS) / "z").normal(20, 12)
    which = torch.tensor([0, 2] * 10).expand(2, -1)  # the head in the middle has no sample
    optimiser = torch.optim.Adam(bank.parameters(), 0.1, fused=True)
    for _ in range(3):
        optimiser.zero_grad()
        bank(z, which).square().sum().backward()
        optimiser.step()
    answers = bank(z, which)
    for head, old in zip(heads, before, strict=True):  # nothing is written before it is asked for
        assert all(map(torch.equal, head.state_dict().values(), old.state_dict().values()))
    bank.give_back()
    for t in (0, 2):
        assert not torch.equal(heads[t].layers[0].weight, before[t].layers[0].weight)
        torch.testing.assert_close(heads[t](z)[:, t // 2 :: 2], answers[:, t // 2 :: 2, : heads[t].classes])
        for i, layer in enumerate(heads[t].linears()):
            assert torch.equal(layer.weight, bank.weights[i][:, t, : layer.weight.shape[1]])
            assert torch.equal(layer.bias, bank.biases[i][:, t, : layer.bias.shape[1]])
    assert all(map(torch.equal, heads[1].state_dict().values(), before[1].state_dict().values()))


@pytest.mark.parametrize("name", BASELINES)
def test_old_heads_move_only_where_old_samples_are_answered(name):
    stream = vectors()
    learner = started(make(name), stream, SEEDS)
    learner.learn(stream[0])
    old = copy.deepcopy(learner.heads_[0])
    learner.learn(stream[1])
    still = all(map(torch.equal, old.state_dict().values(), learner.heads_[0].state_dict().values()))
    assert still == (name not in {"lwf", "replay", "der", "dgr"})
    assert learner.bank_ is None


# -- memory ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", sorted(set(LEARNERS) - {"joint"}))
def test_what_is_kept_is_a_copy_and_the_stream_can_go(name):
    stream = vectors()
    learner = started(make(name), stream, SEEDS)
    for task in stream:
        learner.learn(task)
    before = {key: t.clone() for key, t in learner.state().items()}
    of_stream = {t.untyped_storage().data_ptr() for task in stream for t in (task.x, task.y)}
    held = reachable_tensors(learner)
    assert not of_stream & {t.untyped_storage().data_ptr() for t in held}
    for part in learner.memory().values():
        for key, t in part.state_dict().items():
            assert t.untyped_storage().nbytes() == t.nbytes, key  # nor is it a part of something larger
    for task in stream:
        task.x.fill_(7)
        task.y.fill_(0)
    assert all(torch.equal(t, before[key]) for key, t in learner.state().items())
    gone = weakref.ref(stream[0].x)
    del stream, task, held
    gc.collect()
    assert gone() is None


# What is kept of one sample of five numbers beyond these, for a memory whose widest head has 4 outputs.
NOTES = {"lwf": 1 + 4, "gem": 1, "agem": 2, "er": 16, "replay": 4, "der": 3 + 4}


@pytest.mark.parametrize("name", sorted(REHEARSE))
@pytest.mark.parametrize("size", [0, 1, 10, 60])
def test_memory_is_bounded_and_counted_to_the_last_number(name, size):
    stream = vectors()
    learner = make(name, size=size, epochs=0)
    result = learn(stream, learner, seeds=SEEDS, device="cpu")
    trained = [16 * len(task.labels) for task in stream]  # 80 % of 20
    each = [min(size, n) for n in trained]
    in_all = [min(size, int(n)) for n in np.cumsum(trained)]
    expected = in_all if name in ("replay", "der") else np.cumsum(each).tolist()
    assert result.memory_samples == expected
    assert result.memory_floats[-1] == expected[-1] * (5 + NOTES[name])
    really = [t for part in learner.memory().values() for t in part.state_dict().values()]
    assert sum(t.numel() for t in really) == len(SEEDS) * result.memory_floats[-1]
    assert all(t.shape[:2] == (len(SEEDS), expected[-1]) for t in really)


@pytest.mark.parametrize("name", ["ewc", "si"])
def test_a_spring_is_two_numbers_for_each_weight(name):
    learner = make(name)
    result = learn(vectors(), learner, seeds=SEEDS, device="cpu")
    heads = [floats(head) for head in learner.heads_]
    assert result.memory_floats == [2 * (floats(learner.encoder_) + sum(heads[: t + 1])) for t in range(4)]
    assert result.memory_samples == [0] * 4
    if name == "si":
        assert result.transient_floats == [4 * (floats(learner.encoder_) + head) for head in heads]


def numbered(sizes, tasks):
    """Samples that are their own numbers."""
    y = np.repeat(np.arange(len(sizes)), sizes)
    return Stream.split(np.arange(len(y), dtype=float)[:, None] + np.zeros((1, 2)), y, tasks=tasks)


@pytest.mark.parametrize("name", ["replay", "der"])
def test_a_reservoir_keeps_every_sample_ever_seen_with_the_same_chance(name):
    stream = numbered([5, 5, 20, 20, 10, 10], [[0, 1], [2, 3], [4, 5]])
    seeds, size = tuple(range(160)), 9
    learner = started(make(name, size=size, epochs=0, embedding=2, hidden=(1,)), stream, seeds)
    rows = []
    for task in stream:
        learner.learn(task)
        rows.append(task.train_rows(seeds))
    rows = torch.cat(rows, dim=1)  # where a sample came in the stream [S, N], whichever it was
    kept = learner.kept_.get_buffer("x")[..., 0].round().long()
    assert all(len(set(row.tolist())) == size for row in kept)
    hits = (rows.unsqueeze(2) == kept.unsqueeze(1)).any(2)
    assert (hits.sum(1) == size).all()
    counts, N = hits.sum(0).double().numpy(), rows.shape[1]
    expected = len(seeds) * size / N
    statistic = ((counts - expected) ** 2 / expected).sum() * (N - 1) / (N - size)  # drawn without replacement
    low, high = stats.chi2.ppf([1e-4, 1 - 1e-4], N - 1)
    assert low < statistic < high, (low, statistic, high)


def test_a_balanced_memory_keeps_as_many_of_each_class():
    stream = numbered([40, 10, 30, 20, 4, 50], [[0, 1], [2, 3], [4, 5]])
    learner = started(make("replay", size=35, selection="balanced", epochs=0), stream, SEEDS)
    for task, limit in zip(stream, (17, 8, 5), strict=True):
        learner.learn(task)
        sizes = [min(limit, n) for n in (32, 8, 24, 16, 3, 40)[: learner.tasks_[-1].stop]]
        for seed in range(len(SEEDS)):
            kept = learner.kept_.get_buffer("x")[seed, :, 0].round().numpy()
            of_class = np.searchsorted([40, 50, 80, 100, 104], kept, side="right")
            assert np.bincount(of_class, minlength=len(sizes)).tolist() == sizes
            assert len(set(kept.tolist())) == len(kept) == learner.memory_samples() <= 35


def test_the_smallest_of_each_group_are_found():
    key = torch.tensor([[0.5, 0.1, 0.9, 0.3, 0.2, 0.8], [0.1, 0.2, 0.3, 0.4, 0.5, 0.6]])
    group = torch.tensor([[0, 2, 0, 2, 2, 0], [2, 2, 2, 0, 0, 0]])
    assert [set(row.tolist()) for row in smallest(key, 2, group)] == [{0, 5, 1, 4}, {3, 4, 0, 1}]
    next_to = torch.tensor([[0, 1, 0, 1, 1, 0]] * 2)  # keys of one group reach beyond those of the next
    assert [set(row.tolist()) for row in smallest(key, 2, next_to)] == [{0, 5, 1, 4}, {0, 2, 1, 3}]
    assert [set(row.tolist()) for row in smallest(key, 3)] == [{1, 4, 3}, {0, 1, 2}]
    assert smallest(key, 0).shape == (2, 0)
    assert smallest(key, 99, group).shape == (2, 6)


def test_chosen_rows_are_different_ones_of_the_training_part():
    task = vectors()[0]
    rows = chosen(task, 10, Address(SEEDS) / "x")
    assert rows.shape == (2, 10)
    for mine, all_of_them, tested in zip(rows, task.train_rows(SEEDS), task.test_rows(SEEDS), strict=True):
        assert len(set(mine.tolist())) == 10
        assert set(mine.tolist()) <= set(all_of_them.tolist())
        assert not set(mine.tolist()) & set(tested.tolist())
    assert not torch.equal(rows, chosen(task, 10, Address(SEEDS) / "y"))
    assert chosen(task, 999, Address(SEEDS)).shape == task.train_rows(SEEDS).shape
    assert chosen(task, 0, Address(SEEDS)).shape == (2, 0)


def test_a_memory_holds_copies_and_pads_what_becomes_wider():
    memory, x, wide = SampleMemory(), torch.randn(2, 3, 4), torch.randn(2, 5, 6)
    assert len(memory) == 0
    memory.add(x=x, logits=x)
    noted = x.clone()
    x.zero_()
    assert torch.equal(memory.get_buffer("x"), noted)
    memory.add(x=torch.ones(2, 5, 4), logits=wide)
    assert len(memory) == 8
    assert torch.equal(memory.get_buffer("logits")[:, :3], F.pad(noted, (0, 2)))
    assert torch.equal(memory.get_buffer("logits")[:, 3:], wide)
    memory.add(x=torch.ones(2, 1, 4), logits=torch.ones(2, 1, 2))
    assert torch.equal(memory.get_buffer("logits")[:, 8], torch.tensor([1.0, 1, 0, 0, 0, 0]).expand(2, -1))
    index = torch.tensor([[1, 3], [0, 2]])
    assert torch.equal(memory.at(index)["x"], torch.stack([memory.get_buffer("x")[s, index[s]] for s in range(2)]))
    memory.keep(index)
    assert len(memory) == 2
    assert floats(memory) == 2 * (4 + 6)
    assert torch.equal(memory.get_buffer("x")[1], noted[1, [0, 2]])


def test_every_sample_of_a_memory_is_drawn_as_often():
    memory = SampleMemory()
    memory.add(x=torch.zeros(2, 7, 1))
    drawn = memory.draw(50, 140, Address(SEEDS) / "draw")
    assert drawn.shape == (2, 50, 140)
    for row in drawn:
        assert stats.chisquare(np.bincount(row.flatten().numpy(), minlength=7)).pvalue > 1e-4
    assert not torch.equal(drawn[0], drawn[1])


# -- does it do anything -----------------------------------------------------------------------------------------

OFF = {
    "lwf": [{"weight": 0.0}, {"size": 0}, {"weight": 0.0, "form": "classic"}],
    "ewc": [{"weight": 0.0}],
    "si": [{"weight": 0.0}],
    "gem": [{"size": 0}],
    "agem": [{"size": 0}],
    "er": [{"weight": 0.0}, {"size": 0}],
    "replay": [{"weight": 0.0}, {"size": 0}, {"size": 0, "selection": "balanced"}],
    "der": [{"weight": 0.0, "label_weight": 0.0}, {"size": 0}],
    "dgr": [{"weight": 0.0}],
}


def networks(learner, result):
    named = {"encoder": learner.encoder_, "heads": learner.heads_, "inputs": learner.inputs_}
    state = {f"{part}.{key}": t for part, module in named.items() for key, t in module.state_dict().items()}
    return state | {"matrix": torch.from_numpy(np.nan_to_num(result.matrix))}


def trained(name, stream, **settings):
    # Warm enough that the tasks get in each other's way: a projection has something to do.
    generator = {"epochs_generator": 10} if name == "dgr" else {}
    learner = LEARNERS[name](**TINY | generator | {"epochs": 4, "lr": 5e-3} | settings)
    return networks(learner, learn(stream, learner, seeds=2, device="cpu"))


@pytest.mark.parametrize("stream", [blobs(), one_head()], ids=["heads", "one head"])
@pytest.mark.parametrize("name", BASELINES)
def test_without_its_strength_a_method_is_naive_and_with_it_is_not(name, stream):
    naive = trained("naive", stream)
    for settings in OFF[name]:
        off = trained(name, stream, **settings)
        assert off.keys() == naive.keys()
        assert all(torch.equal(off[key], naive[key]) for key in naive), settings
    on = trained(name, stream)
    for key in naive:
        if key.startswith("encoder"):
            assert not torch.equal(on[key], naive[key]), key


CHOICES = [
    ("lwf", {"form": "classic"}), ("lwf", {"softness": 4.0}), ("lwf", {"memory_batch": 8}),
    ("ewc", {"form": "online"}), ("ewc", {"fisher": "empirical"}), ("ewc", {"samples": 5}), ("si", {"damping": 0.1}),
    ("gem", {"margin": 0.0}), ("gem", {"memory_batch": 0}), ("agem", {"memory_batch": 8}), ("er", {"distance": "l2"}),
    ("replay", {"selection": "balanced", "size": 30}), ("der", {"label_weight": 0.0}), ("der", {"weight": 0.0}),
]  # fmt: skip


@pytest.mark.parametrize(("name", "settings"), CHOICES, ids=lambda v: str(v))
def test_every_choice_makes_a_difference(name, settings):
    usual, other = (trained(name, blobs(), **more) for more in ({}, settings))
    assert not torch.equal(usual["encoder.layers.0.layer.weight"], other["encoder.layers.0.layer.weight"])


def test_a_balanced_memory_with_fewer_places_than_classes_still_takes_new_ones():
    rng = np.random.default_rng(0)
    stream = Stream.split(rng.normal(size=(160, 4)), np.repeat(np.arange(8), 20))
    seen = set()
    for seed in range(20):
        learner = started(Replay(**TINY | {"size": 3, "selection": "balanced", "epochs": 0}), stream, (seed,))
        for task in stream:
            learner.learn(task)
            assert len(learner.kept_) <= 3
        seen |= set(learner.kept_.get_buffer("group")[0].tolist())
    assert seen == set(range(8))
