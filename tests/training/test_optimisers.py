"""Our optimisers against those of torch."""

import pytest
import torch
from torch import nn

from prer.training.optimisers import OPTIMISERS

THEIRS = {"adam": torch.optim.Adam, "sgd": torch.optim.SGD}


@pytest.mark.parametrize("name", OPTIMISERS)
def test_updates_are_those_of_torch_to_the_last_bit(name):
    torch.manual_seed(0)
    mine, theirs = ([nn.Parameter(torch.ones(3, 4)), nn.Parameter(torch.ones(5))] for _ in range(2))
    unused = nn.Parameter(torch.ones(2))  # never has a gradient
    rate = torch.tensor(0.1)
    ours, reference = OPTIMISERS[name]([*mine, unused], rate), THEIRS[name](theirs, 0.1, fused=True)
    for step in range(5):
        for pair in zip(mine, theirs, strict=True):
            gradient = torch.randn_like(pair[0])
            for p in pair:
                p.grad = gradient.clone() if step or p.dim() == 1 else None  # the first gets its first gradient later
        rate.fill_(0.1 / (step + 1))
        reference.param_groups[0]["lr"] = float(rate)
        ours.step()
        reference.step()
        assert all(torch.equal(a, b) for a, b in zip(mine, theirs, strict=True))
    assert torch.equal(unused, torch.ones(2)) and not ours.state[unused]
    ours.zero_grad()
    assert all(p.grad is None for p in mine)
