"""GEM, gradient episodic memory (Lopez-Paz and Ranzato 2017): no step may raise the loss on any past task's memory."""

# S seeds, T past tasks, P shared weights, m samples of each task's memory in a step

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.func import functional_call

from prer.address import Address
from prer.learners.base import Learner
from prer.learners.ewc import held_weights
from prer.learners.interfaces import Batch
from prer.learners.memory import chosen
from prer.nn.heads import mean_cross_entropy
from prer.settings import setting
from prer.streams.task import Task
from prer.training.loop import Observer

FEW = 6  # past tasks up to which all guesses are solved at once
MOST = 2048  # samples of a seed's memory that pass the encoder together


@dataclass(kw_only=True)
class GEM(Learner):
    """One projection of the whole shared gradient on the constraints of all past tasks."""

    name = "gem"

    size: int = setting(500, "samples kept of each task", low=0)
    margin: float = setting(0.5, "added to the multipliers of violated problems (gamma)", low=0)
    memory_batch: int = setting(64, "samples of each task's memory in a step; 0: all", low=0)

    def start(
        self, shape: Sequence[int], seeds: Sequence[int], device: str = "cpu", observe: Observer | None = None
    ) -> None:
        """Begin with an empty memory."""
        super().start(shape, seeds, device, observe)
        self.notes_ = {"counts": []}  # samples kept of each task

    @property
    def capturable(self) -> bool:  # pyrefly: ignore[bad-override]
        """Up to FEW past tasks; with more, the number of rounds of the solver depends on the gradients."""
        return len(self.tasks_) - 1 <= FEW

    def restore(self, learned: Sequence[Task], state: Mapping[str, Tensor], notes: Mapping[str, Any]) -> None:
        """Restore the learner, and check that its memory has as many samples as it notes."""
        super().restore(learned, state, notes)
        counts = self.notes_["counts"] = [int(count) for count in notes["counts"]]
        if sum(counts) != len(self.kept_) or min(counts, default=0) < 0:
            raise ValueError("its memory is not as large as noted")

    def rehearse(self, batches: Tensor, address: Address) -> tuple[Tensor, ...]:
        """Indices of the memory samples of every step [S, steps, T m]."""
        drawn, first = [], 0
        for task, count in enumerate(self.notes_["counts"]):
            if self.memory_batch:
                place = address / "memory" / task
                drawn.append(first + (place.uniform(batches.shape[1], self.memory_batch) * count).long())
            else:
                every = torch.arange(first, first + count, device=batches.device)
                drawn.append(every.expand(*batches.shape[:2], -1))
            first += count
        return (torch.cat(drawn, dim=2),) if drawn else ()

    def before_step(self, batch: Batch) -> None:
        """Project the gradient; `loss` sees new samples only, and the memory acts here."""
        if not batch.past:
            return
        G = self._gradients(batch.past[0])
        change_gradient(list(held_weights(self).values()), lambda g: project(g, G, self.margin))

    def _gradients(self, index: Tensor) -> Tensor:
        """Gradients of the losses on each past task's memory [S, T, P], on its samples at these indices [S, T m]."""
        sizes = [self.memory_batch or count for count in self.notes_["counts"]]
        tasks = range(len(sizes))
        if not at_once(index):
            parts = zip(tasks, index.split(sizes, 1), strict=True)
            return torch.stack([self._of_task(task, part) for task, part in parts], dim=1)
        each = max(MOST // sizes[0], 1) if len(set(sizes)) == 1 else 1
        parts = zip(tasks[::each], index.split([sum(sizes[t : t + each]) for t in tasks[::each]], 1), strict=True)
        return torch.cat([self._of_tasks(tasks[t : t + each], part) for t, part in parts], dim=1)

    def _of_task(self, task: int, index: Tensor) -> Tensor:
        """Gradient of the loss on the memory of one task [S, P]."""
        old, weights = self.kept_.at(index), list(held_weights(self).values())
        said = self.heads_[self.head_of_[task]](self.encoder_(self.inputs_(old["x"])))
        return _flat(mean_cross_entropy(said, old["y"]), weights)

    def _of_tasks(self, tasks: range, index: Tensor) -> Tensor:
        """Gradients of tasks with equally many samples, at once: each task gets a copy of the weights, like a seed."""
        old, S, T = self.kept_.at(index), len(index), len(tasks)
        x = self.inputs_(old["x"]).unflatten(1, (T, -1)).flatten(0, 1)
        weights = {name: _copies(p.detach(), T).requires_grad_() for name, p in held_weights(self).items()}
        of_encoder = {name: _copies(t, T) for name, t in self.encoder_.named_buffers()} | {
            name.removeprefix("encoder."): w for name, w in weights.items() if name.startswith("encoder.")
        }
        z = functional_call(self.encoder_, of_encoder, (x,)).unflatten(0, (S, T))
        losses = []
        for t, (task, y) in enumerate(zip(tasks, old["y"].unflatten(1, (T, -1)).unbind(1), strict=True)):
            prefix, head = f"heads.{self.head_of_[task]}.", self.heads_[self.head_of_[task]]
            own = {n.removeprefix(prefix): w.unflatten(0, (S, T))[:, t] for n, w in weights.items() if prefix in n}
            losses.append(mean_cross_entropy(functional_call(head, own, (z[:, t],)), y))
        return _flat(torch.stack(losses), list(weights.values())).unflatten(0, (S, T))

    def after_task(self, task: Task) -> None:
        """Keep some samples of the task."""
        rows = chosen(task, self.size, self.address_ / "keep" / task.index)
        if rows.shape[1]:
            x, y = task.samples(rows)
            self.kept_.add(x=x, y=task.targets[y])
            self.notes_["counts"].append(rows.shape[1])


def at_once(index: Tensor) -> bool:
    """Whether all tasks' gradients are computed together; on a CPU this saves nothing and would copy the weights."""
    return index.is_cuda


def _flat(losses: Tensor, weights: Sequence[Tensor]) -> Tensor:
    """Gradient of the sum of all losses [S, P]; zero for weights that no loss depends on."""
    gradients = torch.autograd.grad(losses.sum(), weights, allow_unused=True)
    filled = [torch.zeros_like(w) if g is None else g for w, g in zip(weights, gradients, strict=True)]
    return torch.cat([g.flatten(1) for g in filled], dim=1)


def _copies(tensor: Tensor, count: int) -> Tensor:
    """Repeat each seed's tensor `count` times, as if the copies were seeds [S count, ...]."""
    return tensor.unsqueeze(1).expand(-1, count, *tensor.shape[1:]).flatten(0, 1)


def change_gradient(weights: Sequence[nn.Parameter], change: Callable[[Tensor], Tensor]) -> None:
    """Replace the gradient of these weights [S, P] by `change` of it."""
    gradients = [p.grad for p in weights if p.grad is not None]
    changed = change(torch.cat([g.flatten(1) for g in gradients], dim=1))
    for g, part in zip(gradients, changed.split([g[0].numel() for g in gradients], dim=1), strict=True):
        g.copy_(part.view_as(g))


@torch.no_grad()
def project(g: Tensor, G: Tensor, margin: float = 0.0) -> Tensor:
    """The nearest vector to g [S, P] that has no negative product with any row of G [S, T, P].

    Where some product is negative, the dual is solved, v = argmin v A v / 2 + b v over v >= 0 with A = G G^T, b = G g,
    and g + G^T (v + margin) returned; where none is, g itself.
    """
    G64, g64 = G.double(), g.double()
    b = (G64 @ g64.unsqueeze(2)).squeeze(2)
    if g.device.type == "cpu" and not (b < 0).any():  # a GPU would have to wait for the answer
        return g
    v = nonnegative(G64 @ G64.mT, b)
    moved = g64 + (G64.mT @ (v + margin).unsqueeze(2)).squeeze(2)
    return torch.where((b < 0).any(1, keepdim=True), moved.to(g.dtype), g)


def nonnegative(A: Tensor, b: Tensor) -> Tensor:
    """Argmin v A v / 2 + b v over v >= 0, for each of a batch of problems [S, T, T] and [S, T].

    Block principal pivoting (Portugal, Judice and Vicente 1994): guess which v are positive, solve for those, exchange
    the wrong ones, and repeat until none is wrong. As this may cycle, after T rounds only the first wrong one is
    exchanged, which ends in exact arithmetic (Murty 1974). Up to FEW variables all 2^T guesses are solved at once and
    the best is taken: no round follows, and the operations do not depend on the numbers, so a GPU can capture them.
    """
    T = A.shape[1]
    scale = A.diagonal(dim1=1, dim2=2).clamp_min(1e-300).sqrt()
    A, b = A / (scale.unsqueeze(1) * scale.unsqueeze(2)), b / scale
    size = b.abs().amax(1, keepdim=True).clamp_min(1e-300)  # so that tolerances do not depend on |g|
    A = A + 1e-12 * torch.eye(T, dtype=A.dtype, device=A.device)  # of two equal rows either may do
    b = (b / size).unsqueeze(1)
    free = all_guesses(T, A.device) if T <= FEW else b < 0  # [1 or S, N guesses, T]
    v = solved(A, b, free)
    for turn in range(0 if T <= FEW else 20 * T + 20):
        single = turn >= T
        if single:
            v = v + solved(A, v @ A + b, free)  # refine, or rounding may lead to a cycle after all
        wrong = torch.where(free, v, v @ A + b) < -1e-10  # a negative v, or a negative slope where v is 0
        if not wrong.any():
            break
        free = free ^ (wrong & (wrong.cumsum(2) == 1) if single else wrong)
        v = solved(A, b, free)
    value = ((v @ A) * v).sum(2) / 2 + (v * b).sum(2)
    best = torch.where((v >= -1e-10).all(2) & value.isfinite(), value, torch.inf).argmin(1)
    return v.take_along_dim(best[:, None, None], 1).squeeze(1).clamp_min(0) * size / scale


def all_guesses(T: int, device: torch.device) -> Tensor:
    """All subsets of T variables, as masks [1, 2^T, T]."""
    numbers = torch.arange(2**T, device=device).unsqueeze(1)
    return numbers.bitwise_right_shift(torch.arange(T, device=device)).bitwise_and(1).bool().unsqueeze(0)


def solved(A: Tensor, b: Tensor, free: Tensor) -> Tensor:
    """The solution of A v = -b in the free variables of each guess, with 0 for the others [S, N, T]."""
    both = free.unsqueeze(2) & free.unsqueeze(3)
    left = torch.where(both, A.unsqueeze(1), torch.diag_embed((~free).to(A.dtype)))
    rows = torch.cat([left, torch.where(free, -b, 0.0).unsqueeze(3)], dim=3)  # [S, N, T, T + 1]
    for k in range(A.shape[1]):  # Gauss-Jordan; a positive definite matrix needs no row exchanges
        pivot = rows[:, :, k : k + 1, 1:] / rows[:, :, k : k + 1, :1]
        rows = rows[..., 1:] - rows[..., :1] * pivot  # column k is done
        rows[:, :, k : k + 1] = pivot
    return rows.squeeze(3)
