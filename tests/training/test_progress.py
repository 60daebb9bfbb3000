"""How long training still takes."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.terminal import epoch

from prer.training.progress import time_left

PHASES = {"a": 2, "b": 3}


@pytest.mark.parametrize(
    ("event", "pace", "left"),
    [
        (epoch(0, "a", 0, 2), {"a": 10}, 1 * 10 + 3 * 10 + 2 * 10 + 3 * 10),  # b is thought to be as slow as a
        (epoch(0, "b", 0, 3), {"a": 4, "b": 1}, 2 * 1 + 2 * 4 + 3 * 1),
        (epoch(0, "b", 2, 3), {"a": 4, "b": 2}, 2 * 4 + 3 * 2),
        (epoch(1, "a", 0, 2), {"a": 6, "b": 2}, 1 * 6 + 3 * 2),
        (epoch(1, "b", 1, 3), {"a": 6, "b": 7}, 1 * 7),
        (epoch(1, "b", 2, 3), {"a": 6, "b": 9}, 0),
    ],
)
def test_what_is_left_is_counted_at_the_pace_of_each_phase(event, pace, left):
    assert time_left(event, 2, PHASES, pace) == pytest.approx(left)


def test_a_phase_that_was_not_seen_has_the_mean_pace():
    assert time_left(epoch(0, "b", 1, 2), 1, {"a": 1, "b": 2, "c": 10}, {"a": 1.0, "b": 3.0}) == 10 * 2


@settings(max_examples=40, deadline=None, database=None)
@given(
    st.integers(1, 4),
    st.dictionaries(st.sampled_from("abc"), st.tuples(st.integers(1, 4), st.floats(0.1, 9)), min_size=1),
)
def test_at_a_steady_pace_it_is_exactly_the_epochs_ahead(tasks, phases):
    plan = [(t, p, e, n, s) for t in range(tasks) for p, (n, s) in phases.items() for e in range(n)]
    pace = {phase: seconds for phase, (_, seconds) in phases.items()}
    for at, (task, phase, number, epochs, _) in enumerate(plan):
        left = time_left(epoch(task, phase, number, epochs), tasks, {p: n for p, (n, _) in phases.items()}, pace)
        assert left == pytest.approx(sum(step[-1] for step in plan[at + 1 :]), abs=1e-9)
