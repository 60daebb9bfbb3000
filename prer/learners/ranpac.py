"""RanPAC (McDonnell et al. 2023): random features and ridge regression on the classes."""

# S seeds, n samples, F features of an input, R random features, C classes

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from prer.address import Address
from prer.learners.closed_form import ClosedForm
from prer.settings import Auto, setting
from prer.training.loop import Observer


@dataclass(kw_only=True)
class RanPAC(ClosedForm):
    """Ridge regression on random features.

    Vectors are standardised by the first task's statistics, so the answer depends on which task is the first. The
    random projection is computed from the seed, so it is neither saved nor counted.
    """

    name = "ranpac"

    size: int = setting(2000, "number of random features", low=1, high=50_000)
    features: Literal["relu", "fourier"] = setting(
        "relu", "ReLU of a random projection, or its cosine, which approximates a Gaussian kernel"
    )
    scale: float = setting(
        1.0,
        "width of that kernel, in units of the root of the number of inputs; for pixels, 0.3 is a good start",
        low=1e-6,
    )
    ridge: float | Auto = setting(
        "auto",
        "penalty, relative to the mean square of a random feature; auto: 30 / number of samples",
        low=1e-12,
        high=1e12,
    )

    def start(
        self, shape: Sequence[int], seeds: Sequence[int], device: str = "cpu", observe: Observer | None = None
    ) -> None:
        """Start without any sample, and compute the random projection."""
        super().start(shape, seeds, device, observe)
        place, inputs = self.address_ / "projection", self._inputs
        weights = _normal(place / "weights", inputs * self.size).unflatten(1, (inputs, self.size))
        self.weights_ = (weights / math.sqrt(inputs)).to(device)  # [S, F, R]
        self.shift_ = (2 * math.pi * _uniform(place / "shift", self.size)).unsqueeze(1).to(device)  # [S, 1, R]

    def shapes(self, classes: int, features: int) -> dict[str, tuple[int, ...]]:
        """The number of samples, the sum of outer products of random features, and their sum for each class."""
        return {"count": (), "products": (self.size, self.size), "totals": (classes, self.size)}

    def count(self, x: Tensor, member: Tensor) -> None:
        """Add samples to the sums."""
        h = self._random(x)
        self.sums_.add(count=member.sum((1, 2)), products=h.mT @ h, totals=member.mT @ h)

    def solve(self) -> Tensor:
        """The weights [S, R, C]."""
        products, totals = self.sums_.get_buffer("products"), self.sums_.get_buffer("totals")
        # All features of black images are 0, and so is everything before the first sample.
        ridge = 30 / self.sums_.get_buffer("count").clamp_min(1) if self.ridge == "auto" else self.ridge
        penalty = ridge * products.diagonal(dim1=1, dim2=2).mean(1).clamp_min(1e-100)
        eye = torch.eye(self.size, dtype=products.dtype, device=products.device)
        return torch.linalg.solve(products + penalty[:, None, None] * eye, totals.mT)

    def answer(self, solution: Tensor, x: Tensor) -> Tensor:
        """The regression's estimate of each class's indicator."""
        return self._random(x) @ solution

    def _random(self, x: Tensor) -> Tensor:
        """Random features [S, n, R]."""
        projected = x @ self.weights_
        return projected.relu() if self.features == "relu" else (projected / self.scale + self.shift_).cos()


def _uniform(place: Address, n: int) -> Tensor:
    """Uniform numbers in (0, 1) [S, n], the same on every device and in every version, since models depend on them."""
    return torch.from_numpy(((place.bits(n) >> 12) + 0.5) * 2.0**-52)


def _normal(place: Address, n: int) -> Tensor:
    """Standard normal numbers [S, n], the same on every device and in every version up to rounding."""
    u, v = _uniform(place / "radius", (n + 1) // 2), 2 * math.pi * _uniform(place / "angle", (n + 1) // 2)
    radius = (-2 * u.log()).sqrt()  # Box and Muller
    return torch.cat([radius * v.cos(), radius * v.sin()], dim=1)[:, :n]
