"""The labels of PRER: what phase 1 sees of them, and the output of each class id."""

import numpy as np
import torch
import torch.nn.functional as F
from support.learners import pictures, started, tiny_prer

from prer import Stream
from prer.learners.labelling import labelling, outputs_of

HEADS = {0: {0: 0, 1: 1}, 1: {2: 0, 3: 1}}


def met(stream, **settings):
    learner = started(tiny_prer(**settings), stream)
    for task in stream:
        learner.meet(task)
    return learner


def test_each_head_has_the_outputs_of_its_own_classes():
    learner = met(pictures(classes=4))
    assert {head: outputs_of(learner, head) for head in (0, 1)} == HEADS


def test_a_class_that_comes_again_has_several_ids_for_one_output():
    rng = np.random.default_rng(0)
    parts = [(rng.normal(size=(20, 4)), labels * 10) for labels in (["a", "b"], ["c", "a"], ["b", "d"])]
    learner = met(Stream.of(parts, scenario="class"))
    assert [learner.labels_[i] for i in range(6)] == ["a", "b", "a", "c", "b", "d"]
    assert outputs_of(learner, 0) == {0: 0, 1: 1, 2: 0, 3: 2, 4: 1, 5: 3}


def test_phase_1_may_see_the_head_or_a_classifier_over_all_classes():
    stream = pictures(classes=4)
    task, z = stream[1], torch.randn(2, 6, 16, generator=torch.Generator().manual_seed(0))
    y, y_hat = torch.tensor([[0, 1, 0, 1]] * 2), torch.tensor([[0, 1]] * 2)
    assert labelling(met(stream), task)[0] is None
    learner = met(stream, labels="head")
    classifier, loss = labelling(learner, task)
    noise = torch.ones(2, 4, sum(learner.head_.hidden))  # nothing is dropped
    assert classifier is learner.head_
    logits = learner.head_(z[:, :4]) if learner.dropout == 0 else learner.head_(z[:, :4], noise)
    expected = [F.cross_entropy(of, target) for of, target in zip(logits, y, strict=True)]
    torch.testing.assert_close(loss(z, y, y_hat, noise), torch.stack(expected))
    learner = met(stream, labels="auxiliary")
    before = learner.transient_floats_
    classifier, loss = labelling(learner, task)
    assert learner.transient_floats_ - before == 16 * 4 + 4
    targets = torch.tensor([2, 3, 2, 3, 0, 1])  # ids of the new samples, then of the pseudo-samples
    expected = [F.cross_entropy(of, targets) for of in classifier(z)]
    torch.testing.assert_close(loss(z, y, y_hat, noise), torch.stack(expected))
