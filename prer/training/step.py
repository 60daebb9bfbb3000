"""A repeated training step: plain on a CPU, a captured CUDA graph on a GPU."""

# S seeds, n steps

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from prer.training.optimisers import OPTIMISERS, Name

WARM_UP = 3  # libraries initialise themselves in the first calls, which must not be captured


class Step:
    """Loss, backward pass, update.

    On a GPU, after a few ordinary steps, the step is captured as a graph and replayed, so that hundreds of small
    kernels cost the host no time. The graph itself selects its batch from the tensors of many steps. Results equal
    those of the plain path.

    Args:
        loss: maps what `prepare` returns to the loss of each seed [S]. Seeds share no parameters, so the gradient of
            the sum holds each seed's own.
        parameters: the parameters to train.
        optimiser: "adam" or "sgd".
        lr: its learning rate.
        prepare: maps the tensors of a step to the arguments of `loss` and `before_update`.
        before_update: called after the backward pass and before the update.
        capture: whether a GPU may capture the step; not if the step needs values on the host.
    """

    def __init__(
        self,
        loss: Callable[..., Tensor],
        parameters: Sequence[nn.Parameter],
        optimiser: Name,
        lr: float,
        prepare: Callable[..., tuple[Any, ...]] = lambda *tensors: tensors,
        before_update: Callable[..., None] = lambda *arguments: None,
        capture: bool = True,
    ) -> None:
        self.loss, self.prepare, self.before_update = loss, prepare, before_update
        self.captured = capture and parameters[0].is_cuda
        self.lr = lr
        self.rate = torch.tensor(lr, device=parameters[0].device)
        self.optimiser = OPTIMISERS[optimiser](parameters, self.rate)
        self.warmed_up = 0
        self.graph: torch.cuda.CUDAGraph | None = None

    def __call__(self, *tensors: Tensor) -> Tensor:
        """Train on the batches of n steps, each tensor [S, n, ...]; returns the sum of losses [S].

        No later call may have more steps than the first one.
        """
        total = torch.zeros(len(tensors[0]), device=self.rate.device)
        plain = WARM_UP - self.warmed_up if self.captured else tensors[0].shape[1]
        for batch in zip(*(t[:, :plain].unbind(1) for t in tensors), strict=True):
            total += self._aside(*batch) if self.captured else self.plain(*batch)
            self.warmed_up += 1
        if plain < tensors[0].shape[1]:
            if self.graph is None:
                self._capture(tensors)
            total += self._replayed([t[:, plain:] for t in tensors])
        return total

    def slow_down(self, factor: float) -> None:
        """Set the learning rate to this fraction of its initial value."""
        self.rate.fill_(factor * self.lr)

    def plain(self, *batch: Tensor) -> Tensor:
        """Run one step, and return the loss of each seed [S]."""
        self.optimiser.zero_grad()
        arguments = self.prepare(*batch)
        loss = self.loss(*arguments)
        loss.sum().backward()
        self.before_update(*arguments)
        self.optimiser.step()
        return loss.detach()

    def _aside(self, *batch: Tensor) -> Tensor:
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            loss = self.plain(*batch)
        torch.cuda.current_stream().wait_stream(side)
        return loss

    def _replayed(self, tensors: Sequence[Tensor]) -> Tensor:
        assert self.graph is not None
        steps = tensors[0].shape[1]
        for static, new in zip(self.batches, tensors, strict=True):
            static[:, :steps].copy_(new)
        self.number.zero_()
        self.total.zero_()
        for _ in range(steps):
            self.graph.replay()
        return self.total.clone()

    def _capture(self, largest: Sequence[Tensor]) -> None:
        self.batches = [torch.empty_like(t, memory_format=torch.contiguous_format) for t in largest]
        self.number = torch.zeros(1, dtype=torch.long, device=self.rate.device)
        self.total = torch.zeros(len(largest[0]), device=self.rate.device)
        self.graph = torch.cuda.CUDAGraph()
        self.optimiser.zero_grad()
        with torch.cuda.graph(self.graph):
            self.total += self.plain(*(t.index_select(1, self.number).squeeze(1) for t in self.batches))
            self.number += 1
