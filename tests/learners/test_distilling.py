"""Distillation by the frozen old network, against plain torch."""

import numpy as np
import torch
import torch.nn.functional as F
from support.learners import (
    SEEDS,
    STREAMS,
    TINY,
    started,
    vectors,
)
from support.one_seed import alone, disturb

from prer.learners import Naive
from prer.learners.distilling import Before, divergence


def learned(stream, learner, tasks=2, seeds=SEEDS):
    """The learner after the first tasks, and the network as it was then."""
    started(learner, stream, seeds)
    for task in stream.tasks[:tasks]:
        learner.learn(task)
    return learner, Before.of(learner)


def copied(*modules):
    """The parameters of modules, as they are now."""
    return [p.detach().clone() for module in modules for p in module.parameters()]


def same(a, b):
    return all(torch.equal(p, q) for p, q in zip(a, b, strict=True))


def logits_of(encoder, heads, x):
    """Logits of each head for inputs x, of one seed or of all."""
    z = encoder(x)
    return [head(z) for head in heads]


def kl(before, now, softness):
    """T^2 KL(before || now) summed over heads and averaged over samples, of one seed."""
    pairs = [((b / softness).softmax(-1), (n / softness).log_softmax(-1)) for b, n in zip(before, now, strict=True)]
    return softness**2 * sum(F.kl_div(log_q, p, reduction="batchmean") for p, log_q in pairs)


# -- the old network ---------------------------------------------------------------------------------------------------


def test_the_divergence_is_that_of_the_outputs_that_are_there():
    before, now = torch.randn(2, 3, 7, 4, generator=torch.Generator().manual_seed(0))
    for there in (None, torch.tensor([True, True, False, True])):
        found = divergence(before, now, 3.0, there)
        for i in np.ndindex(3, 7):
            b, n = (t[i] if there is None else t[i][there] for t in (before, now))
            torch.testing.assert_close(found[i], kl([b[None]], [n[None]], 3.0))


@STREAMS
def test_the_change_is_a_sum_over_the_old_heads(stream):
    learner, before = learned(stream, Naive(**TINY))
    x = learner.inputs_(stream[2].samples(stream[2].train_rows(SEEDS))[0])
    old = [logits_of(*networks, x[seed]) for seed, networks in enumerate(networks_of(learner))]
    learner.meet(stream[2])
    disturb(learner.encoder_, learner.heads_)
    now = before.heads.every(learner.encoder_(x))
    found = before.change(x, now, 3.0)
    for seed in range(len(SEEDS)):
        each = [now[seed, :, t, :width] for t, width in enumerate((3, 2))]
        torch.testing.assert_close(found[seed].mean(), kl(old[seed], each, 3.0), atol=1e-5, rtol=1e-4)


def networks_of(learner):
    """Encoder and heads of each seed, as ordinary layers of torch."""
    for seed in range(len(SEEDS)):
        pairs = [alone(learner, seed, head) for head in range(len(learner.heads_))]
        yield pairs[0][0], [head for _, head in pairs]


def test_the_old_network_is_a_frozen_copy():
    stream = vectors()
    learner, before = learned(stream, Naive(**TINY))
    x = learner.inputs_(stream[2].samples(stream[2].train_rows(SEEDS))[0]).requires_grad_()
    said = before.logits(x)
    live = {p.data_ptr() for p in (*learner.encoder_.parameters(), *learner.heads_.parameters())}
    frozen = [*before.encoder.parameters(), *before.heads.parameters()]
    assert frozen and not any(p.requires_grad or p.data_ptr() in live for p in frozen)
    assert not said.requires_grad
    learner.learn(stream[2])
    disturb(learner.encoder_, learner.heads_)
    assert torch.equal(before.logits(x), said)
    assert before.floats() == sum(p[0].numel() for p in frozen)


def test_of_a_head_that_grows_the_old_network_has_the_old_outputs():
    stream = vectors(scenario="class")
    learner, before = learned(stream, Naive(**TINY))
    learner.meet(stream[2])
    assert (before.heads.widths, learner.head_.classes) == ([5], 9)
    x = learner.inputs_(stream[2].samples(stream[2].train_rows(SEEDS))[0])
    torch.testing.assert_close(before.logits(x)[:, :, 0], learner.head_(learner.encoder_(x))[..., :5])


def test_there_is_no_old_network_before_the_first_task():
    assert Before.of(started(Naive(**TINY), vectors())) is None
