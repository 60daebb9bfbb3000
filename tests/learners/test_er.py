"""ER against its formula, by hand."""

import pytest
import torch
from support.learners import SEEDS, TINY, started, vectors
from support.one_seed import alone, memory_entries, midway, new_loss

from prer.learners import ER


@pytest.mark.parametrize("distance", ["cosine", "l2"])
def test_embeddings_of_kept_samples_are_held_where_they_were(distance):
    stream = vectors()
    settings = {"size": 12, "memory_batch": 9, "weight": 0.7, "distance": distance}
    learner = started(ER(**TINY | settings), stream, SEEDS)
    batch = midway(learner, stream)
    found = learner.loss(batch)
    for seed in range(len(SEEDS)):
        expected = new_loss(learner, batch, seed)
        for x, notes in memory_entries(learner, batch.past[0], seed):
            z, before = alone(learner, seed)[0](x)[0], notes["z"]
            cosine = 1 - (z @ before) / (z.norm() * before.norm())
            expected = expected + 0.7 * (cosine if distance == "cosine" else ((z - before) ** 2).sum()) / 9
        torch.testing.assert_close(found[seed], expected, atol=1e-5, rtol=1e-4)
