"""Experience replay: train on old samples beside the new ones (Rolnick et al. 2019, Chaudhry et al. 2019).

The paper's ER is another method, embedding regularisation; see `er`.
"""

# S seeds, n samples, m from memory in a step

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from prer.address import Address
from prer.learners.base import Learner
from prer.learners.interfaces import Batch
from prer.learners.memory import smallest
from prer.nn.heads import dropout_noise, mean_cross_entropy
from prer.settings import setting
from prer.streams.task import Task


@dataclass(kw_only=True)
class Replay(Learner):
    """Cross-entropy also on samples of a bounded memory, each over the classes of its own head."""

    name = "replay"

    size: int = setting(500, "samples kept in all", low=0)
    selection: Literal["reservoir", "balanced"] = setting(
        "reservoir", "reservoir: every sample ever seen is as likely kept; balanced: as many of each class"
    )
    weight: float = setting(1.0, "weight of the loss on memory", low=0)
    memory_batch: int = setting(64, "samples from memory in a step", low=1)

    def old_heads(self) -> bool:
        """Whether there are samples to rehearse."""
        return bool(self.weight and len(self.kept_))

    def rehearse(self, batches: Tensor, address: Address) -> tuple[Tensor, ...]:
        """Sample memory indices for each step, and noise for their dropout."""
        if not self.old_heads():
            return ()
        steps, place = batches.shape[1], address / "memory"
        index = self.kept_.draw(steps, self.memory_batch, place)
        return index, dropout_noise(self.head_, (steps, self.memory_batch), place)

    def loss(self, batch: Batch) -> Tensor:
        """Cross-entropy on the new samples and on old ones."""
        if batch.heads is None:
            return super().loss(batch)
        index, noise = batch.past
        old, new = self.kept_.at(index, "x", "y", "head"), batch.y.shape[1]
        z = self.encoder_(torch.cat([batch.x, self.inputs_(old["x"])], dim=1))
        logits = batch.heads.masked(batch.heads(z[:, new:], old["head"], noise), old["head"])
        loss = mean_cross_entropy(batch.head(z[:, :new], batch.noise), batch.y)
        return loss + self.weight * mean_cross_entropy(logits, old["y"])

    def after_task(self, task: Task) -> None:
        """Add samples of the task to the memory, and evict old ones to make room."""
        address = self.address_ / "keep" / task.index
        rows = task.train_rows(address.seeds)
        key = address.uniform(rows.shape[1])  # samples with the smallest keys stay, however old: a reservoir
        group = self._group(task.y[rows] + self.tasks_[-1].start)
        first = smallest(key, self._limit(), group)
        if not self.size:
            return
        x, y = task.samples(rows.gather(1, first))
        notes = {"x": x, "y": task.targets[y], "head": torch.full_like(y, task.head)}
        self.kept_.add(**notes, key=key.gather(1, first), group=group.gather(1, first))
        self.kept_.keep(smallest(self.kept_.get_buffer("key"), self._limit(), self.kept_.get_buffer("group")))
        self.kept_.keep(smallest(self.kept_.get_buffer("key"), self.size))  # there may be more classes than slots

    def _group(self, ids: Tensor) -> Tensor:
        """Group in which a sample competes for a slot: its class, or one group for all."""
        return ids if self.selection == "balanced" else torch.zeros_like(ids)

    def _limit(self) -> int:
        """Slots of each group."""
        return max(self.size // self.tasks_[-1].stop, 1) if self.selection == "balanced" else self.size
