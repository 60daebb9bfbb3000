"""ER, embedding regularisation (Pomponi et al. 2020): keep the embeddings of some old samples in place.

Not experience replay; that is `replay`.
"""

# S seeds, m samples of memory in a step, D embedding

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from prer.address import Address
from prer.learners.base import Learner
from prer.learners.interfaces import Batch
from prer.learners.memory import chosen
from prer.nn.heads import mean_cross_entropy
from prer.settings import setting
from prer.streams.task import Task


@dataclass(kw_only=True)
class ER(Learner):
    """A memory of past samples with their embeddings, to which the current embeddings are pulled back."""

    name = "er"

    size: int = setting(200, "samples kept of each task", low=0)
    weight: float = setting(1.0, "weight of the distance", low=0)
    distance: Literal["cosine", "l2"] = setting("cosine", "1 - cosine, or the squared distance, summed over z")
    memory_batch: int = setting(64, "samples from memory in a step", low=1)

    def rehearse(self, batches: Tensor, address: Address) -> tuple[Tensor, ...]:
        """Sample memory indices for each step."""
        if not (self.weight and len(self.kept_)):
            return ()
        return (self.kept_.draw(batches.shape[1], self.memory_batch, address / "memory"),)

    def loss(self, batch: Batch) -> Tensor:
        """Cross-entropy plus the distance of old samples from their stored embeddings."""
        if not batch.past:
            return super().loss(batch)
        old, new = self.kept_.at(batch.past[0]), batch.y.shape[1]
        z = self.encoder_(torch.cat([batch.x, self.inputs_(old["x"])], dim=1))
        loss = mean_cross_entropy(batch.head(z[:, :new], batch.noise), batch.y)
        return loss + self.weight * self._moved(old["z"], z[:, new:])

    def _moved(self, before: Tensor, now: Tensor) -> Tensor:
        """Mean distance of each seed [S]."""
        if self.distance == "l2":
            return (now - before).square().sum(-1).mean(1)
        return (1 - torch.cosine_similarity(now, before, dim=-1)).mean(1)

    def after_task(self, task: Task) -> None:
        """Keep some samples with their current embeddings."""
        rows = chosen(task, self.size, self.address_ / "keep" / task.index)
        if rows.shape[1]:
            self.kept_.add(x=task.samples(rows)[0], z=self.embed(task, rows))
