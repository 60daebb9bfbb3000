"""p(z | t, y): the density of the embeddings, from which the past is sampled, and its settings.

Modules are for one seed and are stacked (see `nn/stacked.py`).
"""

# S seeds, B batch, D embedding, C classes

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Self

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from prer.address import Address
from prer.settings import Auto, Options, setting


@dataclass(frozen=True, kw_only=True)
class DensitySettings(Options, ABC):
    """The settings of a density, `[learner.density]`; a subclass with a `name` can be selected by it."""

    default = "flow"
    has_kernels: ClassVar[bool] = False  # whether kernels of ours compute it, which a run records

    def fitting(self, shape: Sequence[int]) -> Self:
        """The same settings, with those that are "auto" chosen for samples of this shape."""
        return self

    @abstractmethod
    def build(self, dimension: int) -> Density:
        """The density of one seed over embeddings of this size, before it knows any class."""


@dataclass(frozen=True, kw_only=True)
class TrainedDensity(DensitySettings):
    """The settings of a density that is trained by gradient descent; others are computed by `Density.start` alone."""

    epochs: int | Auto = setting("auto", "epochs of phase 2; auto: by the number of samples", low=0)
    lr: float = setting(1e-3, "learning rate of phase 2 (Adam); the paper has 1e-4", low=0, high=1e30)
    decay: bool = setting(True, "decay that rate linearly to 0; the samples become far better")
    jitter: float = setting(0.02, "noise on the training data, in standard deviations", low=0)
    clamp: float = setting(1.0, "bound of each gradient", low=0)


class Density(nn.Module, ABC):
    """A density over embeddings for each class, and how often each class was seen.

    A condition is a class id for each sample, [S, B]. Since ids are numbered over all tasks, it names the pair (t, y).
    """

    counts: Tensor  # [S, C], samples seen of each class

    def __init__(self, dimension: int) -> None:
        super().__init__()
        self.dimension = dimension
        self.register_buffer("counts", torch.zeros(0))

    @property
    def noise_width(self) -> int:
        """How many normal numbers make a sample."""
        return self.dimension

    @abstractmethod
    def log_prob(self, z: Tensor, condition: Tensor) -> Tensor:
        """Log-density log p(z | condition) [S, B]."""

    @abstractmethod
    def start(self, z: Tensor, condition: Tensor) -> None:
        """Compute what needs no training from the embeddings [S, n, D] of all classes so far."""

    @abstractmethod
    def _draw(self, condition: Tensor, noise: Tensor) -> Tensor:
        """Transform normal noise [S, n, noise width] into samples [S, n, D], without checking them."""

    @abstractmethod
    def _centre(self) -> tuple[Tensor, Tensor]:
        """Mean and standard deviation of the data, each [S, 1, D]."""

    def _standardised(self, z: Tensor) -> Tensor:
        mean, std = self._centre()
        return (z - mean) / std

    def outside(self, z: Tensor, limit: float = 8.0) -> Tensor:
        """Mask [S, n] of embeddings that are not finite, or at or beyond the limit to which `sample` clamps."""
        return ~(self._standardised(z).abs() < 0.999 * limit).all(-1)

    def add(self, counts: Tensor, address: Address) -> None:
        """Add new classes, with the number of samples of each [new classes]; learned values do not change."""
        new = counts.to(self.counts).expand(len(address.seeds), -1)
        self.counts = torch.cat([self.counts, new], dim=1)

    def log_probs(self, z: Tensor, ids: Sequence[int]) -> Tensor:
        """Log-density of embeddings [S, B, D] under each of these classes [S, B, classes]."""
        shape, device = z.shape[:2], z.device
        return torch.stack([self.log_prob(z, torch.full(shape, i, device=device)) for i in ids], dim=2)

    def labels(self, n: int, address: Address, among: Sequence[int], groups: Tensor | None = None) -> Tensor:
        """Sample ids [S, n] of these classes, in the proportions seen in training; or each group [C] equally often."""
        chosen = torch.zeros_like(self.counts[:1]).index_fill(1, torch.tensor(among, device=address.device), 1.0)
        counts = chosen * self.counts
        if groups is not None:
            of_group = torch.zeros_like(counts).index_add_(1, groups, counts)
            counts = counts / of_group[:, groups].clamp_min(1e-12)
        return in_proportion(counts, n, address)

    @torch.no_grad()
    def sample(
        self, condition: Tensor, address: Address, temperature: float = 1.0, limit: float = 8.0, attempts: int = 5
    ) -> Tensor:
        """Sample embeddings [S, n, D] of the given classes.

        Samples that are not finite, or more than `limit` standard deviations off in some dimension, are resampled;
        those that stay so (a broken density) are clamped to that limit, so that no caller receives a NaN.
        """
        n, D, width = condition.shape[1], self.dimension, self.noise_width

        def noise_of(attempt: int) -> Tensor:
            noise = (address / attempt).normal(n, width).to(self.counts)
            noise[..., :D] *= temperature
            return noise

        z = self._draw(condition, noise_of(0))
        for attempt in range(1, attempts):
            bad = ~(self._standardised(z).abs() <= limit).all(-1)  # NaN compares false
            most = int(bad.sum(1).max())
            if not most:
                return z
            first = bad.byte().argsort(dim=1, descending=True, stable=True)[:, :most]  # all bad samples of every seed
            noise = noise_of(attempt).gather(1, first.unsqueeze(-1).expand(-1, -1, width))
            again, rows = self._draw(condition.gather(1, first), noise), first.unsqueeze(-1).expand(-1, -1, D)
            z.scatter_(1, rows, torch.where(bad.gather(1, first).unsqueeze(-1), again, z.gather(1, rows)))
        mean, std = self._centre()
        return torch.minimum(torch.maximum(z.nan_to_num(0.0), mean - limit * std), mean + limit * std)


def in_proportion(counts: Tensor, n: int, address: Address) -> Tensor:
    """Sample column indices [S, n] with probabilities proportional to the counts [S, C]."""
    shares = counts.cumsum(1)
    return torch.searchsorted(shares, address.uniform(n).to(shares) * shares[:, -1:], right=True)


def look_up(rows: Tensor, condition: Tensor) -> Tensor:
    """Row of each sample's class: [S, C, width] and [S, B] to [S, B, width]."""
    S, C, _ = rows.shape
    index = condition + C * torch.arange(S, device=condition.device).unsqueeze(1)
    return F.embedding(index, rows.flatten(0, 1))  # its gradient is faster than that of a gather, and deterministic


def triangular(packed: Tensor, D: int) -> Tensor:
    """Lower triangular matrices [..., D, D], from their entries [..., D (D + 1) / 2]."""
    full = packed.new_zeros(*packed.shape[:-1], D, D)
    row, column = torch.tril_indices(D, D)
    full[..., row, column] = packed
    return full
