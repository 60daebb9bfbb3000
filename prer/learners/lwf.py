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
from torch import Tensor, nn

from prer.address import Address
from prer.learners.base import Learner
from prer.learners.interfaces import Batch
from prer.learners.memory import chosen, stored_outputs, width_of
from prer.nn.heads import Heads, mean_cross_entropy
from prer.settings import setting
from prer.streams.task import Task
from prer.training.computing import rows_at_once
from prer.training.loop import Observer


@dataclass(kw_only=True)
class LWF(Learner):
    """Distillation of the predictions that the network made before the current task.

    The classic form records them once, on samples without augmentation; augmentation does not change them.
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
        """Start without recorded predictions."""
        super().start(shape, seeds, device, observe)
        self.before_: Tensor | None = None  # logits of the old heads for the new samples, while a task is learned

    def old_heads(self) -> bool:
        """Whether there are predictions to distil."""
        return bool(self.weight and (self.before_ is not None if self.form == "classic" else len(self.kept_)))

    def learn(self, task: Task) -> None:
        """Learn a task; the classic form first records the old heads' logits for the new samples."""
        if self.form == "classic" and self.weight and len(self.heads_):
            self.before_ = self._record(task)
        self.meet(task)
        self.transient_floats_ = 0 if self.before_ is None else self.before_[0].numel()
        self.train_classifier(task)
        self.after_task(task)
        self.before_ = None

    @torch.no_grad()
    def _record(self, task: Task) -> Tensor:
        """Logits of all heads so far for every training sample [S, n, T, K]."""
        rows, parts = task.train_rows(self.address_.seeds), []
        most = max(head.classes for head in self._heads())
        for part in rows.split(rows_at_once(self.address_), 1):
            z = self.embed(task, part)
            logits = [nn.functional.pad(h, (0, most - h.shape[-1])) for h in (head(z) for head in self._heads())]
            parts.append(torch.stack(logits, dim=2))
        return torch.cat(parts, dim=1)

    def rehearse(self, batches: Tensor, address: Address) -> tuple[Tensor, ...]:
        """Memory indices for each step (rehearsal); the classic form looks up its logits by the batch's rows."""
        if self.form == "classic" or not self.old_heads():
            return ()
        return (self.kept_.draw(batches.shape[1], self.memory_batch, address / "memory"),)

    def loss(self, batch: Batch) -> Tensor:
        """Cross-entropy plus the distillation loss."""
        if batch.heads is None:
            return super().loss(batch)
        z, held = self._classic(batch, batch.heads) if self.form == "classic" else self._rehearsed(batch, batch.heads)
        new = batch.y.shape[1]
        return mean_cross_entropy(batch.head(z[:, :new], batch.noise), batch.y) + self.weight * held.mean(1)

    def _classic(self, batch: Batch, heads: Heads) -> tuple[Tensor, Tensor]:
        """Embeddings of the new samples, and the distillation loss of each [S, B]."""
        assert self.before_ is not None
        seeds = torch.arange(len(batch.rows), device=batch.rows.device).unsqueeze(1)
        z, before = self.encoder_(batch.x), self.before_[seeds, batch.rows]  # [S, B, T, K]
        now, there = (t[..., : before.shape[2], : before.shape[3]] for t in (heads.every(z), heads.there))
        # Mean over samples, sum over heads: every old task weighs as much as if it were the only one.
        return z, self._distilled(before, now, there, heads.ragged).sum(-1)

    def _rehearsed(self, batch: Batch, heads: Heads) -> tuple[Tensor, Tensor]:
        """Embeddings of the new samples and of those from memory, and the distillation loss of the latter [S, m]."""
        old = self.kept_.at(batch.past[0])
        z = self.encoder_(torch.cat([batch.x, self.inputs_(old["x"])], dim=1))
        before, head = old["logits"], old["head"]
        now = heads(z[:, batch.y.shape[1] :], head)[..., : before.shape[2]]
        return z, self._distilled(before, now, stored_outputs(old, heads), heads.ragged or "width" in old)

    def _distilled(self, before: Tensor, now: Tensor, there: Tensor, ragged: bool) -> Tensor:
        """T^2 KL(before || now) of each sample at temperature T, over the outputs that its head has."""
        before, now = before / self.softness, now / self.softness
        if not ragged:
            return self.softness**2 * (before.softmax(-1) * (before.log_softmax(-1) - now.log_softmax(-1))).sum(-1)
        p = before.masked_fill(~there, -torch.inf).softmax(-1)
        log_p, log_q = (
            t.masked_fill(~there, -torch.inf).log_softmax(-1).masked_fill(~there, 0.0) for t in (before, now)
        )
        return self.softness**2 * (p * (log_p - log_q)).sum(-1)

    def after_task(self, task: Task) -> None:
        """Keep some samples with their current logits (rehearsal)."""
        rows = chosen(task, self.size, self.address_ / "keep" / task.index)
        if self.form == "classic" or not rows.shape[1]:
            return
        x, y = task.samples(rows)
        with torch.no_grad():
            logits = self.head_(self.embed(task, rows))
        self.kept_.add(x=x, head=torch.full_like(y, task.head), logits=logits, **width_of(task, y))
