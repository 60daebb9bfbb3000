"""SI, synaptic intelligence (Zenke et al. 2017): hold each weight by how much the loss fell along its path."""

# S seeds

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from prer.learners.base import Batch, Learner, Observer
from prer.learners.ewc import Quadratic, held_weights
from prer.nn.stacked import stack
from prer.settings import setting
from prer.streams.task import Task


@dataclass(kw_only=True)
class SI(Learner):
    """A quadratic penalty whose importances are path integrals of the gradient, gathered while a task is learned."""

    name = "si"

    weight: float = setting(1.0, "strength of the penalty (c)", low=0)
    damping: float = setting(1e-3, "added to the squared length of a weight's path (xi)", low=1e-12)

    def start(
        self, shape: Sequence[int], seeds: Sequence[int], device: str = "cpu", observe: Observer | None = None
    ) -> None:
        """Begin with no weight held."""
        super().start(shape, seeds, device, observe)
        self.quadratic_ = stack(Quadratic, self.address_)
        self.path_: dict[str, tuple[Tensor, Tensor, Tensor, Tensor]] = {}

    def memory(self) -> dict[str, nn.Module]:
        """Importance and anchor of every weight."""
        return {"quadratic": self.quadratic_}

    def learn(self, task: Task) -> None:
        """Follow every weight from where it starts."""
        super().learn(task)
        self.path_ = {}

    def meet(self, task: Task) -> None:
        """Set out: the integral so far, the start, the last place, and the last gradient of each weight."""
        super().meet(task)
        if self.weight:
            self.path_ = {
                name: (torch.zeros_like(p), p.detach().clone(), p.detach().clone(), torch.zeros_like(p))
                for name, p in held_weights(self).items()
            }
            self.transient_floats_ = sum(4 * t[0][0].numel() for t in self.path_.values())

    def changing(self) -> Sequence[Tensor]:
        """The path so far."""
        return [tensor for of_weight in self.path_.values() for tensor in of_weight]

    def loss(self, batch: Batch) -> Tensor:
        """Cross-entropy, and what it costs to have moved."""
        loss = super().loss(batch)
        if not self.weight or len(self.tasks_) == 1:
            return loss
        return loss + self.weight * self.quadratic_.energy(held_weights(self))

    @torch.no_grad()
    def before_step(self) -> None:
        """Add the step before this one to the integrals: minus the gradient it followed times the way it went."""
        for name, p in held_weights(self).items() if self.path_ else ():
            integral, _, place, gradient = self.path_[name]
            integral -= gradient * (p - place)
            place.copy_(p)
            gradient.copy_(self._own_gradient(name, p))

    def _own_gradient(self, name: str, p: nn.Parameter) -> Tensor:
        """The gradient of the task's own loss: without that of the penalty, whose form is known."""
        assert p.grad is not None
        spring = self.quadratic_.spring(name)
        return p.grad if spring is None else p.grad - 2 * self.weight * spring[0] * (p - spring[1])

    @torch.no_grad()
    def after_task(self, task: Task) -> None:
        """Turn the integrals into importances, and hold every weight where it is."""
        for name, p in held_weights(self).items() if self.path_ else ():
            integral, start, place, gradient = self.path_[name]
            integral -= gradient * (p - place)  # the last step
            importance = integral.clamp_min(0) / ((p - start).square() + self.damping)
            before = self.quadratic_.spring(name)
            self.quadratic_.put(name, importance if before is None else before[0] + importance, p)
