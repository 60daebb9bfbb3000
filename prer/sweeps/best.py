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
        by: the name of that metric.
        compared: the number of points that have the metric.
        unfinished: the number of points that started but did not finish: failed, interrupted, or still running.
        missing: the number of points that never started.
    """

    point: Experiment
    folder: RunFolder
    metric: dict[str, Any]
    by: str
    compared: int
    unfinished: int
    missing: int

    def to_test(self) -> Experiment:
        """The winner for the final test: trained on the validation part as well, and tested on the test part."""
        return replace(self.point, stream=replace(self.point.stream, validation=0.0))


def main_metric(points: Sequence[Experiment]) -> str:
    """The metric by which points are compared: the final accuracy if nobody tells the task."""
    return "final_accuracy" if any(point.stream.scenario == "class" for point in points) else "accuracy"


def best(points: Sequence[Experiment], out: Path, by: str = "") -> Best:
    """The point whose metric has the best mean over the seeds; of equal ones the first."""
    by = by or main_metric(points)
    if by not in NAMES:
        raise InputError(f"unknown metric {by!r}{did_you_mean(by, NAMES)}")
    folders = [RunFolder(point.path(out)) for point in points]
    results = [folder.result for folder in folders]
    metrics = {i: result[by] for i, result in enumerate(results) if result is not None and result.get(by)}
    known = [i for i, metric in metrics.items() if metric["mean"] is not None]
    if not known:
        raise InputError(f"no point of the sweep has a result with {by} in {out}; run the sweep first")
    sign = -1 if by.startswith("forgetting") else 1  # less forgetting is better
    winner = max(known, key=lambda i: sign * metrics[i]["mean"])
    begun = sum(result is None and folder.path.exists() for folder, result in zip(folders, results, strict=True))
    missing = results.count(None) - begun
    return Best(points[winner], folders[winner], metrics[winner], by, len(known), begun, missing)
