"""The training loop of a phase: epochs and steps, events, and where an interrupted phase resumes.

A step is plain on a CPU, and a captured CUDA graph on a GPU.
"""

# S seeds, n training samples of a task, B batch

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from prer.address import Address
from prer.errors import InputError, RunError
from prer.nn.stacked import training
from prer.training.optimisers import OPTIMISERS, Name
from prer.training.phase import Phase, Trained, check_finite

STEPS_GATHERED = 32  # steps whose samples are gathered together
WARM_UP = 3  # steps before a capture: libraries initialise themselves in the first calls, which must not be captured

Observer = Callable[[dict[str, Any]], None]
Feed = Callable[[Address], tuple[Tensor, ...]]
Gather = Callable[[Tensor], tuple[Tensor, ...]]


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What a phase trains, and how.

    Attributes:
        networks: the networks to train; they are in training mode until the phase ends.
        loss: maps the tensors of one step to the loss of each seed [S].
        feed: maps an epoch's address to the tensors of the whole epoch, each [S, steps, ...].
        lr: learning rate.
        optimiser: "adam" or "sgd".
        decay: decay the learning rate linearly over the epochs.
        gather: maps the first tensor of the feed to the first tensors of a step, such as positions to positions and
            samples, a few steps at a time, so that data may be anywhere.
        prepare: maps the tensors of one step to the arguments of `loss` and `before_update`; by default themselves.
        before_update: called after the backward pass and before the update, with the arguments of `loss`.
        also: tensors that steps change in place besides the parameters.
        capture: whether a GPU may capture the step.
    """

    networks: Sequence[nn.Module]
    loss: Callable[..., Tensor]
    feed: Feed
    lr: float
    optimiser: Name = "adam"
    decay: bool = False
    gather: Gather = lambda first: (first,)
    prepare: Callable[..., tuple[Any, ...]] = lambda *tensors: tensors
    before_update: Callable[..., None] = lambda *arguments: None
    also: Sequence[Tensor] = ()
    capture: bool = True


class Loop:
    """Runs the phases of a learner, one after another.

    Attributes:
        observe: called with a dictionary for every event.
        seconds: time spent so far, by phase.
        trained: saved states of the phases of an interrupted task, by phase.
        after_epoch: called after each epoch with phase, its tensors, epochs done, epochs in all, and seconds.
    """

    def __init__(self, observe: Observer | None = None) -> None:
        self.observe: Observer = observe or (lambda event: None)
        self.seconds: dict[str, float] = defaultdict(float)
        self.trained: dict[str, Trained] = {}
        self.after_epoch: Callable[[str, Phase, int, int, float], None] = lambda *of_epoch: None

    def run(self, phase: str, task: int, epochs: int, plan: Plan, address: Address) -> None:
        """Train a phase of a task with a fresh optimiser; an interrupted phase resumes where it stopped."""
        parameters = [p for network in plan.networks for p in network.parameters() if p.requires_grad]
        step = Step(plan.loss, parameters, plan.optimiser, plan.lr, plan.prepare, plan.before_update, plan.capture)
        under_way = Phase(parameters, plan.also, step.optimiser)
        done = under_way.take(self.trained[phase]) if phase in self.trained else 0
        if not 0 <= done <= epochs:
            raise InputError(
                f"the checkpoint has {done} epochs of phase {phase!r}, which has {epochs}; delete it to start over"
            )
        with training(plan.networks):
            for epoch in range(done, epochs):
                begin = time.perf_counter()
                step.slow_down(1 - epoch / epochs if plan.decay else 1.0)
                losses = _epoch(step, plan, address / epoch)
                seconds = time.perf_counter() - begin
                self.seconds[phase] += seconds
                _check(losses, address.seeds, task, phase, epoch)
                event = {"event": "epoch", "task": task, "phase": phase, "epoch": epoch, "epochs": epochs}
                self.observe(event | {"loss": losses, "seconds": seconds})
                self.after_epoch(phase, under_way, epoch + 1, epochs, seconds)
        # The same check as before every checkpoint: whether a run fails must not depend on when it is saved.
        check_finite((tensor for _, tensor in under_way.tensors()), task + 1, phase, epochs)
        for parameter in parameters:
            parameter.grad = None  # computed from the last batch, which must not be kept


def _epoch(step: Step, plan: Plan, address: Address) -> list[float]:
    """Train one epoch, and return the mean loss of each seed."""
    inputs = plan.feed(address)
    total = torch.zeros(len(address.seeds), device=address.device)
    for first, *others in zip(*(t.split(STEPS_GATHERED, 1) for t in inputs), strict=True):
        total += step(*plan.gather(first), *others)
    return (total / inputs[0].shape[1]).tolist()


def _check(losses: list[float], seeds: Sequence[int], task: int, phase: str, epoch: int) -> None:
    for seed, value in zip(seeds, losses, strict=True):
        if not abs(value) < float("inf"):
            raise RunError(
                f"the loss of seed {seed} became {value} in task {task + 1}, phase {phase!r}, epoch {epoch + 1}; "
                "try a lower learning rate"
            )


def batches(samples: int, size: int, address: Address) -> Tensor:
    """The batches of an epoch: positions among the samples in random order, floor(n / B) batches [S, steps, B]."""
    order = (address / "order").permutation(samples)[:, : samples // size * size]
    return order.unflatten(1, (-1, size))


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
        self.lr, self.seeds = lr, len(parameters[0])
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
        if loss.shape != (self.seeds,):
            raise InputError(
                f"the loss has the shape {tuple(loss.shape)}; it must be [S], one value for each of the "
                f"{self.seeds} seeds: average over samples, never over seeds"
            )
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
