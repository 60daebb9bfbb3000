"""Names and numbers for the page, whatever a run folder holds."""

import math

import numpy as np
import pytest

from prer.report import formatting
from prer.report.formatting import is_number, metric, numbers, settings, shade_from, signed, true_minus, with_spread


@pytest.mark.parametrize("value", [0, -1.5, 10**17, 1e-300])
def test_numbers_of_a_reasonable_size_are_numbers(value):
    assert is_number(value)


@pytest.mark.parametrize("value", [True, None, "1", [1], math.nan, math.inf, -math.inf, 1e18, 10**400])
def test_other_values_are_not(value):
    assert not is_number(value)


def test_a_list_of_numbers_is_read_as_a_whole_or_not_at_all():
    assert numbers([1, 2.5]) == [1.0, 2.5] and numbers([]) == []
    assert numbers([1, None]) is numbers((1, 2)) is numbers("12") is numbers({1: 2}) is None


@pytest.mark.parametrize("found", [None, 7, {}, {"mean": None}, {"mean": "x"}, {"mean": math.nan}])
def test_a_metric_without_a_mean_is_no_metric(found):
    assert metric({"bwt": found}, "bwt") is None
    assert metric(None, "bwt") is None and with_spread(None) == "–"


def test_a_metric_has_what_can_be_read_of_it():
    whole = {"mean": -1.5, "std": 0.5, "values": [-1, -2], "other": 3}
    assert metric({"bwt": whole}, "bwt") == {"mean": -1.5, "std": 0.5, "values": [-1.0, -2.0]}
    assert metric({"bwt": {"mean": 1, "std": "x", "values": "y"}}, "bwt") == {"mean": 1, "std": None, "values": []}
    assert with_spread(metric({"bwt": whole}, "bwt")) == "−1.50 ± 0.50"


def test_minus_signs_are_typographic_and_nothing_is_shown_for_no_number():
    assert (signed(-2.345), signed(3), signed(None), signed(math.nan), signed(math.inf)) == (
        "−2.35",
        "3.00",
        "",
        "",
        "",
    )
    assert true_minus("1 - 2") == "1 − 2"


@pytest.mark.parametrize(
    ("accuracies", "lowest"),
    [([93.0, 99.0], 80), ([90.0], 80), ([89.9], 70), ([5.0, 80.0], 0), ([100.0], 90), ([np.nan], 0), ([], 0)],
)
def test_the_palest_shade_lies_below_the_lowest_accuracy(accuracies, lowest):
    assert shade_from(np.array([*accuracies, np.nan])) == lowest


def test_settings_are_rows_of_dotted_names():
    table = {"a": 1, "b": {"c": True, "d": {"e": None}, "f": {}}, "g": [1, 2]}
    assert settings(table) == [("a", "1"), ("b.c", "true"), ("b.d.e", "–"), ("b.f", "{}"), ("g", "[1, 2]")]
    assert settings("no table") == settings(None) == []


def test_very_many_and_very_deep_settings_are_cut(monkeypatch):
    monkeypatch.setattr(formatting, "MOST_SETTINGS", 3)
    assert settings(dict.fromkeys("abcde", 1)) == [("a", "1"), ("b", "1"), ("c", "1")]
    deep = {}
    for _ in range(100_000):
        deep = {"a": deep}
    assert settings({"b": deep}) == [("–", "nested too deeply to show")]
