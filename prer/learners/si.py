"""SI, synaptic intelligence (Zenke et al. 2017): anchor each weight by how much the loss fell along its path."""

# S seeds

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from prer.learners.base import Learner
from prer.learners.ewc import Quadratic, held_weights
from prer.learners.interfaces import Batch
from prer.nn.stacked import stack
from prer.settings import setting
from prer.streams.task import Task
from prer.training.loop import Observer


@dataclass(kw_only=True)
class SI(Learner):
    """A quadratic penalty whose importances are path integrals of the gradient, accumulated while a task is learned."""

    name = "si"

    weight: float = setting(1.0, "strength of the penalty (c)", low=0)
    damping: float = setting(1e-3, "added to the squared length of a weight's path (xi)", low=1e-12)

    def start(
        self, shape: Sequence[int], seeds: Sequence[int], device: str = "cpu", observe: Observer | None = None
    ) -> None:
        """Start with no penalty on any weight."""
        super().start(shape, seeds, device, observe)
        self.quadratic_ = stack(Quadratic, self.address_)
        self.path_: dict[str, tuple[Tensor, Tensor, Tensor, Tensor]] = {}

    def memory(self) -> dict[str, nn.Module]:
        """Importance and anchor of every weight."""
        return {"quadratic": self.quadratic_}

    def learn(self, task: Task) -> None:
        """Learn a task along the paths of the weights, which are dropped at the end."""
        self.meet(task)
        self.path_ = self._paths() if self.weight else {}
        self.transient_floats_ = sum(4 * t[0][0].numel() for t in self.path_.values())
        self.train_classifier(task, also=[tensor for of_weight in self.path_.values() for tensor in of_weight])
        self.after_task(task)
        self.path_ = {}

    def _paths(self) -> dict[str, tuple[Tensor, Tensor, Tensor, Tensor]]:
        """Path integral, start value, last value and last gradient of each weight."""
        return {
            name: (torch.zeros_like(p), p.detach().clone(), p.detach().clone(), torch.zeros_like(p))
            for name, p in held_weights(self).items()
        }

    def loss(self, batch: Batch) -> Tensor:
        """Cross-entropy plus the quadratic penalty."""
        loss = super().loss(batch)
        if not self.weight or len(self.tasks_) == 1:
            return loss
        return loss + self.weight * self.quadratic_.energy(held_weights(self))

    @torch.no_grad()
    def before_step(self, batch: Batch) -> None:
        """Add the previous step to the path integrals: minus its gradient times the change of the weight."""
        for name, p in held_weights(self).items() if self.path_ else ():
            integral, _, place, gradient = self.path_[name]
            integral -= gradient * (p - place)
            place.copy_(p)
            gradient.copy_(self._own_gradient(name, p))

    def _own_gradient(self, name: str, p: nn.Parameter) -> Tensor:
        """Gradient of the task's own loss: without that of the penalty, which is known in closed form."""
        assert p.grad is not None
        spring = self.quadratic_.spring(name, p)
        return p.grad if spring is None else p.grad - 2 * self.weight * spring[0] * (p - spring[1])

    @torch.no_grad()
    def after_task(self, task: Task) -> None:
        """Turn the path integrals into importances, and anchor every weight at its current value."""
        for name, p in held_weights(self).items() if self.path_ else ():
            integral, start, place, gradient = self.path_[name]
            integral -= gradient * (p - place)  # the last step
            importance = integral.clamp_min(0) / ((p - start).square() + self.damping)
            before = self.quadratic_.spring(name, p)
            self.quadratic_.put(name, importance if before is None else before[0] + importance, p)
