"""LWF, learning without forgetting (Li and Hoiem 2017): distil the predictions of the old heads.

The classic form distils on the new task's samples and needs no memory. The rehearsal form, with which the PRER paper
compares, distils on samples kept of old tasks, with the predictions they had then.
"""

# S seeds, B batch, m samples of memory in a step, T old heads, K outputs of the widest head

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from prer.address import Address
from prer.learners.base import Learner
from prer.learners.distilling import Before, divergence
from prer.learners.interfaces import Batch
from prer.learners.memory import chosen, stored_outputs, width_of
from prer.nn.heads import Heads, mean_cross_entropy
from prer.settings import setting
from prer.streams.task import Task
from prer.training.loop import Observer


@dataclass(kw_only=True)
class LWF(Learner):
    """Distillation of the predictions that the network made before the current task.

    The classic form asks the old network in every step about the batch itself, augmented as it is.
    """

    name = "lwf"

    form: Literal["rehearsal", "classic"] = setting("rehearsal", "on kept samples, or on the new ones without memory")
    size: int = setting(500, "samples kept of each task (rehearsal)", low=0)
    weight: float = setting(1.0, "weight of the distillation", low=0)
    softness: float = setting(2.0, "temperature of the predictions", low=0.1)
    memory_batch: int = setting(64, "samples from memory in a step (rehearsal)", low=1)

    def start(
        self, shape: Sequence[int], seeds: Sequence[int], device: str = "cpu", observe: Observer | None = None
    ) -> None:
        """Start without an old network."""
        super().start(shape, seeds, device, observe)
        self.before_: Before | None = None  # the old network, while a task is learned (classic)

    def old_heads(self) -> bool:
        """Whether there are predictions to distil."""
        return bool(self.weight and (self.before_ if self.form == "classic" else len(self.kept_)))

    def learn(self, task: Task) -> None:
        """Learn a task; the classic form first freezes a copy of the network."""
        self.before_ = Before.of(self) if self.form == "classic" and self.weight else None
        self.meet(task)
        self.transient_floats_ = self.before_.floats() if self.before_ else 0
        self.train_classifier(task)
        self.after_task(task)
        self.before_ = None

    def rehearse(self, batches: Tensor, address: Address) -> tuple[Tensor, ...]:
        """Memory indices for each step (rehearsal); the classic form needs none."""
        if self.form == "classic" or not self.old_heads():
            return ()
        return (self.kept_.draw(batches.shape[1], self.memory_batch, address / "memory"),)

    def loss(self, batch: Batch) -> Tensor:
        """Cross-entropy plus the distillation loss."""
        if batch.heads is None:
            return super().loss(batch)
        if self.before_:
            z = self.encoder_(batch.x)
            held = self.before_.change(batch.x, batch.heads.every(z), self.softness)
        else:
            z, held = self._rehearsed(batch, batch.heads)
        new = batch.y.shape[1]
        return mean_cross_entropy(batch.head(z[:, :new], batch.noise), batch.y) + self.weight * held.mean(1)

    def _rehearsed(self, batch: Batch, heads: Heads) -> tuple[Tensor, Tensor]:
        """Embeddings of the new samples and of those from memory, and the distillation loss of the latter [S, m]."""
        old = self.kept_.at(batch.past[0])
        z = self.encoder_(torch.cat([batch.x, self.inputs_(old["x"])], dim=1))
        before, head = old["logits"], old["head"]
        now = heads(z[:, batch.y.shape[1] :], head)[..., : before.shape[2]]
        there = stored_outputs(old, heads) if heads.ragged or "width" in old else None
        return z, divergence(before, now, self.softness, there)

    def after_task(self, task: Task) -> None:
        """Keep some samples with their current logits (rehearsal)."""
        rows = chosen(task, self.size, self.address_ / "keep" / task.index)
        if self.form == "classic" or not rows.shape[1]:
            return
        x, y = task.samples(rows)
        with torch.no_grad():
            logits = self.head_(self.embed(task, rows))
        self.kept_.add(x=x, head=torch.full_like(y, task.head), logits=logits, **width_of(task, y))
