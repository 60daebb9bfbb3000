"""Small sizes for what `prer bench` and benchmarks/training_cost.py measure."""

from prer.bench import seeds, steps, suite
from prer.bench.ready import pictures

STREAM = pictures(3, 128, 8)
TINY = suite.Sizes(steps.Size(64, 2, 1), seeds.Size((8,), 64, 1))


def assert_compared(rows):
    """Every row of a comparison has its times, medians and ratios."""
    for row in rows.values():
        assert row.keys() == {"milliseconds", "median", "times as fast as"}
        assert all(ratios.keys() >= {"median", "low", "high"} for ratios in row["times as fast as"].values())
