"""A-GEM, averaged GEM (Chaudhry et al. 2019): no step may raise the loss on the memory as a whole."""

# S seeds, P shared weights, m samples of memory in a step

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from prer.address import Address
from prer.learners.base import Learner
from prer.learners.gem import change_gradient
from prer.learners.interfaces import Batch
from prer.learners.memory import chosen
from prer.nn.heads import mean_cross_entropy
from prer.settings import setting
from prer.streams.task import Task


@dataclass(kw_only=True)
class AGEM(Learner):
    """Removes the gradient component that opposes the gradient on a batch from all past tasks."""

    name = "agem"

    size: int = setting(500, "samples kept of each task", low=0)
    memory_batch: int = setting(64, "samples from memory in a step", low=1)

    def old_heads(self) -> bool:
        """Whether the memory holds samples."""
        return len(self.kept_) > 0

    def rehearse(self, batches: Tensor, address: Address) -> tuple[Tensor, ...]:
        """Sample memory indices for each step."""
        if not len(self.kept_):
            return ()
        return (self.kept_.draw(batches.shape[1], self.memory_batch, address / "memory"),)

    def before_step(self, batch: Batch) -> None:
        """Remove the gradient component that would raise the loss on the memory; `loss` sees new samples only."""
        if batch.heads is None:
            return
        weights = [*self.encoder_.parameters(), *batch.heads.parameters()]
        old = self.kept_.at(batch.past[0])
        logits = batch.heads(self.encoder_(self.inputs_(old["x"])), old["head"])
        loss = mean_cross_entropy(batch.heads.masked(logits, old["head"]), old["y"]).sum()
        gradients = list(torch.autograd.grad(loss, weights))
        shared = torch.arange(len(self.heads_), device=loss.device) == self.head_of_[-1]
        for i in range(len(list(self.encoder_.parameters())), len(weights)):  # ignore gradients of other heads
            gradients[i] = gradients[i] * shared.view(-1, *[1] * (gradients[i].dim() - 2))
        reference = torch.cat([g.flatten(1) for g in gradients], dim=1)
        change_gradient(weights, lambda g: averaged(g, reference))

    def after_task(self, task: Task) -> None:
        """Keep some samples of the task."""
        rows = chosen(task, self.size, self.address_ / "keep" / task.index)
        if rows.shape[1]:
            x, y = task.samples(rows)
            self.kept_.add(x=x, y=task.targets[y], head=torch.full_like(y, task.head))


def averaged(g: Tensor, reference: Tensor) -> Tensor:
    """The gradient g [S, P] without its component that opposes the reference [S, P], if it has one."""
    product = (g * reference).sum(1, keepdim=True)
    against = product / reference.square().sum(1, keepdim=True).clamp_min(1e-30)
    return torch.where(product < 0, g - against * reference, g)
