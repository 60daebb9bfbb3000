"""Replay: its loss, by hand, and its balanced memory."""

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from support.learners import SEEDS, STREAMS, TINY, make, numbered, started
from support.one_seed import alone, memory_entries, midway, new_loss

from prer import Stream
from prer.learners import Replay


@STREAMS
@pytest.mark.parametrize("selection", ["reservoir", "balanced"])
def test_an_old_sample_is_classified_among_the_classes_of_its_head(stream, selection):
    settings = {"size": 30, "memory_batch": 9, "weight": 0.7, "selection": selection}
    learner = started(Replay(**TINY | settings), stream, SEEDS)
    batch = midway(learner, stream)
    index, noise = batch.past
    found = learner.loss(batch)
    for seed in range(len(SEEDS)):
        expected = new_loss(learner, batch, seed)
        for i, (x, notes) in enumerate(memory_entries(learner, index, seed)):
            encoder, head = alone(learner, seed, int(notes["head"]))
            expected = expected + 0.7 * F.cross_entropy(head(encoder(x), noise[seed, i]), notes["y"][None]) / 9
        torch.testing.assert_close(found[seed], expected, atol=1e-5, rtol=1e-4)


def test_a_balanced_memory_keeps_equally_many_of_each_class():
    stream = numbered([40, 10, 30, 20, 4, 50], [[0, 1], [2, 3], [4, 5]])
    learner = started(make("replay", size=35, selection="balanced", epochs=0), stream, SEEDS)
    for task, limit in zip(stream, (17, 8, 5), strict=True):
        learner.learn(task)
        sizes = [min(limit, n) for n in (32, 8, 24, 16, 3, 40)[: learner.tasks_[-1].stop]]
        for seed in range(len(SEEDS)):
            kept = learner.kept_.get_buffer("x")[seed, :, 0].round().numpy()
            of_class = np.searchsorted([40, 50, 80, 100, 104], kept, side="right")
            assert np.bincount(of_class, minlength=len(sizes)).tolist() == sizes
            assert len(set(kept.tolist())) == len(kept) == learner.memory_size().samples <= 35


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
