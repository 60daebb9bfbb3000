"""DER and DER++, dark experience replay (Buzzega et al. 2020): match the stored logits and labels of old samples."""

# S seeds, m samples of memory in a step, K outputs of the widest head

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from prer.address import Address
from prer.learners.base import Learner
from prer.learners.interfaces import Batch
from prer.learners.memory import smallest, stored_outputs, width_of
from prer.nn.heads import dropout_noise, mean_cross_entropy
from prer.settings import setting
from prer.streams.task import Task


@dataclass(kw_only=True)
class DER(Learner):
    """A reservoir of samples with the logits they had when their task ended."""

    name = "der"

    size: int = setting(500, "samples kept in all", low=0)
    weight: float = setting(0.5, "weight of the squared distance between logits (alpha)", low=0)
    label_weight: float = setting(0.5, "weight of the cross-entropy on memory (beta); 0 is DER, above it DER++", low=0)
    memory_batch: int = setting(64, "samples from memory in a step", low=1)

    def old_heads(self) -> bool:
        """Whether there are samples to rehearse."""
        return bool((self.weight or self.label_weight) and len(self.kept_))

    def rehearse(self, batches: Tensor, address: Address) -> tuple[Tensor, ...]:
        """Sample separate memory indices for the two losses, as in the paper, and dropout noise for the second."""
        if not self.old_heads():
            return ()
        steps, place = batches.shape[1], address / "memory"
        index = self.kept_.draw(steps, 2 * self.memory_batch, place)
        return index, dropout_noise(self.head_, (steps, self.memory_batch), place)

    def loss(self, batch: Batch) -> Tensor:
        """Cross-entropy on new samples plus the logit and label losses on old ones."""
        if batch.heads is None:
            return super().loss(batch)
        index, noise = batch.past
        old = self.kept_.at(index, "x", "y", "head", "logits", "width")
        new, m = batch.y.shape[1], self.memory_batch
        z = self.encoder_(torch.cat([batch.x, self.inputs_(old["x"])], dim=1))
        # The stored logits were computed without dropout, so these are too.
        now, before = batch.heads(z[:, new : new + m], old["head"][:, :m]), old["logits"][:, :m]
        changed = now[..., : before.shape[2]] - before
        if "width" in old:  # the head has grown
            changed = changed * stored_outputs(old, batch.heads)[:, :m]
        changed = changed.square().sum(-1).mean(1)
        head = old["head"][:, m:]
        labels = mean_cross_entropy(
            batch.heads.masked(batch.heads(z[:, new + m :], head, noise), head), old["y"][:, m:]
        )
        total = mean_cross_entropy(batch.head(z[:, :new], batch.noise), batch.y)
        return total + self.weight * changed + self.label_weight * labels

    def after_task(self, task: Task) -> None:
        """Add samples of the task to the reservoir, and evict old ones to make room."""
        address = self.address_ / "keep" / task.index
        rows = task.train_rows(address.seeds)
        key = address.uniform(rows.shape[1])  # samples with the smallest keys stay, however old: a reservoir
        first = smallest(key, self.size)
        if not first.shape[1]:
            return
        rows, key = rows.gather(1, first), key.gather(1, first)
        x, y = task.samples(rows)
        with torch.no_grad():
            logits = self.head_(self.embed(task, rows))
        notes = {"x": x, "y": task.targets[y], "head": torch.full_like(y, task.head), "logits": logits}
        self.kept_.add(**notes, **width_of(task, y), key=key)
        self.kept_.keep(smallest(self.kept_.get_buffer("key"), self.size))
