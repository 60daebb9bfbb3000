"""The rules of the paper's claims: what they are given, and what follows."""

import numpy as np
import pytest
from scipy.stats import expon, norm

from prer.paper import rules
from prer.paper.rules import FAILS, HOLDS, OPEN, Both
from prer.runs.significance import Comparison, compare


def of(difference, half, p):
    return Comparison(difference, difference - half, difference + half, p / 20, p)


BETTER, WORSE, UNKNOWN = of(1.0, 0.5, 0.01), of(-1.0, 0.5, 0.01), of(0.5, 1.0, 0.3)
NOT_WORSE, SAME, SLIGHTLY_LESS = of(0.1, 0.2, 0.4), of(0.0, 0.1, 0.9), of(-0.1, 0.05, 0.01)
SLIGHTLY_MORE, PERHAPS_LESS = of(0.1, 0.05, 0.01), of(-0.3, 0.4, 0.2)
FEW, LARGE = of(-1.0, 0.5, 1), of(1.0, 0.5, 1)  # what is left of half of Naive's forgetting


def test_the_words_of_the_tables_below():
    words = [c.verdict for c in (BETTER, WORSE, UNKNOWN, NOT_WORSE, SAME, SLIGHTLY_LESS)]
    assert words == ["better", "worse", "not decided", "not worse", "not worse", "not worse"]
    assert (SLIGHTLY_MORE.verdict, PERHAPS_LESS.verdict) == ("better", "not decided")


@pytest.mark.parametrize(
    ("rule", "pairs", "verdict"),
    [
        (rules.better, [(BETTER, BETTER)], HOLDS),
        (rules.better, [(BETTER, BETTER), (BETTER, BETTER)], HOLDS),
        (rules.better, [(BETTER, BETTER), (BETTER, NOT_WORSE)], OPEN),
        (rules.better, [(BETTER, BETTER), (WORSE, BETTER)], FAILS),
        (rules.better, [(SAME, SAME)], OPEN),
        (rules.improves, [(BETTER, BETTER)], HOLDS),
        (rules.improves, [(BETTER, NOT_WORSE)], HOLDS),
        (rules.improves, [(SLIGHTLY_LESS, BETTER)], HOLDS),
        (rules.improves, [(BETTER, UNKNOWN)], OPEN),
        (rules.improves, [(BETTER, WORSE)], FAILS),
        (rules.improves, [(WORSE, UNKNOWN)], FAILS),
        (rules.improves, [(NOT_WORSE, SAME)], OPEN),  # may be better by more than the margin
        (rules.improves, [(SAME, SAME)], FAILS),  # cannot
        (rules.improves, [(SAME, UNKNOWN)], OPEN),
        (rules.improves, [(SLIGHTLY_MORE, PERHAPS_LESS)], FAILS),  # the one surely, and both by a trifle at most
        (rules.remembers, [(BETTER, NOT_WORSE)], HOLDS),
        (rules.remembers, [(BETTER, BETTER)], HOLDS),
        (rules.remembers, [(BETTER, UNKNOWN)], OPEN),
        (rules.remembers, [(BETTER, WORSE)], FAILS),
        (rules.remembers, [(NOT_WORSE, BETTER)], OPEN),
        (rules.remembers, [(WORSE, BETTER)], FAILS),
        (rules.classifies, [(WORSE, BETTER)], HOLDS),
        (rules.classifies, [(BETTER, WORSE)], FAILS),
        (rules.classifies, [(BETTER, NOT_WORSE)], OPEN),
        (rules.easier, [(BETTER, BETTER), (WORSE, WORSE)], HOLDS),
        (rules.easier, [(BETTER, BETTER), (NOT_WORSE, UNKNOWN)], HOLDS),
        (rules.easier, [(BETTER, BETTER), (BETTER, WORSE)], OPEN),
        (rules.easier, [(BETTER, BETTER), (WORSE, BETTER)], OPEN),
        (rules.easier, [(BETTER, NOT_WORSE), (WORSE, WORSE)], OPEN),
        (rules.easier, [(WORSE, WORSE), (WORSE, WORSE)], OPEN),
    ],
)
def test_rules_of_pairs(rule, pairs, verdict):
    assert rule(*(Both(*pair) for pair in pairs)) == verdict


