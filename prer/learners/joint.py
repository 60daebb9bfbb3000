"""Joint: train on all tasks so far together. Not continual learning, but its upper reference."""

# S seeds, B batch, K outputs of all heads

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from prer.errors import InputError
from prer.learners.base import Learner
from prer.learners.interfaces import Batch, MemorySize
from prer.nn.heads import mean_cross_entropy
from prer.settings import setting
from prer.streams.task import Task, merge
from prer.training.loop import Observer


@dataclass(kw_only=True)
class Joint(Learner):
    """Keeps the data of all tasks and trains on all of it; also called cumulative."""

    name = "joint"
    keeps_tasks = True

    restart: bool = setting(
        False, "train from initial weights after each task; going on from the old ones may generalise far worse"
    )

    def start(
        self, shape: Sequence[int], seeds: Sequence[int], device: str = "cpu", observe: Observer | None = None
    ) -> None:
        """Start with no task seen."""
        super().start(shape, seeds, device, observe)
        self.seen_: list[Task] = []

    def restore(self, learned: Sequence[Task], state: Mapping[str, Tensor], notes: Mapping[str, Any]) -> None:
        """Restore the learner; the tasks themselves are its memory."""
        super().restore(learned, state, notes)
        self.seen_ = list(learned)

    def learn(self, task: Task) -> None:
        """Train on all tasks so far, with all heads."""
        if not all(len(seen.x) for seen in self.seen_):  # models of format 1 do not have it
            raise InputError("the model does not contain the data of its lessons, which joint needs; make a new model")
        self.meet(task)
        self.seen_.append(task)
        if self.restart:
            self._initialise()
        widths = {seen.head: seen.width for seen in self.seen_}
        owners = [head for head, width in widths.items() for _ in range(width)]
        self.owner_ = torch.tensor(owners, device=self.address_.device)  # the head of each output [K]
        together = merge(self.seen_)
        self.size_ = together.size
        self.train_classifier(together, [self.encoder_, self.heads_])

    def _initialise(self) -> None:
        """Set encoder and heads to the weights of a learner that has met the same tasks and learned nothing."""
        beginner = replace(self)
        beginner.start(self.shape_, self.address_.seeds, self.address_.device)
        for task in self.seen_:
            beginner._know(task)
        for ours, theirs in ((self.encoder_, beginner.encoder_), (self.heads_, beginner.heads_)):
            for p, q in zip(ours.parameters(), theirs.parameters(), strict=True):
                p.data.copy_(q)

    def loss(self, batch: Batch) -> Tensor:
        """Cross-entropy of every sample over the classes of its own head."""
        z = self.encoder_(batch.x)
        logits = torch.cat([head(z, batch.noise) for head in self.heads_], dim=-1)  # y indexes its columns
        foreign = self.owner_ != self.owner_[batch.y].unsqueeze(-1)
        return mean_cross_entropy(logits.masked_fill(foreign, -torch.inf), batch.y)

    def memory_size(self) -> MemorySize:
        """All training samples of all tasks, with their labels."""
        samples = sum(task.train_rows(self.address_.seeds[:1]).shape[1] for task in self.seen_ if len(task.x))
        x, y = self.seen_[0].x, self.seen_[0].y
        numbers = math.prod(x.shape[1:])
        return MemorySize(samples * (numbers + 1), samples, samples * (numbers * x.element_size() + y.element_size()))
