"""Paired comparisons of two methods over seeds: each seed has its own split and initial weights.

The seeds split the same data anew, so their training parts and test parts overlap, and the differences of seeds are
correlated. The plain t-test ignores that. The corrected one (Nadeau and Bengio 2003, Inference for the Generalization
Error, Machine Learning 52) assumes that the correlation is the share of the data that is tested on.
"""

# n seeds, m comparisons

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

K = TypeVar("K")
LEVEL = 0.05
MARGIN = 0.2  # points by which a method may be behind and still count as not worse


@dataclass(frozen=True)
class Comparison:
    """The mean difference of two methods over the same seeds.

    Attributes:
        difference: the mean of first minus second.
        low: lower end of its 95 % confidence interval.
        high: upper end.
        p: p-value of the two-sided paired t-test.
        adjusted: p after Holm's correction; p itself before it.
    """

    difference: float
    low: float
    high: float
    p: float
    adjusted: float

    @property
    def verdict(self) -> str:
        """The verdict on the first method: better, worse, not worse, or not decided.

        An interval above -MARGIN means "not worse", even if a small negative difference is significant (see p).
        """
        sure = self.adjusted < LEVEL
        if sure and self.difference > 0:
            return "better"
        if self.low > -MARGIN:
            return "not worse"
        return "worse" if sure else "not decided"


def compare(first: Sequence[float], second: Sequence[float], overlap: float = 0.0) -> Comparison:
    """Paired t-test; p is 1 for a single pair, and 0 if all differences are equal and not zero.

    Args:
        first: a value for each seed.
        second: values of the same seeds.
        overlap: n_test / n_train, for the corrected test of seeds that split the same data; 0: the plain test.

    Example:
        >>> compare([3.0, 5.0, 4.0], [1.0, 2.0, 3.0]).difference
        2.0
    """
    from scipy.stats import t

    differences = np.subtract(first, second)
    n, mean = len(differences), float(differences.mean())
    if n < 2:
        return Comparison(mean, -math.inf, math.inf, 1.0, 1.0)
    error = float(differences.std(ddof=1)) * math.sqrt(1 / n + overlap)
    doubt = 2 * float(t.sf(abs(mean) / error, n - 1)) if error else float(mean == 0)
    half = float(t.ppf(1 - LEVEL / 2, n - 1)) * error
    return Comparison(mean, mean - half, mean + half, doubt, doubt)


def holm(ps: Sequence[float]) -> list[float]:
    """Holm-adjusted p-values of a family of tests, in the given order.

    Example:
        >>> holm([0.04, 0.01, 0.03])
        [0.06, 0.03, 0.06]
    """
    adjusted, highest = [0.0] * len(ps), 0.0
    for rank, i in enumerate(sorted(range(len(ps)), key=lambda i: ps[i])):
        highest = max(highest, min(1.0, (len(ps) - rank) * ps[i]))
        adjusted[i] = highest
    return adjusted


def compared(
    pairs: Mapping[K, tuple[Sequence[float] | None, Sequence[float] | None]], overlap: float = 0.0
) -> dict[K, Comparison]:
    """The first of each pair against the second where both are known, Holm-corrected over these pairs."""
    known = {key: compare(first, second, overlap) for key, (first, second) in pairs.items() if first and second}
    return dict(zip(known, family(list(known.values())), strict=True))


def family(comparisons: Sequence[Comparison]) -> list[Comparison]:
    """The same comparisons with p-values Holm-corrected over all of them."""
    adjusted = holm([c.p for c in comparisons])
    return [Comparison(c.difference, c.low, c.high, c.p, p) for c, p in zip(comparisons, adjusted, strict=True)]
