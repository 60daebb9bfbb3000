"""Joint, by hand."""

import torch
import torch.nn.functional as F
from support.learners import TINY, blobs, captured, started

from prer.learners import Joint


def test_each_sample_is_classified_among_the_classes_of_its_own_task(monkeypatch):
    stream = blobs()
    learner = started(Joint(**TINY), stream)
    captured(learner, stream[0], monkeypatch)
    phases = captured(learner, stream[1], monkeypatch)
    _, loss, (at, moves, noise), options = phases["classifier"]
    assert set(options["gather"](at)[2].unique().tolist()) == {0, 1, 2, 3}  # both tasks are in the batches
    batch = at[:, 0]
    _, x, y = options["gather"](batch)
    z = learner.encoder_(learner.inputs_(x))
    expected = torch.zeros(2)
    for s in range(2):
        for b in range(batch.shape[1]):
            task = int(y[s, b]) // 2
            logits = learner.heads_[task](z, noise[:, 0])[s, b]
            expected[s] += F.cross_entropy(logits, y[s, b] - 2 * task) / batch.shape[1]
    torch.testing.assert_close(loss(*options["prepare"](batch, x, y, moves[:, 0], noise[:, 0])), expected)
