"""One training step, repeated: plain on a CPU, a captured graph on a GPU."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal

import torch
from torch import Tensor, nn

Optimiser = Literal["adam", "sgd"]


class Step:
    """Loss, gradient, update; called with the tensors of one batch, returns the loss of every seed [S].

    On a GPU the step is a graph: after a few ordinary calls it is captured once and replayed, so that the hundreds of
    small kernels of a flow cost no time on the host. Results are those of the plain path.

    Args:
        loss: a function of a batch's tensors that gives the loss of each seed [S]. Seeds share no parameter, so the
            gradient of the sum holds each seed's own.
        parameters: what is trained.
        optimiser: "adam" or "sgd".
        lr: its learning rate.
        before_update: called when gradients are there and before they are used.
        capture: whether a GPU may record the step; not where it asks for numbers on the host.
    """

    def __init__(
        self,
        loss: Callable[..., Tensor],
        parameters: Sequence[nn.Parameter],
        *,
        optimiser: Optimiser,
        lr: float,
        before_update: Callable[[], None],
        capture: bool = True,
    ) -> None:
        self.loss, self.before_update = loss, before_update
        self.captured = capture and parameters[0].is_cuda
        self.lr = lr
        self.rate = torch.tensor(lr, device=parameters[0].device)  # a tensor, so that a captured step sees it change
        if optimiser == "sgd":
            self.optimiser: torch.optim.Optimizer = torch.optim.SGD(parameters, self.rate, fused=True)
        else:
            self.optimiser = torch.optim.Adam(parameters, self.rate, fused=True, capturable=parameters[0].is_cuda)
        self.calls = 0
        self.graph: torch.cuda.CUDAGraph | None = None

    def __call__(self, *batch: Tensor) -> Tensor:
        """Train on one batch."""
        if not self.captured:
            return self._plain(*batch)
        self.calls += 1
        if self.calls <= 3:  # libraries set themselves up in the first calls, which a capture must not see
            return self._aside(*batch)
        graph = self.graph or self._capture(batch)
        for static, new in zip(self.batch, batch, strict=True):
            static.copy_(new)
        graph.replay()
        return self.result.clone()

    def slow_down(self, factor: float) -> None:
        """Go on with this share of the learning rate."""
        self.rate.fill_(factor * self.lr)

    def _plain(self, *batch: Tensor) -> Tensor:
        self.optimiser.zero_grad(set_to_none=True)
        loss = self.loss(*batch)
        loss.sum().backward()
        self.before_update()
        self.optimiser.step()
        return loss.detach()

    def _aside(self, *batch: Tensor) -> Tensor:
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            loss = self._plain(*batch)
        torch.cuda.current_stream().wait_stream(side)
        return loss

    def _capture(self, batch: Sequence[Tensor]) -> torch.cuda.CUDAGraph:
        self.batch = [t.clone() for t in batch]
        self.graph = torch.cuda.CUDAGraph()
        self.optimiser.zero_grad(set_to_none=True)
        with torch.cuda.graph(self.graph):
            self.result = self._plain(*self.batch)
        return self.graph
