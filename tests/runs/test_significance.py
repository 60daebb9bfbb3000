"""Paired comparisons: against closed forms, against scipy, and what must hold for any numbers."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from scipy.stats import ttest_rel

from prer.runs.significance import LEVEL, MARGIN, Comparison, compare, family, holm

quickly = settings(derandomize=True, database=None, deadline=None, max_examples=100)
PS = st.lists(st.floats(0, 1), max_size=12)
SEEDS = st.lists(st.tuples(st.floats(-100, 100), st.floats(-100, 100)), min_size=2, max_size=20)


def test_two_seeds_have_a_closed_form():
    # One degree of freedom is Cauchy's distribution: p = 1 - 2 atan(t) / pi, and its 97.5 % point is tan(0.475 pi).
    found = compare([3.0, 7.0], [1.0, 1.0])  # differences 2 and 6: mean 4, standard error 2
    assert found.difference == 4
    assert found.p == pytest.approx(1 - 2 * math.atan(2) / math.pi)
    half = 2 * math.tan(0.475 * math.pi)
    assert (found.low, found.high) == (pytest.approx(4 - half), pytest.approx(4 + half))


@quickly
@given(st.integers(0, 2**32 - 1), st.integers(2, 12))
def test_it_agrees_with_scipy(draw, n):
    a, b = np.random.default_rng(draw).normal(size=(2, n))
    found, scipys = compare(a, b), ttest_rel(a, b)
    assert found.p == pytest.approx(scipys.pvalue)
    interval = scipys.confidence_interval(0.95)
    assert (found.low, found.high) == (pytest.approx(interval.low), pytest.approx(interval.high))


@quickly
@given(st.integers(0, 2**32 - 1), st.integers(2, 20), st.floats(0, 1))
def test_the_corrected_test_is_that_of_a_larger_variance(draw, n, overlap):
    a, b = np.random.default_rng(draw).normal(size=(2, n))
    found, differences = compare(a, b, overlap), a - b
    scale = np.sqrt((1 / n + overlap) * differences.var(ddof=1))
    of_mean = stats.t(n - 1, loc=differences.mean(), scale=scale)
    assert (found.low, found.high) == (pytest.approx(of_mean.ppf(0.025)), pytest.approx(of_mean.ppf(0.975)))
    assert found.p == pytest.approx(2 * min(of_mean.cdf(0), of_mean.sf(0)))


def test_the_correction_is_exact_for_differences_with_the_correlation_that_it_assumes():
    n, share = 10, 0.2  # n_test / n; n_test / n_train is 0.25
    rng = np.random.default_rng(0)
    common, own = rng.normal(size=(4000, 1)), rng.normal(size=(4000, n))
    differences = np.sqrt(share) * common + np.sqrt(1 - share) * own
    corrected, plain = ([compare(d, np.zeros(n), overlap).p for d in differences] for overlap in (0.25, 0.0))
    assert stats.kstest(corrected, "uniform").pvalue > 0.05
    assert np.mean(np.less(corrected, LEVEL)) == pytest.approx(LEVEL, abs=0.01)
    assert np.mean(np.less(plain, LEVEL)) > 4 * LEVEL


@quickly
@given(SEEDS)
def test_exchanging_both_sides_changes_only_the_sign(pairs):
    a, b = zip(*pairs, strict=True)
    one, other = compare(a, b), compare(b, a)
    assert one.p == other.p and one.low <= one.difference <= one.high and 0 <= one.p <= 1
    assert (one.difference, one.low, one.high) == (-other.difference, -other.high, -other.low)


def test_what_has_no_spread():
    same = compare([1.5, 2.5, 3.5], [1.5, 2.5, 3.5])
    assert same == Comparison(0.0, 0.0, 0.0, 1.0, 1.0) and same.verdict == "not worse"
    ahead = compare([2.0, 3.0, 4.0], [1.0, 2.0, 3.0])
    assert ahead == Comparison(1.0, 1.0, 1.0, 0.0, 0.0) and ahead.verdict == "better"
    one = compare([5.0], [1.0])
    assert (one.p, one.verdict) == (1.0, "not decided") and one.low == -math.inf


def test_holm_by_hand():
    # sorted 0.01, 0.02, 0.03, 0.2 times 4, 3, 2, 1, and never below an earlier one
    assert holm([0.03, 0.01, 0.2, 0.02]) == pytest.approx([0.06, 0.04, 0.2, 0.06])
    assert holm([]) == [] and holm([0.9, 0.8]) == [1.0, 1.0] and holm([0.04]) == [0.04]


@quickly
@given(PS)
def test_holm_lies_between_p_and_bonferroni(ps):
    for p, adjusted in zip(ps, holm(ps), strict=True):
        assert p <= adjusted <= min(1, len(ps) * p)


@quickly
@given(PS)
def test_holm_keeps_the_order(ps):
    ranked = sorted(zip(ps, holm(ps), strict=True))
    assert [adjusted for _, adjusted in ranked] == sorted(adjusted for _, adjusted in ranked)


@quickly
@given(PS.flatmap(lambda ps: st.tuples(st.just(ps), st.permutations(range(len(ps))))))
def test_holm_does_not_depend_on_the_order(given):
    ps, order = given
    adjusted = holm(ps)
    assert holm([ps[i] for i in order]) == [adjusted[i] for i in order]


@quickly
@given(st.lists(st.floats(0.001, 1), min_size=1, max_size=8), st.floats(0, 1))
def test_one_more_comparison_never_helps(ps, another):
    assert all(more >= fewer for more, fewer in zip(holm([*ps, another]), holm(ps), strict=False))


@pytest.mark.parametrize(
    ("difference", "low", "adjusted", "verdict"),
    [
        (0.5, 0.1, 0.049, "better"),
        (-0.5, -0.9, 0.049, "worse"),
        (-0.05, -0.08, 0.01, "not worse"),  # by less than the margin, and surely
        (-0.15, -0.2, 0.01, "worse"),
        (-0.15, -0.2, 0.05, "not decided"),
        (0.5, -0.19, 0.05, "not worse"),
        (-0.1, -0.19, 0.3, "not worse"),
        (0.5, -0.2, 0.2, "not decided"),
        (-3.0, -9.0, 0.2, "not decided"),
    ],
)
def test_verdicts(difference, low, adjusted, verdict):
    assert (LEVEL, MARGIN) == (0.05, 0.2)
    assert Comparison(difference, low, 2 * difference - low, adjusted / 3, adjusted).verdict == verdict


def test_a_family_is_judged_together():
    alone = [compare([2.0, 2.1, 1.9], [1.0, 1.2, 1.1]), compare([1.0, 2.0, 3.0], [1.1, 1.8, 3.1])]
    together = family(alone)
    assert [c.adjusted for c in together] == holm([c.p for c in alone])
    assert [(c.difference, c.p) for c in together] == [(c.difference, c.p) for c in alone]
