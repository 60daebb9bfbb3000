"""Rules for when a claim holds, does not hold or is not decided, from comparisons and numbers alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from scipy.stats import levene

from prer.runs.significance import LEVEL, MARGIN, Comparison, holm

BEHIND = 5.0  # points by which samples may be recognised less often than test images, and still count as good
FEWEST = 5  # seeds at least to judge a spread; with two, Levene's test finds anything significant
HOLDS, FAILS, OPEN = "holds", "does not hold", "not decided"


class Both(NamedTuple):
    """A pair compared by both metrics."""

    bwt: Comparison
    accuracy: Comparison

    @property
    def words(self) -> list[str]:
        """The verdicts on the first, by BWT and by Accuracy."""
        return [c.verdict for c in self]


def better(*pairs: Both) -> str:
    """Holds if all are better; refuted by a single worse one."""
    words = [word for pair in pairs for word in pair.words]
    return HOLDS if set(words) == {"better"} else FAILS if "worse" in words else OPEN


def improves(pair: Both) -> str:
    """Holds if one metric is better and the other not worse; refuted if one is worse, or both gains are negligible."""
    if "worse" in pair.words or all(c.high < MARGIN for c in pair):
        return FAILS
    return HOLDS if "better" in pair.words and set(pair.words) <= {"better", "not worse"} else OPEN


def remembers(pair: Both) -> str:
    """Holds if BWT is better and Accuracy not worse; refuted by a worse one."""
    if pair.bwt.verdict == "better" and pair.accuracy.verdict in ("better", "not worse"):
        return HOLDS
    return FAILS if "worse" in pair.words else OPEN


def classifies(pair: Both) -> str:
    """Holds if Accuracy is better; refuted if it is worse."""
    return {"better": HOLDS, "worse": FAILS}.get(pair.accuracy.verdict, OPEN)


def forgets_less(pair: Both) -> str:
    """Holds if BWT is better; refuted if it is worse."""
    return {"better": HOLDS, "worse": FAILS}.get(pair.bwt.verdict, OPEN)


def easier(generated: Both, nothing: Both) -> str:
    """Holds if ours is better than pixels and no generation is not; otherwise the generator need not be the reason."""
    return HOLDS if generated.words == ["better", "better"] and "better" not in nothing.words else OPEN


def best(against: Mapping[str, Comparison]) -> str:
    """Holds if better than each; refuted if worse than one, or if the gain over one is negligible."""
    if any(c.verdict == "worse" or c.high < MARGIN for c in against.values()):
        return FAILS
    return HOLDS if all(c.verdict == "better" for c in against.values()) else OPEN


def comparable(to_the_best: Comparison) -> str:
    """Holds if the whole interval lies above -MARGIN; refuted if it lies below."""
    return HOLDS if to_the_best.low > -MARGIN else FAILS if to_the_best.high < -MARGIN else OPEN


def steadier(own: Sequence[float], others: Mapping[str, Sequence[float]]) -> str:
    """Holds if the spread is significantly the smallest; refuted by a significantly smaller one."""
    if len(own) < FEWEST:
        return OPEN
    chance = holm([float(levene(own, values, center="median").pvalue) for values in others.values()])
    sure = [values for values, p in zip(others.values(), chance, strict=True) if p < LEVEL]
    smaller = [np.std(values) < np.std(own) for values in sure]
    return FAILS if any(smaller) else HOLDS if len(sure) == len(others) else OPEN


def apart(c: Comparison) -> str:
    """Holds if samples are recognised as their class almost as often as real ones, within BEHIND points."""
    return HOLDS if c.low > -BEHIND else FAILS if c.high < -BEHIND else OPEN


def little(shares: Sequence[Comparison]) -> str:
    """Holds if significantly less than half of Naive's forgetting is removed; refuted if one removes more."""
    if any(share.low > 0 for share in shares):
        return FAILS
    return HOLDS if all(share.high < 0 for share in shares) else OPEN
