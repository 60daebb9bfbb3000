"""Every metric against values worked out by hand and against independent double loops."""

import json
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from prer.runs import metrics

few = settings(max_examples=80, deadline=None, database=None)
nan = float("nan")
TWO = [[100, nan], [80, 90]]
THREE = [[90, nan, nan], [60, 80, nan], [70, 50, 100]]
RISING = [[50, nan], [60, 90]]
BY_HAND = {  # the metrics in the order of NAMES
    "two": (TWO, 90, -20, 85, (100 + 85) / 2, -20, 20, 20, (2 * 100 + 90) / 3),
    # bwt: (60-90) + (70-90) + (50-80) over 3; best of task 1 is 90, of task 2 it is 80
    "three": (
        THREE,
        75,
        -80 / 3,
        220 / 3,
        (90 + 70 + 220 / 3) / 3,
        (-20 - 30) / 2,
        25,
        25,
        (3 * 90 + 2 * 80 + 100) / 6,
    ),
    "rising": (RISING, 200 / 3, 10, 75, (50 + 75) / 2, 10, -10, -10, 190 / 3),
    "best is not the first": (
        [[70, nan, nan], [90, 60, nan], [65, 60, 80]],
        425 / 6,
        5,
        205 / 3,
        (70 + 75 + 205 / 3) / 3,
        -2.5,
        2.5,
        12.5,
        410 / 6,
    ),
    "one": ([[88]], 88, nan, 88, 88, nan, nan, nan, 88),
}
NAMES = (
    "accuracy",
    "bwt",
    "final_accuracy",
    "average_incremental_accuracy",
    "final_bwt",
    "forgetting_first",
    "forgetting_best",
    "diagonal",
)


@pytest.mark.parametrize("case", BY_HAND)
@pytest.mark.parametrize("name", NAMES)
def test_metrics_by_hand(case, name):
    R, *expected = BY_HAND[case]
    value = getattr(metrics, name)(np.array(R, float))
    assert type(value) is float
    assert value == pytest.approx(expected[NAMES.index(name)], nan_ok=True)


@st.composite
def matrices(draw, least=1):
    """A matrix of per cents, not evaluated above the diagonal."""
    M = draw(st.integers(least, 7))
    R = np.full((M, M), nan)
    for i in range(M):
        R[i, : i + 1] = draw(st.lists(st.floats(0, 100), min_size=i + 1, max_size=i + 1))
    return R


def mean(values):
    return math.fsum(values) / len(values) if values else nan


def by_loops(R):
    """The definitions, one number at a time."""
    M = len(R)
    lower, moved, best = [], [], []
    for j in range(M):
        for i in range(j, M):
            lower.append(R[i][j])
            if i > j:
                moved.append(R[i][j] - R[j][j])
        if j < M - 1:
            best.append(max(R[i][j] for i in range(j, M - 1)) - R[M - 1][j])
    last = [R[M - 1][j] - R[j][j] for j in range(M - 1)]
    first = [R[j][j] - R[M - 1][j] for j in range(M - 1)]
    incremental = [mean([R[i][j] for j in range(i + 1)]) for i in range(M)]
    return dict(zip(NAMES, map(mean, (lower, moved, list(R[-1]), incremental, last, first, best)), strict=False))


@few
@given(matrices())
def test_metrics_agree_with_their_definitions(R):
    for name, expected in by_loops(R.tolist()).items():
        assert metrics.METRICS[name](R) == pytest.approx(expected, abs=1e-9, nan_ok=True), name


@few
@given(matrices(least=2))
def test_accuracy_is_the_diagonal_and_a_share_of_bwt(R):
    M = len(R)
    expected = metrics.diagonal(R) + (M - 1) / (M + 1) * metrics.bwt(R)
    assert metrics.accuracy(R) == pytest.approx(expected, abs=1e-9)


@few
@given(matrices(), st.floats(0, 100))
def test_accuracies_before_a_task_is_learned_do_not_count(R, guess):
    filled = np.where(np.isnan(R), guess, R)
    for name, metric in metrics.METRICS.items():
        assert metric(filled) == pytest.approx(metric(R), nan_ok=True), name


def test_no_forgetting_is_zero_and_not_minus_zero():
    assert math.copysign(1, metrics.forgetting_first(np.full((3, 3), 50.0))) == 1


@few
@given(st.lists(st.floats(-100, 100), min_size=2, max_size=8))
def test_spread_divides_by_n_minus_one(values):
    m = mean(values)
    std = math.sqrt(math.fsum((v - m) ** 2 for v in values) / (len(values) - 1))
    spread = metrics.spread(values)
    assert spread["values"] == values
    assert (spread["mean"], spread["std"]) == pytest.approx((m, std), abs=1e-9)


def test_spread_by_hand():
    assert metrics.spread([1.0, 3.0]) == {"mean": 2.0, "std": pytest.approx(2**0.5), "values": [1.0, 3.0]}


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([5.0], {"mean": 5.0, "std": None, "values": [5.0]}),
        ([nan], {"mean": None, "std": None, "values": [None]}),
        ([nan, nan], {"mean": None, "std": None, "values": [None, None]}),
    ],
)
def test_unknown_values_are_none(values, expected):
    assert metrics.spread(values) == expected


@pytest.mark.parametrize("tasks", [1, 3])
@pytest.mark.parametrize("seeds", [1, 2])
def test_a_summary_has_every_metric_of_the_contract_as_strict_json(tasks, seeds):
    matrix = np.where(np.tri(tasks, dtype=bool), np.random.default_rng(0).uniform(0, 100, (seeds, tasks, tasks)), nan)
    summary = metrics.summary(matrix, np.full((seeds, tasks), nan))
    assert set(summary) == {*NAMES[:-1], "forward_transfer"}
    assert summary["forward_transfer"] is None
    json.dumps(summary, allow_nan=False)
    for name in NAMES[:-1]:
        assert set(summary[name]) == {"mean", "std", "values"}
        assert len(summary[name]["values"]) == seeds
        known = tasks > 1 or "accuracy" in name
        assert (summary[name]["mean"] is not None) == known
        assert (summary[name]["std"] is not None) == (known and seeds > 1)


def test_forward_transfer_is_what_a_task_gains_before_it_is_learned():
    matrix = np.array([[[90, 60, nan], [80, 95, 70], [70, 85, 99]]] * 2, dtype=float)
    untrained = np.array([[nan, 50, 45], [nan, 10, 20]])
    summary = metrics.summary(matrix, untrained)
    assert summary["forward_transfer"]["values"] == [17.5, 50.0]
    # A task with a head of its own has no past to gain from and does not count.
    matrix[:, 0, 1] = untrained[:, 1] = nan
    assert metrics.summary(matrix, untrained)["forward_transfer"]["values"] == [25.0, 50.0]


@few
@given(st.integers(2, 6), st.randoms())
def test_a_confusion_matrix_gives_the_accuracy_in_all_and_of_each_class(C, rng):
    pairs = [(c % C, rng.randrange(C)) for c in range(5 * C)]  # the true class and the predicted one
    confusion = np.zeros((C, C), int)
    for true, predicted in pairs:
        confusion[true, predicted] += 1
    assert metrics.share_right(confusion) == pytest.approx(100 * mean([a == b for a, b in pairs]))
    of_class = [100 * mean([a == b for a, b in pairs if a == c]) for c in range(C)]
    assert metrics.class_accuracy(confusion).tolist() == pytest.approx(of_class)
