"""EWC, elastic weight consolidation (Kirkpatrick et al. 2017): penalise changes of important weights.

Separate: one quadratic for each task; their sum is again a quadratic, so two numbers a weight represent all of them.
Online (Schwarz et al. 2018): one quadratic around the newest weights; the importance from old tasks decays.
"""

# S seeds, n samples, K classes of the head

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor, nn
from torch.func import functional_call, grad, vmap

from prer.learners.base import Learner
from prer.learners.interfaces import Batch
from prer.learners.memory import chosen
from prer.nn.stacked import stack
from prer.settings import setting
from prer.streams.task import Task
from prer.training.loop import Observer

GRADIENTS_AT_ONCE = 32  # samples whose gradients are in memory at once


class Quadratic(nn.Module):
    """sum_i A_i (theta_i - anchor_i)^2 over the weights of a network, by their names."""

    def spring(self, name: str, weight: Tensor) -> tuple[Tensor, Tensor] | None:
        """Importance A and anchor of a weight, or None if it has none; outputs that are new have importance 0."""
        key = name.replace(".", "_")
        importance = getattr(self, f"importance_{key}", None)
        return (
            None
            if importance is None
            else (_padded(importance, weight), _padded(getattr(self, f"anchor_{key}"), weight))
        )

    def put(self, name: str, importance: Tensor, anchor: Tensor) -> None:
        """Store importance and anchor of a weight."""
        key = name.replace(".", "_")
        self.register_buffer(f"importance_{key}", importance.detach().clone())
        self.register_buffer(f"anchor_{key}", anchor.detach().clone())

    def pull(self, name: str, importance: Tensor, weight: Tensor) -> None:
        """Add a quadratic to the stored one: the sum of two quadratics is a quadratic, up to a constant."""
        before = self.spring(name, weight)
        if before is None:
            return self.put(name, importance, weight)
        total = before[0] + importance
        middle = (before[0] * before[1] + importance * weight) / total
        return self.put(name, total, torch.where(total > 0, middle, weight))

    def energy(self, weights: dict[str, nn.Parameter]) -> Tensor | float:
        """Value of the quadratic at these weights, for each seed [S]."""
        springs = {name: self.spring(name, weight) for name, weight in weights.items()}
        held = [(weights[name], *spring) for name, spring in springs.items() if spring is not None]
        if not held:
            return 0.0
        # As one vector: a few operations on all weights are far faster than a few on each weight.
        weight, importance, anchor = (
            torch.cat([t.flatten(1) for t in kind], dim=1) for kind in zip(*held, strict=True)
        )
        return (importance * (weight - anchor).square()).sum(1)


def _padded(tensor: Tensor, like: Tensor) -> Tensor:
    """A tensor [S, outputs, ...] with zeros for the outputs that a head has got since."""
    missing = like.shape[1] - tensor.shape[1]
    return torch.cat([tensor, tensor.new_zeros(len(tensor), missing, *tensor.shape[2:])], dim=1) if missing else tensor


@dataclass(kw_only=True)
class EWC(Learner):
    """A quadratic penalty weighted by the Fisher information of every weight, from per-sample gradients."""

    name = "ewc"

    weight: float = setting(100.0, "strength of the penalty (lambda)", low=0)
    form: Literal["separate", "online"] = setting("separate", "one quadratic for each task, or one that fades")
    fading: float = setting(1.0, "what is left of the old importance after each task (online)", low=0, high=1)
    fisher: Literal["model", "empirical"] = setting(
        "model", "gradients weighted by the model's own predictions for all classes, or of the true labels"
    )
    samples: int = setting(500, "samples of a task the Fisher information is estimated from", low=1)

    def start(
        self, shape: Sequence[int], seeds: Sequence[int], device: str = "cpu", observe: Observer | None = None
    ) -> None:
        """Start with no penalty on any weight."""
        super().start(shape, seeds, device, observe)
        self.quadratic_ = stack(Quadratic, self.address_)

    def memory(self) -> dict[str, nn.Module]:
        """Importance and anchor of every weight."""
        return {"quadratic": self.quadratic_}

    def loss(self, batch: Batch) -> Tensor:
        """Cross-entropy plus the quadratic penalty."""
        loss = super().loss(batch)
        if not self.weight or len(self.tasks_) == 1:
            return loss
        return loss + 0.5 * self.weight * self.quadratic_.energy(held_weights(self))

    def after_task(self, task: Task) -> None:
        """Estimate the importance of each weight for the task, and anchor it at its current value."""
        if not self.weight:
            return
        rows = chosen(task, self.samples, self.address_ / "fisher" / task.index)
        x, y = task.samples(rows)
        fisher = self.information(self.inputs_(x), task.targets[y])
        for name, weight in held_weights(self).items():
            before = self.quadratic_.spring(name, weight)
            if self.form == "separate":
                self.quadratic_.pull(name, fisher[name], weight)
            else:
                kept = 0.0 if before is None else self.fading * before[0]
                self.quadratic_.put(name, kept + fisher[name], weight)

    def information(self, x: Tensor, y: Tensor) -> dict[str, Tensor]:
        """Diagonal Fisher information of every weight [S, ...], from per-sample gradients on samples [S, n, ...]."""
        weights = {name: p.detach() for name, p in held_weights(self).items()}
        classes = self.head_.classes if self.fisher == "model" else 1

        def score(weights: dict[str, Tensor], x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
            log_p = logits(self, weights, x.unsqueeze(1)).squeeze(1).log_softmax(-1).gather(1, y.unsqueeze(1))
            return log_p.sum(), log_p.detach().squeeze(1).exp()  # seeds share no weight: the gradients stay apart

        each = vmap(grad(score, has_aux=True), in_dims=(None, 1, 1), chunk_size=GRADIENTS_AT_ONCE)
        total = {name: torch.zeros_like(p) for name, p in weights.items()}
        for c in range(classes):
            target = torch.full_like(y, c) if self.fisher == "model" else y
            for part, labels in zip(x.split(GRADIENTS_AT_ONCE, 1), target.split(GRADIENTS_AT_ONCE, 1), strict=True):
                gradients, p = each(weights, part, labels)  # [n, S, ...], [n, S]
                share = p if self.fisher == "model" else torch.ones_like(p)
                for name, g in gradients.items():
                    total[name] += (share.view(*p.shape, *[1] * (g.dim() - 2)) * g.square()).sum(0) / x.shape[1]
        return total


def held_weights(learner: Learner) -> dict[str, nn.Parameter]:
    """Weights that later tasks may move: those of the encoder and of the current head, which tasks may share."""
    head = learner.head_of_[-1]
    named = {f"encoder.{name}": p for name, p in learner.encoder_.named_parameters()}
    return named | {f"heads.{head}.{name}": p for name, p in learner.head_.named_parameters()}


def logits(learner: Learner, weights: dict[str, Tensor], x: Tensor) -> Tensor:
    """Logits of the current head with these weights [S, B, K]."""
    head = f"heads.{learner.head_of_[-1]}."
    of_encoder = {name.removeprefix("encoder."): w for name, w in weights.items() if name.startswith("encoder.")}
    of_head = {name.removeprefix(head): w for name, w in weights.items() if name.startswith(head)}
    return functional_call(learner.head_, of_head, (functional_call(learner.encoder_, of_encoder, (x,)),))
