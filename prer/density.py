"""p(z | t, y): the density of the embeddings, from which the past is drawn.

Two densities stand behind one interface: the paper's conditional flow (`flow.py`), and here a Gaussian for each class,
which is the baseline a flow has to beat. Modules are for one seed and are stacked (see `networks.stack`).
"""

# S seeds, B batch, D embedding, C classes

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from prer.address import Address


class Density(nn.Module, ABC):
    """A density over embeddings for each class, and how often each class was seen.

    A condition is a class id for each sample, [S, B]. Since ids are numbered over all tasks, it names the pair (t, y).
    """

    counts: Tensor  # [S, C], samples seen of each class

    def __init__(self, dimension: int) -> None:
        super().__init__()
        self.dimension = dimension
        self.register_buffer("counts", torch.zeros(0))

    @abstractmethod
    def log_prob(self, z: Tensor, condition: Tensor) -> Tensor:
        """The logarithm of p(z | condition), [S, B]."""

    @abstractmethod
    def start(self, z: Tensor, condition: Tensor) -> None:
        """Take what can be computed rather than trained from the embeddings [S, n, D] of all classes so far."""

    @abstractmethod
    def _draw(self, condition: Tensor, noise: Tensor) -> Tensor:
        """Samples [S, n, D], good or bad, made of normal numbers of the same shape."""

    @abstractmethod
    def _centre(self) -> tuple[Tensor, Tensor]:
        """Mean and standard deviation of the data, each [S, 1, D]."""

    def _standardised(self, z: Tensor) -> Tensor:
        mean, std = self._centre()
        return (z - mean) / std

    def outside(self, z: Tensor, limit: float = 8.0) -> Tensor:
        """Which embeddings [S, n] lie on the border of what `sample` gives or beyond, or are not finite."""
        return ~(self._standardised(z).abs() < 0.999 * limit).all(-1)

    def add(self, counts: Tensor, address: Address) -> None:
        """Make room for new classes, seen so many times each [new classes]; nothing that is learned is touched."""
        new = counts.to(self.counts).expand(len(address.seeds), -1)
        self.counts = torch.cat([self.counts, new], dim=1)

    def labels(self, n: int, address: Address, among: Sequence[int]) -> Tensor:
        """Ids [S, n] of these classes, in the proportions seen in training."""
        chosen = torch.zeros_like(self.counts[:1]).index_fill(1, torch.tensor(among, device=address.device), 1.0)
        return in_proportion(chosen * self.counts, n, address)

    @torch.no_grad()
    def sample(
        self, condition: Tensor, address: Address, temperature: float = 1.0, limit: float = 8.0, attempts: int = 5
    ) -> Tensor:
        """Embeddings [S, n, D] of the asked classes.

        Samples that are not finite, or that lie more than `limit` standard deviations off in some direction, are
        drawn again; those that stay so (a broken density) end on that border, so that no caller meets a NaN.
        """
        shape = condition.shape[1], self.dimension
        z = self._draw(condition, temperature * (address / 0).normal(*shape).to(self.counts))
        for attempt in range(1, attempts):
            bad = ~(self._standardised(z).abs() <= limit).all(-1)  # NaN compares false
            most = int(bad.sum(1).max())
            if not most:
                return z
            first = bad.byte().argsort(dim=1, descending=True, stable=True)[:, :most]  # all bad ones of every seed
            rows = first.unsqueeze(-1).expand(-1, -1, self.dimension)
            noise = temperature * (address / attempt).normal(*shape).to(self.counts)
            again = self._draw(condition.gather(1, first), noise.gather(1, rows))
            z.scatter_(1, rows, torch.where(bad.gather(1, first).unsqueeze(-1), again, z.gather(1, rows)))
        mean, std = self._centre()
        return torch.minimum(torch.maximum(z.nan_to_num(0.0), mean - limit * std), mean + limit * std)


