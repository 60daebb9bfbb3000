"""The sample memory of rehearsal methods. It holds copies, not views of the data, so its size is really bounded."""

# S seeds, n samples kept, m drawn for a step

from __future__ import annotations

import torch
from torch import Tensor, nn

from prer.address import Address
from prer.nn.heads import Heads
from prer.streams.task import Task


class SampleMemory(nn.Module):
    """Samples of each seed as named buffers: x, y, head and whatever else a method records. All are copies."""

    def add(self, **notes: Tensor) -> None:
        """Append a tensor [S, n, ...] to each buffer; if their third axes differ, the narrower one is zero-padded."""
        for name, new in notes.items():
            old = getattr(self, name, None)
            if old is not None and new.dim() == 3 and old.shape[2:] != new.shape[2:]:
                widest = max(old.shape[2], new.shape[2])
                old, new = (nn.functional.pad(t, (0, widest - t.shape[2])) for t in (old, new))
            self.register_buffer(name, new.clone() if old is None else torch.cat([old, new], dim=1))

    def __len__(self) -> int:
        """Number of samples of each seed."""
        return next((t.shape[1] for t in self.buffers()), 0)

    def at(self, index: Tensor, *names: str) -> dict[str, Tensor]:
        """Entries of the buffers at sample indices [S, m]: of the named buffers, or of all."""
        seeds = torch.arange(len(index), device=index.device).unsqueeze(1)
        return {name: t[seeds, index] for name, t in self.named_buffers() if not names or name in names}

    def keep(self, index: Tensor) -> None:
        """Drop all samples but those at these indices [S, n]."""
        for name, t in self.at(index).items():
            self.register_buffer(name, t)

    def draw(self, steps: int, size: int, address: Address) -> Tensor:
        """Sample indices for every step of an epoch [S, steps, m], uniformly."""
        return (address.uniform(steps, size) * len(self)).long().clamp_(max=len(self) - 1)


def smallest(key: Tensor, limit: int, group: Tensor | None = None) -> Tensor:
    """Indices [S, n'] of the samples whose key [S, n] is among the `limit` smallest of their group [S, n].

    Groups must have the same sizes for every seed.
    """
    group = torch.zeros_like(key, dtype=torch.long) if group is None else group
    order = (2.0 * group.double() + key).argsort(1)  # keys are below 1, so this sorts by group, then by key
    sizes = torch.bincount(group[0])
    rank = torch.arange(key.shape[1], device=key.device) - (sizes.cumsum(0) - sizes)[group.gather(1, order)[0]]
    return order[:, rank < limit]


def chosen(task: Task, count: int, address: Address) -> Tensor:
    """Random rows of a task's training part to keep [S, count], or all rows if there are fewer."""
    rows = task.train_rows(address.seeds)
    return rows.gather(1, address.permutation(rows.shape[1])[:, :count])


def stored_outputs(old: dict[str, Tensor], heads: Heads) -> Tensor:
    """Mask [S, m, K] of the outputs that a sample's head had when the sample's logits were stored."""
    outputs = torch.arange(old["logits"].shape[-1], device=old["logits"].device)
    return outputs < old["width"].unsqueeze(-1) if "width" in old else heads.there[old["head"]][..., : len(outputs)]


def width_of(task: Task, y: Tensor) -> dict[str, Tensor]:
    """A note for stored logits [S, n, K]: the number of outputs, if the head grows later."""
    return {"width": torch.full_like(y, task.width)} if task.scenario == "class" else {}
