"""A learner that can learn the same task repeatedly."""

import torch
from support.bench import STREAM

from prer.bench import steps
from prer.bench.ready import after


def test_a_turn_leaves_the_learner_as_it_was():
    ready = after(1, steps.built(steps.METHODS["replay"], epochs=2), STREAM)
    before = {name: t.clone() for name, t in ready.learner.state().items()}
    assert ready.turn() > 0
    assert all(torch.equal(t, before[name]) for name, t in ready.learner.state().items())
    assert ready.learner.state().keys() == before.keys()
