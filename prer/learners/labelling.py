"""The labels of PRER: how phase 1 sees them, if it does, and the output of each class id."""

# S seeds, B batch, D embedding

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from prer.nn.heads import mean_cross_entropy
from prer.nn.stacked import Linear, floats, stack
from prer.streams.task import Task

if TYPE_CHECKING:
    from prer.learners.prer import PRER


def outputs_of(learner: PRER, head: int) -> dict[int, int]:
    """The head's output index of each class id that the head knows; a class that came again has several ids."""
    tasks = zip(learner.head_of_, learner.tasks_, learner.outputs_, strict=True)
    return {i: output for h, ids, outputs in tasks if h == head for i, output in zip(ids, outputs, strict=True)}


def labelling(learner: PRER, task: Task) -> tuple[nn.Module | None, Callable[..., Tensor]]:
    """The classifier by which phase 1 sees labels, if any, and its loss [S]."""
    targets, first, head = task.targets, learner.tasks_[-1].start, learner.head_
    if learner.labels != "auxiliary":
        classifier = head if learner.labels == "head" else None
        return classifier, lambda z, y, _, noise: mean_cross_entropy(head(z[:, : y.shape[1]], noise), targets[y])
    address = learner.address_ / "auxiliary" / len(learner.tasks_)
    auxiliary = stack(lambda: Linear(learner.dimension_, learner.tasks_[-1].stop), address)
    learner.transient_floats_ += floats(auxiliary)

    def loss(z: Tensor, y: Tensor, y_hat: Tensor | None, noise: Tensor) -> Tensor:
        ids = y + first if y_hat is None else torch.cat([y + first, y_hat], dim=1)
        return mean_cross_entropy(auxiliary(z), ids)

    return auxiliary, loss
