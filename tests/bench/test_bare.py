"""Bare loops do the same work as our learners. Nothing is timed here."""

import copy
import functools

import pytest
import torch
from support.bench import STREAM

from prer.bench import steps
from prer.bench.ready import after
from prer.learners.distilling import Before
from prer.learners.interfaces import Batch
from prer.nn.heads import Heads

CLASSIC = "lwf, classic"


@functools.cache
def weights_after(name):
    """After the same steps without dropout, the weights of our learner and of the bare loop; and those before."""
    method = steps.METHODS[name]
    ready = after(2, steps.built(method, epochs=1, dropout=0.0, batch=16), STREAM)
    ours, met, task = copy.deepcopy(ready.learner), copy.deepcopy(ready.learner), ready.task
    met.meet(task)
    bare = method.bare(met, task, 1)
    before = [p.detach().clone() for p in bare.parameters]
    address = ours.address_ / 2 / "classifier" / 0
    batches = ours._batches(128, address)
    drawn = met.rehearse(batches, address)[0][0] if bare.memory else batches[0, :, :0]
    for rows, numbers in zip(batches[0], drawn, strict=True):
        bare.step(rows, numbers)
    ours.learn(task)
    heads = ours.heads_ if bare.trains_old_heads else ours.head_
    trained = [p[0].detach() for p in (*ours.encoder_.parameters(), *heads.parameters())]
    return trained, [p.detach() for p in bare.parameters], before


@pytest.mark.parametrize("name", [name for name in steps.METHODS if name != CLASSIC])
def test_the_bare_loop_does_the_same_mathematics(name):
    ours, bare, before = (torch.cat([t.flatten() for t in weights]) for weights in weights_after(name))
    # All weights together: where a gradient is nearly 0, Adam makes a full step of its rounding. How many there are
    # depends on the processor: 4e-3 of the way was the most.
    assert (ours - bare).norm() < 1e-2 * (ours - before).norm()
    assert (ours - before).abs().max() > 1e-3


def test_the_bare_loop_distils_in_the_same_way():
    """Of classic LwF one gradient: in its first step that of the old heads is 0, and Adam makes a step of rounding."""
    method = steps.METHODS[CLASSIC]
    ready = after(2, steps.built(method, dropout=0.0, epochs=1, weight=1000.0), STREAM)
    learner, task = ready.learner, ready.task
    learner.before_ = Before.of(learner)
    learner.meet(task)
    heads, bare = Heads(learner._heads()), method.bare(learner, task, 1)
    rows = torch.arange(0, 128, 2)
    with torch.no_grad():
        for p, other in zip(learner.encoder_.parameters(), bare.encoder.parameters(), strict=True):
            p += 0.1 * torch.randn(p.shape, generator=torch.Generator().manual_seed(p.numel()))
            other.copy_(p[0])
    x = bare.x[rows].float() / 255
    head, noise = functools.partial(heads.of, learner.head_of_[-1]), torch.rand(1, 64, 37)
    batch = Batch(x.unsqueeze(0), bare.y[rows].unsqueeze(0), noise, rows.unsqueeze(0), head, (), heads)
    losses = learner.loss(batch).sum(), bare.loss(x, bare.y[rows], rows, rows[:0])
    learner.weight = bare.weight = 0.0
    alone = bare.loss(x, bare.y[rows], rows, rows[:0])
    torch.testing.assert_close(*losses, rtol=1e-4, atol=1e-5)
    assert losses[0] > alone + 0.01
    for a, b in zip(
        torch.autograd.grad(losses[0], list(learner.encoder_.parameters())),
        torch.autograd.grad(losses[1], list(bare.encoder.parameters())),
        strict=True,
    ):
        torch.testing.assert_close(a[0], b, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("name", [name for name in steps.METHODS if name != "naive"])
def test_what_a_method_adds_makes_a_difference(name):
    """Otherwise the comparison above would hold for methods that do nothing."""
    first, other = (weights_after(kind)[1][0] for kind in ("naive", name))
    assert (first - other).abs().max() > 1e-3