class Gaussian(Density):
    """One full-covariance Gaussian for each class: no training at all, and D + D (D + 1) / 2 floats more a class."""

    means: Tensor
    factors: Tensor

    def __init__(self, dimension: int) -> None:
        super().__init__(dimension)
        self.register_buffer("means", torch.zeros(0, dimension))
        self.register_buffer("factors", torch.zeros(0, dimension * (dimension + 1) // 2))

    @torch.no_grad()
    def start(self, z: Tensor, condition: Tensor) -> None:
        """Fit mean and covariance of every class; an old one with too few embeddings here keeps what it has."""
        member = F.one_hot(condition, self.counts.shape[1]).to(z)  # [S, n, C]
        weight = member / member.sum(1, keepdim=True).clamp_min(1)
        means = weight.mT @ z
        # In double precision: a GPU's faster products would leave a class of few samples without a factor.
        off = ((z - mean.unsqueeze(1)).double() for mean in means.unbind(1))
        covariance = torch.stack([(d * w.unsqueeze(-1)).mT @ d for d, w in zip(off, weight.unbind(2), strict=True)], 1)
        ridge = 1e-4 * covariance.diagonal(dim1=-2, dim2=-1).mean(-1) + 1e-8
        covariance = covariance + ridge[..., None, None] * torch.eye(self.dimension).to(z)
        row, column = torch.tril_indices(self.dimension, self.dimension)
        factors = torch.linalg.cholesky(covariance)[..., row, column].to(z)
        old = self.means.shape[1]
        keep = (member.sum(1)[:, :old] <= self.dimension).unsqueeze(-1)
        self.means = torch.cat([torch.where(keep, self.means, means[:, :old]), means[:, old:]], dim=1)
        self.factors = torch.cat([torch.where(keep, self.factors, factors[:, :old]), factors[:, old:]], dim=1)

    def log_prob(self, z: Tensor, condition: Tensor) -> Tensor:
        """The normal density of the sample's class."""
        L = self._cholesky(condition)
        off = (z - look_up(self.means, condition)).unsqueeze(-1)
        u = torch.linalg.solve_triangular(L, off, upper=False).squeeze(-1)
        log_det = L.diagonal(dim1=-2, dim2=-1).log().sum(-1)
        return -0.5 * (u.square().sum(-1) + self.dimension * math.log(2 * math.pi)) - log_det

    def _draw(self, condition: Tensor, noise: Tensor) -> Tensor:
        z = look_up(self.means, condition).clone()
        for c, L in enumerate(self._unpacked().unbind(1)):  # a class at a time: n factors at once would be large
            z += torch.where((condition == c).unsqueeze(-1), noise @ L.mT, 0)
        return z

    def _centre(self) -> tuple[Tensor, Tensor]:
        share = (self.counts / self.counts.sum(1, keepdim=True)).unsqueeze(-1)
        mean = (share * self.means).sum(1, keepdim=True)
        within = self._unpacked().square().sum(-1)  # the covariance's diagonal
        return mean, (share * (within + (self.means - mean).square())).sum(1, keepdim=True).sqrt()

    def _unpacked(self) -> Tensor:
        """Lower triangles [S, C, D, D]."""
        full = self.factors.new_zeros(*self.factors.shape[:2], self.dimension, self.dimension)
        row, column = torch.tril_indices(self.dimension, self.dimension)
        full[..., row, column] = self.factors
        return full

    def _cholesky(self, condition: Tensor) -> Tensor:
        return look_up(self._unpacked().flatten(2), condition).unflatten(-1, (self.dimension, -1))


def in_proportion(counts: Tensor, n: int, address: Address) -> Tensor:
    """Numbers of columns [S, n], each drawn as often as its share of the counts [S, C] says."""
    shares = counts.cumsum(1)
    return torch.searchsorted(shares, address.uniform(n).to(shares) * shares[:, -1:], right=True)


def look_up(rows: Tensor, condition: Tensor) -> Tensor:
    """Each sample's class's row: [S, C, width] and [S, B] to [S, B, width]."""
    S, C, _ = rows.shape
    index = condition + C * torch.arange(S, device=condition.device).unsqueeze(1)
    return F.embedding(index, rows.flatten(0, 1))  # its gradient is faster than that of a gather, and deterministic
