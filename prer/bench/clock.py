"""Timing: candidates take turns several times, and neighbouring turns are compared."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch

Turn = Callable[[], float]  # runs some steps and returns the seconds of one
Times = dict[str, list[float]]  # seconds of a step in every turn, by candidate


def alternate(turns: Mapping[str, Turn], repeats: int) -> Times:
    """Measure the seconds of a step of each candidate in alternating turns, so that noise affects all of them.

    The order is reversed from one round to the next, since the second candidate finds warm caches. A first round, in
    which libraries initialise themselves, is not counted.
    """
    for turn in turns.values():
        turn()
    times: Times = {name: [] for name in turns}
    for number in range(repeats):
        for name in list(turns)[:: -1 if number % 2 else 1]:
            times[name].append(turns[name]())
    return times


def repeated(step: Callable[[], object], count: int, device: str) -> Turn:
    """A turn that calls `step` `count` times."""

    def turn() -> float:
        synchronise(device)
        begin = time.perf_counter()
        for _ in range(count):
            step()
        synchronise(device)
        return (time.perf_counter() - begin) / count

    return turn


def synchronise(device: str) -> None:
    """Wait for a GPU, which runs asynchronously."""
    if device == "cuda":
        torch.cuda.synchronize()


def ratio(slower: Sequence[float], faster: Sequence[float]) -> dict[str, float]:
    """Ratio of the first times to the second: the median over neighbouring turns, and the quartiles.

    On a busy machine the fastest turns are the least disturbed; their ratio shows whether noise affects the median.

    Example:
        >>> ratio([2.0, 4.0, 9.0], [1.0, 2.0, 3.0])
        {'median': 2.0, 'low': 2.0, 'high': 2.5, 'of the fastest': 2.0}
    """
    ratios = sorted(a / b for a, b in zip(slower, faster, strict=True))
    low, _, high = statistics.quantiles(ratios, n=4, method="inclusive") if len(ratios) > 1 else ratios * 3
    return {"median": statistics.median(ratios), "low": low, "high": high, "of the fastest": min(slower) / min(faster)}


def summary(times: Times, ours: str = "ours") -> dict[str, Any]:
    """Record of a comparison: all times in milliseconds, their medians, and the ratios of the others to ours."""
    return {
        "milliseconds": {name: [1e3 * t for t in row] for name, row in times.items()},
        "median": {name: 1e3 * statistics.median(row) for name, row in times.items()},
        "times as fast as": {name: ratio(row, times[ours]) for name, row in times.items() if name != ours},
    }
