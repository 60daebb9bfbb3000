"""A-GEM against its formula, by hand."""

import torch
import torch.nn.functional as F
from support.learners import HEADS, SEEDS, TINY, started
from support.one_seed import alone, flat_gradient, memory_entries, midway

from prer.learners import AGEM
from prer.learners.agem import averaged


def test_only_the_part_against_the_reference_is_removed():
    reference = torch.tensor([[1.0, 1.0], [1.0, 1.0], [0.0, 0.0], [0.0, 2.0]])
    g = torch.tensor([[1.0, -3.0], [3.0, -1.0], [1.0, -3.0], [5.0, -1.0]])
    x = averaged(g, reference)
    assert torch.equal(x[1:3], g[1:3])
    torch.testing.assert_close(x, torch.tensor([[2.0, -2.0], [3.0, -1.0], [1.0, -3.0], [5.0, 0.0]]))


@HEADS
def test_a_step_loses_its_part_against_the_gradient_of_the_memory(stream):
    moved = 0
    learner = started(AGEM(**TINY | {"size": 10, "memory_batch": 8}), stream, SEEDS)
    batch = midway(learner, stream)
    current = learner.head_of_[-1]
    learner.loss(batch).sum().backward()
    learner.before_step(batch)
    others = [h for h in range(len(learner.heads_)) if h != current]
    assert all(float(p.grad[:, others].abs().sum()) == 0 for p in batch.heads.parameters())
    for seed in range(len(SEEDS)):
        encoder, head = alone(learner, seed, current)
        weights = [*encoder.parameters(), *head.parameters()]
        g = flat_gradient(F.cross_entropy(head(encoder(batch.x[seed]), batch.noise[seed]), batch.y[seed]), weights)
        loss = torch.zeros(())
        for x, notes in memory_entries(learner, batch.past[0], seed):
            which = int(notes["head"])
            single = head if which == current else alone(learner, seed, which)[1]
            loss = loss + F.cross_entropy(single(encoder(x)), notes["y"][None]) / 8
        r = flat_gradient(loss, weights)
        moved += bool(g @ r < 0)
        expected = g - (g @ r) / (r @ r) * r if g @ r < 0 else g
        bank = batch.heads
        of_head = [
            t.grad[seed, current][: learner.head_.classes if i == 2 else None].flatten()
            for i in range(3)
            for t in (bank.weights[i], bank.biases[i])
        ]
        after = torch.cat([*(p.grad[seed].flatten() for p in learner.encoder_.parameters()), *of_head])
        torch.testing.assert_close(after, expected, atol=1e-5 * float(g.norm()), rtol=1e-3)
    assert moved
