"""Naive against a plain training loop."""

import torch
import torch.nn.functional as F
from support.learners import TINY, blobs, started

from prer.learners import Naive


def test_naive_trains_like_a_plain_loop_of_torch():
    """One seed against matrix products, F.cross_entropy and torch.optim."""
    stream = blobs()
    learner = started(Naive(**TINY | {"dropout": 0.0, "optimiser": "sgd", "lr": 0.1}), stream, seeds=(3,))
    encoder, task = learner.encoder_, stream[0]
    linears = [m for m in encoder.modules() if isinstance(m, torch.nn.Linear)]
    copies = [(m.weight[0].detach().clone(), m.bias[0].detach().clone()) for m in linears]
    learner.learn(task)
    rows = task.train_rows((3,))
    address = learner.address_ / 0 / "classifier"
    fresh = started(Naive(**TINY), stream, seeds=(3,))
    fresh.meet(task)
    copies += [(m.weight[0].detach().clone(), m.bias[0].detach().clone()) for m in fresh.heads_[0].layers]
    parameters = [p.requires_grad_() for pair in copies for p in pair]
    optimiser = torch.optim.SGD(parameters, 0.1)
    x = (task.x - task.x[rows[0]].mean(0)) / task.x[rows[0]].std(0)
    for epoch in range(2):
        for batch in rows[0][learner._batches(rows.shape[1], address / epoch)[0]]:
            h = x[batch]
            for k, (weight, bias) in enumerate(copies):
                h = h @ weight.T + bias
                h = h if k in (len(linears) - 1, len(copies) - 1) else torch.relu(h)
            optimiser.zero_grad()
            F.cross_entropy(h, task.y[batch]).backward()
            optimiser.step()
    trained = [t for m in (*linears, *learner.heads_[0].layers) for t in (m.weight[0], m.bias[0])]
    for mine, theirs in zip(trained, parameters, strict=True):
        torch.testing.assert_close(mine, theirs, atol=1e-5, rtol=1e-4)
