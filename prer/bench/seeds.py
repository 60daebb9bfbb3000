"""Throughput of each seed when one, five and twenty seeds train together."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from prer.bench.clock import alternate, ratio, summary
from prer.bench.ready import after, pictures
from prer.learners import LEARNERS

SEEDS = (1, 5, 20)
PAST = 1  # tasks learned before, so that there is something to rehearse


class Size(NamedTuple):
    """How much is measured."""

    sides: tuple[int, ...]  # of the images: as in scikit-learn's digits, and in MNIST
    samples: int  # of a task
    repeats: int


FULL = Size((8, 28), 256, 3)
QUICK = Size((8,), 256, 2)


def compare(size: Size, device: str = "cpu", say: Callable[[str], object] = str) -> dict[str, Any]:
    """Measure naive training and PRER with each number of seeds."""
    results = {}
    for side in size.sides:
        for name in ("naive", "prer"):
            case = f"{name}, {side}x{side}"
            say(f"{' and '.join(map(str, SEEDS))} seeds of {case}")
            results[case] = of_learner(name, side, size, device)
    return results


def of_learner(name: str, side: int, size: Size, device: str) -> dict[str, Any]:
    """Throughput of each seed when several train together, relative to a seed alone."""
    settings: dict[str, Any] = {"batch": 64, "epochs": 2}
    settings |= {"epochs_autoencoder": 2, "density": {"epochs": 2}} if name == "prer" else {}
    stream, turns = pictures(PAST + 1, size.samples, side), {}
    for seeds in SEEDS:
        turns[str(seeds)] = after(PAST, LEARNERS[name](**settings), stream, seeds, device).turn
    times = alternate(turns, size.repeats)
    per_seed = {n: [t / int(n) for t in row] for n, row in times.items()}
    gain = {n: ratio(per_seed["1"], row) for n, row in per_seed.items()}
    return {key: value for key, value in summary(times, "1").items() if key != "times as fast as"} | {
        "throughput of a seed": gain
    }
