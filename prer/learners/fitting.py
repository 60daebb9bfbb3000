"""Phase 2 of PRER, for a density that is trained by gradient descent."""

# S seeds, B batch, D embedding, n samples

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor

from prer.address import Address
from prer.densities.base import TrainedDensity
from prer.learners.rehearsal import Past, clamping, current, mixed

if TYPE_CHECKING:
    from prer.learners.prer import PRER


def maximise_likelihood(
    learner: PRER, how: TrainedDensity, z: Tensor, y: Tensor, past: Past | None, spread: Tensor
) -> None:
    """Train the density on embeddings z of classes y and on pseudo-embeddings, with noise of this spread."""
    old = range(learner.tasks_[-1].start)

    def feed(address: Address) -> tuple[Tensor, ...]:
        at, replayed = mixed(learner, z.shape[1], past.density if past else None, old, address)
        condition = y.gather(1, at.flatten(1)).view(at.shape)
        new = z.gather(1, at.flatten(1).unsqueeze(-1).expand(-1, -1, z.shape[2])).unflatten(1, at.shape[1:])
        if replayed and past is not None:
            y_hat, z_hat = replayed
            z_hat = current(learner, z_hat.flatten(1, 2), past).view(z_hat.shape)
            new, condition = torch.cat([new, z_hat], dim=2), torch.cat([condition, y_hat], dim=2)
        return new + spread.unsqueeze(1) * (address / "jitter").normal(*new.shape[1:]), condition

    def loss(z: Tensor, condition: Tensor) -> Tensor:
        return -learner.density_.log_prob(z, condition).mean(1)  # Eq. 4

    clamp = clamping(learner.density_, how.clamp)
    statistics = list(learner.density_.buffers())  # those of the norms change during training
    rates = {"lr": how.lr, "decay": how.decay}
    learner.train("flow", [learner.density_], loss, feed, before_update=clamp, also=statistics, **rates)
