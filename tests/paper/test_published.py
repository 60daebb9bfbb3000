"""The numbers that the paper prints."""

import re

import numpy as np
import pytest

from prer.paper import ABLATION, DATA, METHODS
from prer.paper.features import SOURCES
from prer.paper.published import FORMULAS, TABLE1, TABLE2, TITLES, implied_diagonal, published
from prer.paper.table2 import KEPT


def test_the_papers_numbers_are_all_there():
    assert {data: set(rows) for data, rows in TABLE1.items()} == {data: set(METHODS) for data in DATA}
    assert {data: set(rows) for data, rows in TABLE2.items()} == {data: set(METHODS) for data in ABLATION}
    assert set(FORMULAS) == set(KEPT) == set(METHODS)
    further = {"joint", "replay", "der", "lwf-classic", "prer-no-anchor", "prer-distilled", "prer-literal"}
    assert {*DATA, *METHODS, *SOURCES, "digits", *further} == set(TITLES)
    assert (
        published("mnist", "prer-literal") == published("mnist", "prer-no-anchor") == published("mnist", "prer")
        and published("digits", "prer") is None
    )


# The rows of the paper's source, as they stand there but for bold, bars and spaces: naive to prer, MNIST to CIFAR10.
TEX1 = r"""
-10.09_{\pm 2.46} 92.95_{\pm 1.62} -5.09_{\pm 1.46} 95.95_{\pm 1.04} -12.61_{\pm 1.12} 84.81_{\pm 0.80} -24.33_{\pm 5.51} 71.28_{\pm 3.66}
-7.17_{\pm 1.56} 94.94_{\pm 1.04} -4.30_{\pm 3.64} 94.44_{\pm 1.89} -12.19_{\pm 0.73} 88.74_{\pm 0.48} -24.77_{\pm 0.94} 70.71_{\pm 0.30}
-7.89_{\pm 1.44} 94.84_{\pm 0.95} -3.60_{\pm 3.45} 95.53_{\pm 2.36} -10.77_{\pm 1.10} 89.32_{\pm 0.73} -23.95_{\pm 4.12} 71.65_{\pm 4.12}
-0.60_{\pm 0.24} 99.10_{\pm 0.16} -1.62_{\pm 0.46} 97.77_{\pm 0.44} -2.41_{\pm 0.32} 95.22_{\pm 0.63} -5.50_{\pm 0.51} 82.69_{\pm 0.69}
-0.36_{\pm 0.47} 99.39_{\pm 0.48} -0.73_{\pm 0.30} 98.68_{\pm 0.29} -1.63_{\pm 0.07} 95.32_{\pm 0.06} -4.73_{\pm 0.63} 82.22_{\pm 0.73}
-0.14_{\pm 0.01} 99.41_{\pm 0.10} -0.26_{\pm 0.09} 98.70_{\pm 0.20} -0.46_{\pm 0.17} 95.23_{\pm 0.06} -3.63_{\pm 0.64} 82.67_{\pm 0.94}
"""  # noqa: E501
TEX2 = "- 9 - 20\n1960K 20 7680K 30\n310K 12 2742K 25\n1960K 60 7680K 70\n834K 15 8180K 40\n148K 20 1279K 50"


def test_the_papers_numbers_are_those_of_its_source():
    for method, line in zip(METHODS, TEX1.strip().splitlines(), strict=True):
        numbers = [float(number) for number in re.findall(r"-?\d+\.\d\d", line)]
        of_data = [TABLE1[data][method] for data in DATA]
        assert [number for pair in of_data for figure in pair for number in figure] == numbers
    for method, line in zip(METHODS, TEX2.splitlines(), strict=True):
        of_data = [TABLE2[data][method] for data in ABLATION]
        kept = ["-" if cost.kilofloats is None else f"{cost.kilofloats}K" for cost in of_data]
        words = [word for k, cost in zip(kept, of_data, strict=True) for word in (k, str(cost.minutes))]
        assert words == line.split()


def test_one_pair_of_the_paper_is_impossible():
    implied = {(d, m): implied_diagonal(p.bwt.mean, p.accuracy.mean) for d in TABLE1 for m, p in TABLE1[d].items()}
    assert [key for key, value in implied.items() if value > 100] == [("mnist", "ewc")]
    assert implied["mnist", "ewc"] == pytest.approx(100.10)
    assert min(implied.values()) > 80  # no pair is off by a misplaced digit


def test_the_papers_lwf_and_ewc_are_not_far_from_naive():
    for rows in TABLE1.values():
        for method in ("lwf", "ewc"):
            spread = np.hypot(rows[method].bwt.std, rows["naive"].bwt.std)
            assert abs(rows[method].bwt.mean - rows["naive"].bwt.mean) < 2 * spread
