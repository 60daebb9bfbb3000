"""Adam and SGD with torch's own fused updates.

`torch.optim`'s classes do the same, but a step of ours is so short that their bookkeeping costs as much as the update
itself, and the first instance imports torch's compiler, which takes two seconds.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, Literal

import torch
from torch import Tensor, nn
from torch.optim.adam import adam
from torch.optim.sgd import sgd

Name = Literal["adam", "sgd"]


class Optimiser(ABC):
    """Updates parameters by their gradients.

    Args:
        parameters: the parameters to train.
        rate: the learning rate, as a tensor, so that a captured step sees it change.
    """

    def __init__(self, parameters: Sequence[nn.Parameter], rate: Tensor) -> None:
        self.parameters, self.rate = list(parameters), rate
        self.state: dict[nn.Parameter, dict[str, Tensor]] = {p: {} for p in parameters}  # of each parameter

    def zero_grad(self) -> None:
        """Drop the gradients."""
        for parameter in self.parameters:
            parameter.grad = None

    @torch.no_grad()
    def step(self) -> None:
        """Update all parameters that have a gradient."""
        trained = [(p, p.grad) for p in self.parameters if p.grad is not None]
        if trained:
            self._update([p for p, _ in trained], [g for _, g in trained])

    def fresh(self, parameter: nn.Parameter) -> dict[str, Tensor]:
        """Initial optimiser state of a parameter."""
        return {}

    @abstractmethod
    def _update(self, parameters: list[nn.Parameter], gradients: list[Tensor]) -> None: ...


class Adam(Optimiser):
    """Adam (Kingma and Ba 2015) with the usual constants."""

    def fresh(self, parameter: nn.Parameter) -> dict[str, Tensor]:
        """The count of steps, and running means of gradients and of their squares."""
        zeros = torch.zeros_like(parameter, requires_grad=False)
        return {"step": torch.zeros((), device=parameter.device), "exp_avg": zeros, "exp_avg_sq": zeros.clone()}

    def _update(self, parameters: list[nn.Parameter], gradients: list[Tensor]) -> None:
        for parameter in parameters:
            self.state[parameter] = self.state[parameter] or self.fresh(parameter)
        states = [self.state[parameter] for parameter in parameters]
        means, squares, steps = ([state[key] for state in states] for key in ("exp_avg", "exp_avg_sq", "step"))
        tensors: list[Tensor] = [*parameters]
        cuda = tensors[0].is_cuda
        constants = {
            "amsgrad": False,
            "beta1": 0.9,
            "beta2": 0.999,
            "weight_decay": 0.0,
            "eps": 1e-8,
            "maximize": False,
        }
        adam(tensors, gradients, means, squares, [], steps, fused=True, capturable=cuda, lr=self.rate, **constants)


class SGD(Optimiser):
    """Plain gradient descent."""

    def _update(self, parameters: list[nn.Parameter], gradients: list[Tensor]) -> None:
        constants = {"weight_decay": 0.0, "momentum": 0.0, "dampening": 0.0, "nesterov": False, "maximize": False}
        rate: Any = self.rate  # a tensor works, though its type hint says float
        sgd([*parameters], gradients, [None] * len(parameters), fused=True, lr=rate, **constants)


OPTIMISERS: dict[Name, type[Optimiser]] = {"adam": Adam, "sgd": SGD}
