"""EWC: its Fisher information and its penalty, by hand."""

import pytest
import torch
from support.learners import HEADS, SEEDS, STREAMS, TINY, make, started, vectors
from support.one_seed import alone, disturb, midway

from prer import learn
from prer.address import Address
from prer.learners import EWC, Learner
from prer.learners.ewc import GRADIENTS_AT_ONCE, held_weights
from prer.nn.networks import Encoder
from prer.nn.stacked import floats, stack


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
def test_information_of_a_logistic_regression_is_that_of_the_textbook(fisher):
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
    """Notes the information and the weights of each task."""

    def information(self, x, y):
        found = super().information(x, y)
        self.noted_.append((found, {name: p.detach().clone() for name, p in held_weights(self).items()}))
        return found


SETTINGS = [{"form": "separate"}, {"form": "online", "fading": 0.3}, {"form": "online"}]


@HEADS
@pytest.mark.parametrize("settings", SETTINGS, ids=str)
def test_the_penalty_and_its_gradient_are_those_of_the_quadratics(stream, settings):
    learner = started(Noting(**TINY | settings | {"weight": 7.0, "samples": 30}), stream, SEEDS)
    learner.noted_ = []
    batch = midway(learner, stream)
    weights = held_weights(learner)
    first, second = learner.noted_

    def expected():
        """0.5 lambda sum F (theta - theta*)^2, task by task."""
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


@pytest.mark.parametrize("name", ["ewc", "si"])
def test_a_spring_is_two_numbers_for_each_weight(name):
    learner = make(name)
    result = learn(vectors(), learner, seeds=SEEDS, device="cpu")
    heads = [floats(head) for head in learner.heads_]
    assert result.memory_floats == [2 * (floats(learner.encoder_) + sum(heads[: t + 1])) for t in range(4)]
    assert result.memory_samples == [0] * 4
    if name == "si":
        assert result.transient_floats == [4 * (floats(learner.encoder_) + head) for head in heads]
