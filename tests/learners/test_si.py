"""SI: its path integral and its penalty, by hand."""

import pytest
import torch
from support.learners import SEEDS, TINY, started, vectors
from support.one_seed import midway

from prer.learners import SI, Learner
from prer.learners.ewc import held_weights


def bowl(learner, number):
    """A loss 0.5 |theta - c|^2 of all weights that a task may move, and its centres; it depends on no sample."""
    generator = torch.Generator().manual_seed(number)
    centres = {name: torch.randn(p.shape, generator=generator) for name, p in held_weights(learner).items()}

    def loss(self, batch):
        parts = [(p - centres[name]).square().flatten(1).sum(1) for name, p in held_weights(self).items()]
        return 0.5 * torch.stack(parts).sum(0)

    return loss, centres


@pytest.mark.parametrize(("lr", "epochs"), [(0.1, 3), (2e-3, 120)])
def test_the_path_integral_is_the_drop_of_the_loss(lr, epochs, monkeypatch):
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
        importance, anchor = learner.quadratic_.spring(name, p)
        assert torch.equal(anchor, p)
        omega = importance * ((p - start[name]).square() + 0.01)
        before, after = (t - centres[name] for t in (start[name], p.detach()))
        along = lr * before**2 * (1 - (1 - lr) ** (2 * steps)) / (1 - (1 - lr) ** 2)  # sum of lr g^2, g falling by 1-lr
        torch.testing.assert_close(omega, along, atol=1e-5, rtol=1e-3)
        # Of a quadratic loss, a step of finite size misses lr / 2 of the drop.
        drop = 0.5 * before**2 - 0.5 * after**2
        torch.testing.assert_close(omega * (1 - lr / 2), drop, atol=1e-5, rtol=1e-3)


def test_the_penalty_is_not_part_of_the_path_integral(monkeypatch):
    stream, lr = vectors(), 0.05
    learner = started(SI(**TINY | {"lr": lr, "optimiser": "sgd", "damping": 0.1, "weight": 2.0}), stream, SEEDS)
    beginner = started(SI(**TINY), stream, SEEDS)
    beginner.meet(stream[0])
    monkeypatch.setattr(Learner, "loss", bowl(beginner, 0)[0])
    learner.learn(stream[0])
    beginner.meet(stream[1])
    loss, centres = bowl(beginner, 1)
    monkeypatch.setattr(Learner, "loss", loss)
    springs = {name: learner.quadratic_.spring(name, weight) for name, weight in centres.items()}
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
        found = learner.quadratic_.spring(f"encoder.{name}", begin)[0]
        torch.testing.assert_close(found.double(), expected, atol=1e-4, rtol=1e-3)


def test_the_penalty_reaches_the_weights():
    stream = vectors()
    learner = started(SI(**TINY | {"weight": 3.0}), stream, SEEDS)
    batch = midway(learner, stream)
    weights = {f"encoder.{name}": p for name, p in learner.encoder_.named_parameters()}
    penalty = learner.loss(batch) - Learner.loss(learner, batch)
    gradients = torch.autograd.grad(penalty.sum(), list(weights.values()))
    for (name, p), g in zip(weights.items(), gradients, strict=True):
        importance, anchor = learner.quadratic_.spring(name, p)
        assert (importance >= 0).all()
        torch.testing.assert_close(g, 2 * 3.0 * importance * (p - anchor), atol=1e-5, rtol=1e-4)
