"""Closed forms: learners that keep sums over the samples and solve for their answer; nothing is trained.

Sums do not depend on the order of samples, so the answer is that of all data at once, whatever the order of tasks.
(RanPAC scales vectors by the first task.) No encoder is learned: inputs are pixels or vectors.
"""

# S seeds, n samples, F features of an input, C classes, K outputs of a head

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, Literal

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from prer.errors import InputError, RunError
from prer.learners.base import Learner
from prer.nn.stacked import stack
from prer.settings import setting
from prer.streams.task import Task
from prer.training.computing import rows_at_once
from prer.training.loop import Observer


class Sums(nn.Module):
    """Sums over the samples, as buffers in double precision; those by class grow along their second axis."""

    def fit(self, shapes: Mapping[str, tuple[int, ...]], seeds: int, device: str) -> None:
        """Give the buffers these shapes, after the seed axis; new entries are 0."""
        for name, shape in shapes.items():
            old = getattr(self, name, None)
            if old is None or tuple(old.shape[1:]) != shape:
                new = torch.zeros(seeds, *shape, dtype=torch.float64, device=device)
                if old is not None:
                    new[:, : old.shape[1]] = old
                self.register_buffer(name, new)

    def add(self, **new: Tensor) -> None:
        """Add to the buffers in place."""
        for name, tensor in new.items():
            self.get_buffer(name).add_(tensor)


@dataclass(kw_only=True)
class ClosedForm(Learner):
    """A learner that trains nothing; classes of different heads are different classes.

    Each training sample counts once, as it is: random crops and flips are not applied.
    """

    encoder: Literal["none", "patches"] = setting(
        "none", "what the sums are over: inputs as they are, or whitened patches of images"
    )

    def __post_init__(self) -> None:
        """Refuse settings of networks and training."""
        used = ("encoder", *(("embedding",) if self.encoder == "patches" else ()))
        for f in fields(Learner):
            if f.name not in used and getattr(self, f.name) != f.default:
                what = f"learner.{f.name} has no effect on {self.name}, which has no network and trains nothing"
                raise InputError(f"{what}; leave it out")

    @abstractmethod
    def shapes(self, classes: int, features: int) -> dict[str, tuple[int, ...]]:
        """Shape of each sum of one seed, for this many classes and features of an input."""

    @abstractmethod
    def count(self, x: Tensor, member: Tensor) -> None:
        """Add samples [S, n, F] to the sums; `member` is their class as a one-hot vector [S, n, C]."""

    @abstractmethod
    def solve(self) -> Any:
        """What `answer` needs, computed from the sums, which are 0 before the first sample."""

    @abstractmethod
    def answer(self, solution: Any, x: Tensor) -> Tensor:
        """Scores [S, n, C] of all classes."""

    def phases(self, samples: int, classes: int) -> dict[str, int]:
        """No phase: nothing is trained."""
        return {}

    def memory(self) -> dict[str, nn.Module]:
        """The sums are all that is kept."""
        return {"sums": self.sums_}

    def start(
        self, shape: Sequence[int], seeds: Sequence[int], device: str = "cpu", observe: Observer | None = None
    ) -> None:
        """Start without any sample."""
        super().start(shape, seeds, device, observe)
        self.sums_ = stack(Sums, self.address_)
        self.solution_: Any = None  # computed on demand
        self.slots_: dict[tuple[int, int], int] = {}  # number of each class, by head and output

    def restore(self, learned: Sequence[Task], state: Mapping[str, Tensor], notes: Mapping[str, Any]) -> None:
        """Restore the sums, and check their shapes."""
        super().restore(learned, state, notes)
        self.solution_ = None
        for name, shape in self._shapes().items() if learned else ():
            if tuple(self.sums_.get_buffer(name).shape[1:]) != shape:
                raise ValueError(f"sums.{name} does not have the shape {shape}")

    @torch.no_grad()
    def learn(self, task: Task) -> None:
        """Add the samples of a task to the sums."""
        self.meet(task)
        self.solution_ = None
        slots = torch.tensor([self.slots_[task.head, output] for output in task.outputs], device=task.y.device)
        for rows in task.train_rows(self.address_.seeds).split(rows_at_once(self.address_), 1):
            x, y = task.samples(rows)
            self.count(self._flat(x), F.one_hot(slots[y], len(self.slots_)).double())

    @torch.no_grad()
    def scores(self, x: Tensor, head: int) -> Tensor:
        """Scores of a head's outputs [S, B, K]."""
        if self.solution_ is None:
            try:
                self.solution_ = self.solve()
            except torch.linalg.LinAlgError as error:  # of sums that no samples have
                raise RunError(f"{self.name} has no answer: {error}") from error
        own = [slot for (owner, _), slot in sorted(self.slots_.items()) if owner == head]
        return self.answer(self.solution_, self._flat(x))[..., own]

    def _flat(self, x: Tensor) -> Tensor:
        """Inputs as double-precision vectors [S, B, F]; bytes are scaled to [0, 1] first."""
        if self.encoder == "patches":
            return self.encoder_(self.inputs_(x)).double()
        return self.inputs_(x.double() if len(self.shape_) == 1 else x).flatten(2).double()

    def _build(self, network: Callable[..., Any], **more: Any) -> Callable[[], Any]:
        """Build no network."""
        return nn.Identity

    def _fit_head(self, task: Task) -> None:
        for output in task.outputs:
            self.slots_.setdefault((task.head, output), len(self.slots_))
        self.sums_.fit(self._shapes(), len(self.address_.seeds), self.address_.device)

    def _shapes(self) -> dict[str, tuple[int, ...]]:
        return self.shapes(len(self.slots_), self._inputs)

    @property
    def _inputs(self) -> int:
        """How many numbers of a sample the sums are over."""
        return self.dimension_ if self.encoder == "patches" else math.prod(self.shape_)


def means(sums: Sums) -> Tensor:
    """The mean of each class [S, C, F]."""
    return sums.get_buffer("totals") / sums.get_buffer("counts").clamp_min(1).unsqueeze(2)


def spread(sums: Sums, squares: Tensor) -> Tensor:
    """Standard deviation of each feature over all samples [S, 1, F], given the sums of squares; 1 for a constant."""
    n = sums.get_buffer("counts").sum(1).clamp_min(1)[:, None, None]
    power = squares / n
    variance = power - (sums.get_buffer("totals").sum(1, keepdim=True) / n).square()
    return torch.where(variance > 1e-12 * power + 1e-24, variance, 1.0).sqrt()
