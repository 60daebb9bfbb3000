"""Times and metrics as text."""

import pytest

from prer.text import clock, plus_minus


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0 s"),
        (7.2, "7 s"),
        (59.4, "59 s"),
        (59.6, "1 min 0 s"),
        (83, "1 min 23 s"),
        (3599.4, "59 min 59 s"),
        (3599.6, "1 h 0 min"),
        (7300, "2 h 1 min"),
        (100_000, "27 h 46 min"),
    ],
)
def test_a_time_is_rounded_as_people_say_it(seconds, text):
    assert clock(seconds) == text


@pytest.mark.parametrize(
    ("mean", "std", "text"),
    [(90, 1.556, "90.00 ± 1.56"), (-0.5, None, "-0.50"), (None, None, "-"), (0.0, 0.0, "0.00 ± 0.00")],
)
def test_a_metric_has_its_spread_where_it_is_known(mean, std, text):
    assert plus_minus({"mean": mean, "std": std, "values": [mean]}) == text
