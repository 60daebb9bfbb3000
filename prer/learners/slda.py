"""SLDA, streaming linear discriminant analysis (Hayes and Kanan 2020): class means and one shared covariance."""

# S seeds, n samples, F features, C classes

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from prer.learners.closed_form import ClosedForm, means, spread
from prer.settings import setting


@dataclass(kw_only=True)
class SLDA(ClosedForm):
    """A Gaussian for each class, all with the same covariance; classes are equally likely."""

    name = "slda"

    shrinkage: float = setting(1e-4, "share of the identity in the covariance", low=1e-12, high=1)

    def shapes(self, classes: int, features: int) -> dict[str, tuple[int, ...]]:
        """Samples and sum of each class, and the sum of outer products."""
        return {"counts": (classes,), "totals": (classes, features), "products": (features, features)}

    def count(self, x: Tensor, member: Tensor) -> None:
        """Add samples to the sums."""
        self.sums_.add(counts=member.sum(1), totals=member.mT @ x, products=x.mT @ x)

    def solve(self) -> tuple[Tensor, Tensor, Tensor]:
        """The mean of all samples [S, 1, F], weights [S, F, C] and biases [S, 1, C]."""
        counts, products = self.sums_.get_buffer("counts").unsqueeze(2), self.sums_.get_buffer("products")
        n, centres = counts.sum(1, keepdim=True).clamp_min(1), means(self.sums_)
        within = products - centres.mT @ (counts * centres)  # sum over classes
        scale = torch.ones_like(products[:, :1])
        if len(self.shape_) == 1:  # pixels have one scale
            scale = spread(self.sums_, products.diagonal(dim1=1, dim2=2).unsqueeze(1))
        eye = torch.eye(products.shape[1], dtype=products.dtype, device=products.device)
        covariance = (1 - self.shrinkage) * within / n / scale / scale.mT + self.shrinkage * eye
        mean = (counts * centres).sum(1, keepdim=True) / n
        centres = (centres - mean) / scale
        weights = torch.linalg.solve(covariance, centres.mT)
        return mean, weights / scale.mT, -0.5 * (centres.mT * weights).sum(1, keepdim=True)

    def answer(self, solution: tuple[Tensor, Tensor, Tensor], x: Tensor) -> Tensor:
        """Log-likelihood of each class, up to a number that all classes share."""
        mean, weights, biases = solution
        return (x - mean) @ weights + biases
