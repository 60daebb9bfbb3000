"""What rehearsal keeps of the past: copies of samples with what was noted of each, really bounded."""

# S seeds, n samples kept, m drawn for a step

from __future__ import annotations

import torch
from torch import Tensor, nn

from prer.address import Address
from prer.streams.task import Task


class SampleMemory(nn.Module):
    """Samples of each seed by name: x, y, head and whatever else a method notes. All are copies."""

    def add(self, **notes: Tensor) -> None:
        """Keep more samples, [S, n, ...] of each note; a note may become wider, with zeros for the older samples."""
        for name, new in notes.items():
            old = getattr(self, name, None)
            if old is not None and new.dim() == 3 and old.shape[2:] != new.shape[2:]:
                widest = max(old.shape[2], new.shape[2])
                old, new = (nn.functional.pad(t, (0, widest - t.shape[2])) for t in (old, new))
            self.register_buffer(name, new.clone() if old is None else torch.cat([old, new], dim=1))

    def __len__(self) -> int:
        """How many samples each seed has."""
        return next((t.shape[1] for t in self.buffers()), 0)

    def at(self, index: Tensor, *names: str) -> dict[str, Tensor]:
        """What is noted of samples by their numbers [S, m]: these notes, or all."""
        seeds = torch.arange(len(index), device=index.device).unsqueeze(1)
        return {name: t[seeds, index] for name, t in self.named_buffers() if not names or name in names}

    def keep(self, index: Tensor) -> None:
        """Forget all but these [S, n]."""
        for name, t in self.at(index).items():
            self.register_buffer(name, t)

    def draw(self, steps: int, size: int, address: Address) -> Tensor:
        """Numbers of samples for every step of an epoch [S, steps, m], each as likely as any other."""
        return (address.uniform(steps, size) * len(self)).long().clamp_(max=len(self) - 1)


def smallest(key: Tensor, limit: int, group: Tensor | None = None) -> Tensor:
    """The numbers [S, n'] of those whose key [S, n] is among the `limit` smallest of their group [S, n].

    Groups are as large for every seed.
    """
    group = torch.zeros_like(key, dtype=torch.long) if group is None else group
    order = (2.0 * group.double() + key).argsort(1)  # keys are below 1: by group, and then by key
    sizes = torch.bincount(group[0])
    rank = torch.arange(key.shape[1], device=key.device) - (sizes.cumsum(0) - sizes)[group.gather(1, order)[0]]
    return order[:, rank < limit]


def chosen(task: Task, count: int, address: Address) -> Tensor:
    """Rows of a task's training part that are to be kept [S, count], or all where there are not as many."""
    rows = task.train_rows(address.seeds)
    return rows.gather(1, address.permutation(rows.shape[1])[:, :count])
