"""One full-covariance Gaussian for each class: the baseline that a flow has to beat."""

# S seeds, B batch, D embedding, C classes

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from prer.densities.base import Density, DensitySettings, look_up, triangular


@dataclass(frozen=True, kw_only=True)
class GaussianSettings(DensitySettings):
    """One Gaussian for each class has no settings."""

    name = "gaussian"

    def build(self, dimension: int) -> Gaussian:
        """The Gaussians of one seed."""
        return Gaussian(dimension)


class Gaussian(Density):
    """One full-covariance Gaussian for each class: no training at all, but D + D (D + 1) / 2 floats a class."""

    means: Tensor
    factors: Tensor

    def __init__(self, dimension: int) -> None:
        super().__init__(dimension)
        self.register_buffer("means", torch.zeros(0, dimension))
        self.register_buffer("factors", torch.zeros(0, dimension * (dimension + 1) // 2))

    @torch.no_grad()
    def start(self, z: Tensor, condition: Tensor) -> None:
        """Fit mean and covariance of every class; an old class with too few embeddings keeps its previous fit."""
        member = F.one_hot(condition, self.counts.shape[1]).to(z)  # [S, n, C]
        weight = member / member.sum(1, keepdim=True).clamp_min(1)
        means = weight.mT @ z
        # In double precision: with a GPU's faster products, Cholesky fails for a class with few samples.
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
        """Log-density under the Gaussian of each sample's class [S, B]."""
        L = self._cholesky(condition)
        off = (z - look_up(self.means, condition)).unsqueeze(-1)
        u = torch.linalg.solve_triangular(L, off, upper=False).squeeze(-1)
        log_det = L.diagonal(dim1=-2, dim2=-1).log().sum(-1)
        return -0.5 * (u.square().sum(-1) + self.dimension * math.log(2 * math.pi)) - log_det

    def _draw(self, condition: Tensor, noise: Tensor) -> Tensor:
        z = look_up(self.means, condition).clone()
        for c, L in enumerate(self._unpacked().unbind(1)):  # one class at a time: n factors at once would be large
            z += torch.where((condition == c).unsqueeze(-1), noise @ L.mT, 0)
        return z

    def _centre(self) -> tuple[Tensor, Tensor]:
        share = (self.counts / self.counts.sum(1, keepdim=True)).unsqueeze(-1)
        mean = (share * self.means).sum(1, keepdim=True)
        within = self._unpacked().square().sum(-1)  # the covariance's diagonal
        return mean, (share * (within + (self.means - mean).square())).sum(1, keepdim=True).sqrt()

    def _unpacked(self) -> Tensor:
        """Cholesky factors as lower triangular matrices [S, C, D, D]."""
        return triangular(self.factors, self.dimension)

    def _cholesky(self, condition: Tensor) -> Tensor:
        return look_up(self._unpacked().flatten(2), condition).unflatten(-1, (self.dimension, -1))
