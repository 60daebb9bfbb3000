"""Which classes are recognised after the last task, and what the others are mistaken for."""

# S seeds, C classes

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from prer.text import excerpt


@dataclass(frozen=True)
class Confusion:
    """A confusion matrix, mean over seeds.

    Attributes:
        labels: the classes, in order of arrival.
        shares: per cent of the test samples of each true class (rows) by predicted class, mean over seeds; NaN where a
            class has no test samples [C, C].
        accuracies: accuracy of each seed on each class in per cent; NaN where it has no test samples [S, C].
    """

    labels: list[str]
    shares: np.ndarray
    accuracies: np.ndarray

    @classmethod
    def of(cls, result: Mapping[str, Any]) -> Confusion:
        """The confusion matrix of a result in the scenario "class"."""
        counts = np.array(result["confusion"], float)
        totals = counts.sum(2, keepdims=True)
        by_seed = 100 * np.divide(counts, totals, out=np.full_like(counts, np.nan), where=totals > 0)
        return cls([excerpt(label) for label in result["classes"]], _mean(by_seed), _diagonals(by_seed))

    @property
    def rows(self) -> list[dict[str, Any]]:
        """For each class its label, its accuracies and the class it is most often mistaken for, if any."""
        found = []
        for label, accuracies, (other, share) in zip(self.labels, self.accuracies.T, self._mistaken, strict=True):
            mistaken = self.labels[other] if share > 0 else None
            known = accuracies[np.isfinite(accuracies)].tolist()
            found.append({"label": label, "accuracies": known, "mistaken": mistaken, "share": share})
        return found

    @property
    def _mistaken(self) -> list[tuple[int, float]]:
        """The class that each class is most often mistaken for, and the share in per cent."""
        wrong = np.nan_to_num(self.shares, nan=0.0)
        np.fill_diagonal(wrong, 0.0)
        return [(int(row.argmax()), float(row.max())) for row in wrong]

    @property
    def summary(self) -> str:
        """The best and the worst class in words; empty if no class has test samples."""
        means = self.shares.diagonal()
        if not np.isfinite(means).any():
            return ""
        best, worst = int(np.nanargmax(means)), int(np.nanargmin(means))
        other, share = self._mistaken[worst]
        text = f"Highest accuracy: class {self.labels[best]}, {means[best]:.1f} %. "
        text += f"Lowest: class {self.labels[worst]}, {means[worst]:.1f} %"
        return f"{text}, mistaken for {self.labels[other]} in {share:.1f} %." if share > 0 else f"{text}."


def _mean(by_seed: np.ndarray) -> np.ndarray:
    """The mean over the seeds that have a value [C, C]; NaN where none has."""
    known = np.isfinite(by_seed)
    seeds = known.sum(0)
    return np.divide(np.nansum(by_seed, 0), seeds, out=np.full(by_seed.shape[1:], np.nan), where=seeds > 0)


def _diagonals(by_seed: np.ndarray) -> np.ndarray:
    return by_seed.diagonal(axis1=1, axis2=2)
