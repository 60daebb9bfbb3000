"""The tensors of a training phase, copied and restored, so that an interrupted phase resumes where it stopped."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from prer.errors import InputError, RunError
from prer.training.optimisers import Optimiser


@dataclass(frozen=True)
class Trained:
    """The state of a phase after some of its epochs.

    Attributes:
        epochs: number of epochs done.
        tensors: copies of its tensors, by name.
    """

    epochs: int
    tensors: dict[str, Tensor]


class Phase:
    """The tensors of a running phase: parameters, other tensors that its steps change, and the optimiser state."""

    def __init__(self, parameters: Sequence[nn.Parameter], also: Sequence[Tensor], optimiser: Optimiser) -> None:
        self.parameters, self.also, self.optimiser = parameters, also, optimiser

    def tensors(self) -> Iterator[tuple[str, Tensor]]:
        """Yield all tensors by name."""
        for i, parameter in enumerate(self.parameters):
            yield f"parameter.{i}", parameter.detach()
            for key, value in self.optimiser.state[parameter].items():
                yield f"optimiser.{i}.{key}", value
        yield from ((f"also.{i}", tensor) for i, tensor in enumerate(self.also))

    def copied(self, epochs: int) -> Trained:
        """Copy all tensors, after this many epochs."""
        return Trained(epochs, {name: tensor.clone() for name, tensor in self.tensors()})

    @torch.no_grad()
    def take(self, before: Trained) -> int:
        """Restore a saved state, and return the number of epochs done."""
        mine, device = self._like(before.tensors), self.parameters[0].device
        for name in dict.fromkeys([*mine, *before.tensors]):
            here, there = (_kind(tensors.get(name)) for tensors in (mine, before.tensors))
            if here != there:  # a fused optimiser does not check: it would read and write out of bounds
                raise InputError(f"the checkpoint has {name!r} as {there}, not {here}; delete it to start over")
        for name, tensor in before.tensors.items():
            kind, i, *key = name.split(".")
            if kind == "optimiser":
                self.optimiser.state[self.parameters[int(i)]][key[0]] = tensor.to(device, copy=True)
            else:
                mine[name].copy_(tensor)
        return before.epochs

    def _like(self, names: Collection[str]) -> dict[str, Tensor]:
        """Tensors of the required types and shapes, by name; parameters without gradient have no optimiser state."""
        found: dict[str, Tensor] = {f"parameter.{i}": parameter for i, parameter in enumerate(self.parameters)}
        found |= {f"also.{i}": tensor for i, tensor in enumerate(self.also)}
        for i, parameter in enumerate(self.parameters):
            kept = {f"optimiser.{i}.{key}": tensor for key, tensor in self.optimiser.fresh(parameter).items()}
            if any(name in names for name in kept):
                found |= kept
        return found


def check_finite(tensors: Iterable[Tensor], task: int, phase: str, epoch: int) -> None:
    """Raise an error if a value is not finite: the losses, computed before each update, may not show it."""
    if not all(tensor.isfinite().all() for tensor in tensors if tensor.is_floating_point()):
        raise RunError(
            f"a weight, or what the optimiser keeps of it, is no longer finite in task {task}, phase {phase!r}, epoch "
            f"{epoch}; try a lower learning rate"
        )


def _kind(tensor: Tensor | None) -> str:
    return "nothing" if tensor is None else f"{tensor.dtype} {tuple(tensor.shape)}"
