"""The best point of a sweep."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from prer.errors import InputError
from prer.runs.experiment import Experiment
from prer.runs.folder import RunFolder
from prer.runs.metrics import METRICS
from prer.text import did_you_mean

NAMES = (*METRICS, "forward_transfer")


@dataclass(frozen=True)
class Best:
    """The winner among the points that could be compared.

    Attributes:
        point: the winner.
        folder: its run.
        metric: its metric over the seeds: mean, std and values.
        compared: how many points have the metric.
        unfinished: how many were begun and did not end: failed, interrupted, or still running.
        missing: how many were never begun.
    """

    point: Experiment
    folder: RunFolder
    metric: dict[str, Any]
    compared: int
    unfinished: int
    missing: int

    def to_test(self) -> Experiment:
        """The winner as it is to be tested: what was kept for the search is learned, and the test part is used."""
        return replace(self.point, stream=replace(self.point.stream, validation=0.0))


def best(points: Sequence[Experiment], out: Path, by: str = "accuracy") -> Best:
    """The point whose metric has the best mean over the seeds, the first of several."""
    if by not in NAMES:
        raise InputError(f"unknown metric {by!r}{did_you_mean(by, NAMES)}")
    folders = [RunFolder(point.path(out)) for point in points]
    results = [folder.result for folder in folders]
    metrics = {i: result[by] for i, result in enumerate(results) if result is not None and result.get(by)}
    known = [i for i, metric in metrics.items() if metric["mean"] is not None]
    if not known:
        raise InputError(f"no point of the sweep has a result in {out} with {by}; run the sweep first")
    sign = -1 if by.startswith("forgetting") else 1  # what is forgotten should be little
    winner = max(known, key=lambda i: sign * metrics[i]["mean"])
    begun = sum(result is None and folder.path.exists() for folder, result in zip(folders, results, strict=True))
    missing = results.count(None) - begun
    return Best(points[winner], folders[winner], metrics[winner], len(known), begun, missing)
