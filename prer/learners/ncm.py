"""NCM, nearest class mean: predict the class whose mean is nearest (Mensink et al. 2013)."""

# S seeds, n samples, F features, C classes

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from prer.learners.closed_form import ClosedForm, means, spread


@dataclass(kw_only=True)
class NCM(ClosedForm):
    """Keeps the mean of each class; features of vectors are scaled by their standard deviation over all samples.

    The mean of a class with one sample is this sample.
    """

    name = "ncm"

    def shapes(self, classes: int, features: int) -> dict[str, tuple[int, ...]]:
        """Samples and sum of each class; for vectors also the sum of squares. Pixels have one scale."""
        found: dict[str, tuple[int, ...]] = {"counts": (classes,), "totals": (classes, features)}
        return found | ({"squares": (1, features)} if len(self.shape_) == 1 else {})

    def count(self, x: Tensor, member: Tensor) -> None:
        """Add samples to the sums of their classes."""
        self.sums_.add(counts=member.sum(1), totals=member.mT @ x)
        if len(self.shape_) == 1:
            self.sums_.add(squares=x.square().sum(1, keepdim=True))

    def solve(self) -> tuple[Tensor, Tensor]:
        """The scaled means [S, C, F], and the scale [S, 1, F], or 1 for pixels."""
        centres = means(self.sums_)
        scale = centres.new_ones(1)
        if len(self.shape_) == 1:
            scale = spread(self.sums_, self.sums_.get_buffer("squares"))
        return centres / scale, scale

    def answer(self, solution: tuple[Tensor, Tensor], x: Tensor) -> Tensor:
        """Minus the distance to each mean."""
        centres, scale = solution
        return -torch.cdist(x / scale, centres, compute_mode="donot_use_mm_for_euclid_dist")
