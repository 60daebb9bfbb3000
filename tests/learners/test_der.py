"""DER++ against its formula, by hand."""

import pytest
import torch
import torch.nn.functional as F
from support.learners import SEEDS, TINY, started, vectors
from support.one_seed import alone, memory_entries, midway, new_loss

from prer.learners import DER


@pytest.mark.parametrize("label_weight", [0.0, 0.3])
@pytest.mark.parametrize("tasks", [2, 3, 4])
def test_logits_of_some_samples_and_labels_of_others_are_replayed(tasks, label_weight):
    stream = vectors()
    settings = {"size": 30, "memory_batch": 9, "weight": 0.7, "label_weight": label_weight}
    learner = started(DER(**TINY | settings), stream, SEEDS)
    batch = midway(learner, stream, tasks)
    index, noise = batch.past
    found = learner.loss(batch)
    for seed in range(len(SEEDS)):
        expected = new_loss(learner, batch, seed)
        for i, (x, notes) in enumerate(memory_entries(learner, index, seed)):
            encoder, head = alone(learner, seed, int(notes["head"]))
            logits = head(encoder(x), None if i < 9 else noise[seed, i - 9])  # logits are compared without dropout
            changed = ((logits[0] - notes["logits"][: head.classes]) ** 2).sum()
            labels = F.cross_entropy(logits, notes["y"][None])
            expected = expected + (0.7 * changed if i < 9 else label_weight * labels) / 9
        torch.testing.assert_close(found[seed], expected, atol=1e-5, rtol=1e-4)