@pytest.mark.parametrize(
    ("against", "verdict"),
    [
        ([BETTER, BETTER], HOLDS),
        ([BETTER, NOT_WORSE], OPEN),
        ([BETTER, UNKNOWN], OPEN),
        ([BETTER, WORSE], FAILS),
        ([BETTER, SAME], FAILS),  # by a trifle, if at all
        ([BETTER, SLIGHTLY_LESS], FAILS),
        ([BETTER, SLIGHTLY_MORE], FAILS),  # surely by a trifle
        ([UNKNOWN, SLIGHTLY_MORE], FAILS),
    ],
)
def test_the_rule_of_the_best_bwt(against, verdict):
    assert rules.best(dict(enumerate(against))) == verdict


@pytest.mark.parametrize(
    ("difference", "half", "verdict"),
    [(0.5, 0.6, HOLDS), (0.5, 0.8, OPEN), (-0.3, 0.2, OPEN), (-0.3, 0.05, FAILS), (-0.15, 0.04, HOLDS)],
)
def test_the_rule_of_a_comparable_accuracy(difference, half, verdict):
    assert rules.comparable(of(difference, half, 0.5)) == verdict


NORMAL, SKEWED = (law.ppf((np.arange(20) + 0.5) / 20) for law in (norm, expon))


@pytest.mark.parametrize(
    ("own", "others", "verdict"),
    [
        (NORMAL, [3 * NORMAL, 4 * NORMAL], HOLDS),
        (NORMAL, [3 * NORMAL, NORMAL], OPEN),
        (NORMAL, [3 * NORMAL, 0.2 * NORMAL], FAILS),
        (NORMAL, [1.8 * NORMAL], HOLDS),  # p = 0.024
        (NORMAL, [1.8 * NORMAL] * 3, OPEN),  # three times that
        (1.8 * NORMAL, [NORMAL] * 3, OPEN),
        ([1.0, 2.0], [[3.0, 9.0]], OPEN),  # of which the test would be sure, as of the next
        ([1.0, 2.0], [[3.0, 3.5]], OPEN),
        (SKEWED, [2 * SKEWED], OPEN),  # p = 0.065; around the mean it would be 0.023
        (SKEWED, [2.2 * SKEWED], HOLDS),
    ],
)
def test_the_rule_of_the_spread(own, others, verdict):
    assert rules.steadier(own, dict(enumerate(others))) == verdict


@pytest.mark.parametrize(
    ("behind", "wide", "verdict"),
    [(0, 1, HOLDS), (4, 0.1, HOLDS), (4, 5, OPEN), (6, 5, OPEN), (6, 0.1, FAILS), (-3, 1, HOLDS)],
)
def test_the_rule_of_samples_of_their_class(behind, wide, verdict):
    real = np.array([85.0, 86.0, 84.0, 85.0])
    assert rules.apart(compare(real - behind + wide * np.array([1.0, -1, 1, -1]), real)) == verdict
    assert rules.apart(compare([99.0], [99.0])) == OPEN


@pytest.mark.parametrize(
    ("shares", "verdict"),
    [((FEW, FEW), HOLDS), ((FEW, UNKNOWN), OPEN), ((FEW, PERHAPS_LESS), OPEN), ((FEW, LARGE), FAILS)],
)
def test_the_rule_of_not_by_much(shares, verdict):
    assert rules.little(shares) == verdict


@pytest.mark.parametrize(
    ("pair", "bwt", "accuracy"),
    [((BETTER, WORSE), HOLDS, FAILS), ((WORSE, BETTER), FAILS, HOLDS), ((NOT_WORSE, UNKNOWN), OPEN, OPEN)],
)
def test_the_rules_of_one_metric(pair, bwt, accuracy):
    assert (rules.forgets_less(Both(*pair)), rules.classifies(Both(*pair))) == (bwt, accuracy)
