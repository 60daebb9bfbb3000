"""When a claim holds, does not, or is not decided, from comparisons and numbers alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from scipy.stats import levene

from prer.runs.significance import LEVEL, MARGIN, Comparison, holm

BEHIND = 5.0  # points by which fewer samples than test images may be of their class, and each class still be generated
FEWEST = 5  # seeds for which a spread is judged; of two, Levene's test would be sure of anything
HOLDS, FAILS, OPEN = "holds", "does not hold", "not decided"


class Both(NamedTuple):
    """A pair compared by both metrics."""

    bwt: Comparison
    accuracy: Comparison

    @property
    def words(self) -> list[str]:
        """What either says of the first."""
        return [c.verdict for c in self]


def better(*pairs: Both) -> str:
    """Better throughout; a single worse one refutes it."""
    words = [word for pair in pairs for word in pair.words]
    return HOLDS if set(words) == {"better"} else FAILS if "worse" in words else OPEN


def improves(pair: Both) -> str:
    """Better in one metric and not worse in the other; refuted by a worse one, or where neither can be of weight."""
    if "worse" in pair.words or all(c.high < MARGIN for c in pair):
        return FAILS
    return HOLDS if "better" in pair.words and set(pair.words) <= {"better", "not worse"} else OPEN


def remembers(pair: Both) -> str:
    """BWT better and Accuracy not worse."""
    if pair.bwt.verdict == "better" and pair.accuracy.verdict in ("better", "not worse"):
        return HOLDS
    return FAILS if "worse" in pair.words else OPEN


def classifies(pair: Both) -> str:
    """Accuracy alone."""
    return {"better": HOLDS, "worse": FAILS}.get(pair.accuracy.verdict, OPEN)


def easier(generated: Both, nothing: Both) -> str:
    """Better than pixels, which says something of generating only where having no generator is not better, too."""
    return HOLDS if generated.words == ["better", "better"] and "better" not in nothing.words else OPEN


def best(against: Mapping[str, Comparison]) -> str:
    """Better than each; refuted by one that is better, or than which it can only be better by a trifle."""
    if any(c.verdict == "worse" or c.high < MARGIN for c in against.values()):
        return FAILS
    return HOLDS if all(c.verdict == "better" for c in against.values()) else OPEN


def comparable(to_the_best: Comparison) -> str:
    """The interval lies above the margin, or below it."""
    return HOLDS if to_the_best.low > -MARGIN else FAILS if to_the_best.high < -MARGIN else OPEN


def steadier(own: Sequence[float], others: Mapping[str, Sequence[float]]) -> str:
    """Surely the smallest spread; refuted by one that is surely smaller. Few values have no spread to speak of."""
    if len(own) < FEWEST:
        return OPEN
    chance = holm([float(levene(own, values, center="median").pvalue) for values in others.values()])
    sure = [values for values, p in zip(others.values(), chance, strict=True) if p < LEVEL]
    smaller = [np.std(values) < np.std(own) for values in sure]
    return FAILS if any(smaller) else HOLDS if len(sure) == len(others) else OPEN


def apart(c: Comparison) -> str:
    """Whether samples of a memory are of their class almost as often as real ones."""
    return HOLDS if c.low > -BEHIND else FAILS if c.high < -BEHIND else OPEN


def little(pairs: Sequence[Both], shares: Sequence[Comparison]) -> str:
    """Better, and surely by less than half of Naive's forgetting; refuted by a worse one, or by surely more."""
    words = [word for pair in pairs for word in pair.words]
    if "worse" in words or any(share.low > 0 for share in shares):
        return FAILS
    return HOLDS if set(words) == {"better"} and all(share.high < 0 for share in shares) else OPEN
