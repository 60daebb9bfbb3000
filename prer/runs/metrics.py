"""Metrics: pure functions of the matrix R, where R[i][j] is the accuracy on task j after task i.

Each takes one seed's matrix [M, M] (NaN: not evaluated) and returns one number, NaN where it is undefined.
"""

# M tasks

from __future__ import annotations

from collections.abc import Callable

import numpy as np

Matrix = np.ndarray


def accuracy(R: Matrix) -> float:
    """The paper's Accuracy: the mean of the lower triangle with its diagonal, over M (M + 1) / 2.

    Example:
        >>> accuracy(np.array([[100.0, np.nan], [80.0, 90.0]]))
        90.0
    """
    return float(R[np.tril_indices(len(R))].mean())


def bwt(R: Matrix) -> float:
    """The paper's backward transfer: the mean of R[i][j] - R[j][j] over all i > j.

    Example:
        >>> bwt(np.array([[100.0, np.nan], [80.0, 90.0]]))
        -20.0
    """
    i, j = np.tril_indices(len(R), -1)
    return float((R[i, j] - R[j, j]).mean()) if len(i) else float("nan")


def final_accuracy(R: Matrix) -> float:
    """GEM's ACC: the mean accuracy on all tasks after the last one."""
    return float(R[-1].mean())


def average_incremental_accuracy(R: Matrix) -> float:
    """The mean over i of the mean accuracy on all tasks seen after task i.

    Example:
        >>> average_incremental_accuracy(np.array([[100.0, np.nan], [80.0, 90.0]]))
        92.5
    """
    return float(np.mean([row[: i + 1].mean() for i, row in enumerate(R)]))


def final_bwt(R: Matrix) -> float:
    """GEM's BWT: the mean of R[M][j] - R[j][j] over the tasks before the last."""
    return float((R[-1] - R.diagonal())[:-1].mean()) if len(R) > 1 else float("nan")


def forgetting_first(R: Matrix) -> float:
    """First minus last: how much a task lost since it was learned, mean over the tasks before the last."""
    return -final_bwt(R) + 0.0


def forgetting_best(R: Matrix) -> float:
    """Best minus last: how much a task lost since it was best, mean over the tasks before the last."""
    if len(R) < 2:
        return float("nan")
    return float(np.mean([np.nanmax(R[j:-1, j]) - R[-1, j] for j in range(len(R) - 1)]))


def diagonal(R: Matrix) -> float:
    """The mean accuracy on each task right after it was learned, weighted as in Accuracy (M, M-1, ..., 1).

    With it, Accuracy = diagonal + (M - 1) / (M + 1) * BWT, a check of any table.
    """
    return float(np.average(R.diagonal(), weights=np.arange(len(R), 0, -1)))


METRICS: dict[str, Callable[[Matrix], float]] = {
    f.__name__: f
    for f in (
        accuracy,
        bwt,
        final_accuracy,
        average_incremental_accuracy,
        final_bwt,
        forgetting_first,
        forgetting_best,
    )
}


def forward_transfer(R: Matrix, untrained: np.ndarray) -> float:
    """GEM's FWT: the mean of R[i-1][i] - untrained[i], the gain on a task from earlier tasks alone.

    Undefined, and NaN, if every task has its own head.

    Example:
        >>> forward_transfer(np.array([[100.0, 70.0], [80.0, 90.0]]), np.array([np.nan, 50.0]))
        20.0
    """
    ahead = R.diagonal(1) - untrained[1:]
    return float(np.nanmean(ahead)) if np.isfinite(ahead).any() else float("nan")


def share_right(confusion: np.ndarray) -> float:
    """Per cent of all test samples that are predicted correctly, from a confusion matrix [C, C].

    Example:
        >>> share_right(np.array([[9, 1], [3, 7]]))
        80.0
    """
    return float(100 * confusion.trace() / confusion.sum())


def class_accuracy(confusion: np.ndarray) -> np.ndarray:
    """Per cent of the test samples of each class that are predicted correctly [C]; NaN if a class has none."""
    count = confusion.sum(1)
    return np.where(count > 0, 100 * confusion.diagonal() / np.maximum(count, 1), np.nan)


def summary(matrix: np.ndarray, untrained: np.ndarray) -> dict[str, dict | None]:
    """Every metric of a result, from all seeds' matrices [S, M, M] and untrained accuracies [S, M]."""
    metrics: dict[str, dict | None] = {name: spread([metric(R) for R in matrix]) for name, metric in METRICS.items()}
    ahead = [forward_transfer(R, b) for R, b in zip(matrix, untrained, strict=True)]
    return metrics | {"forward_transfer": None if np.isnan(ahead).any() else spread(ahead)}


def spread(values: list[float]) -> dict:
    """Mean, standard deviation (n - 1) and the values; NaN becomes None, as JSON has no NaN."""
    std = float(np.std(values, ddof=1)) if len(values) > 1 else float("nan")
    return {"mean": _known(float(np.mean(values))), "std": _known(std), "values": [_known(v) for v in values]}


def _known(value: float) -> float | None:
    return None if np.isnan(value) else value
