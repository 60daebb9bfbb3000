"""The training loop of a phase: epochs, steps, events, and where an interrupted phase resumes."""

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
from prer.training.optimisers import Name
from prer.training.phase import Phase, Trained, check_finite
from prer.training.step import Step

STEPS_GATHERED = 32  # steps whose samples are gathered together

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
        gather: replaces the first tensor of the feed by samples, a few steps at a time, so that data may be anywhere.
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
                f"the checkpoint has {done} epochs of phase {phase!r}, of {epochs}; delete it to begin anew"
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
