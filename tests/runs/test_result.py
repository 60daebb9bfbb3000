"""What a run has measured: the matrix, what is kept of the past, and results as plain values."""

import json

import numpy as np
import pytest
import torch

from prer.errors import InputError
from prer.learners.interfaces import MemorySize
from prer.runs.result import KEPT, Measurements, Result
from prer.training.loop import Loop

nan = float("nan")


class Learner:
    """Keeps five floats and three samples."""

    transient_floats_ = 7

    def __init__(self):
        self.loop_ = Loop()

    def memory_size(self):
        return MemorySize(5, 3)


@pytest.fixture(autouse=True)
def known_accuracies(monkeypatch):
    accuracies = lambda learner, task: torch.tensor([10.0 * task, 10.0 * task + 1])  # noqa: E731
    monkeypatch.setattr("prer.runs.result.accuracy_of", accuracies)


def measured():
    """Two tasks of two seeds; the head of the second task was there before it was learned."""
    found, learner = Measurements(), Learner()
    found.untrained.append(np.full(2, nan))
    found.test(learner, [1])
    found.untrained.append(np.full(2, nan))
    found.foresee(np.array([60.0, 61.0]), np.array([50.0, 51.0]))
    found.test(learner, [1, 2])
    return found


def test_a_row_for_each_task_makes_the_matrix():
    found = measured()
    np.testing.assert_array_equal(found.matrix(), [[[10, 60], [10, 20]], [[11, 61], [11, 21]]])
    np.testing.assert_array_equal(np.stack(found.untrained, 1), [[nan, 50], [nan, 51]])
    assert (found.memory_floats, found.memory_samples, found.transient_floats) == ([5, 5], [3, 3], [7, 7])


def test_what_is_not_evaluated_is_nan():
    found, learner = Measurements(), Learner()
    for tasks in ([1], [1, 2]):
        found.test(learner, tasks)
    np.testing.assert_array_equal(found.matrix()[0], [[10, nan], [10, 20]])


def test_a_test_returns_plain_values_of_the_newest_row():
    assert Measurements().test(Learner(), [1, 2]) == {
        "accuracy": [[10.0, 20.0], [11.0, 21.0]],
        "memory_floats": 5,
        "memory_samples": 3,
        "transient_floats": 7,
    }


def test_a_copy_does_not_change_and_is_read_back():
    found = measured()
    copied = found.copied()
    again = Measurements.of(
        json.loads(json.dumps({k: [np.asarray(v).tolist() for v in vs] for k, vs in copied.items()})), 2, 2
    )
    np.testing.assert_array_equal(again.matrix(), found.matrix())
    found.test(Learner(), [1, 2, 3])
    assert len(copied["rows"]) == 2


@pytest.mark.parametrize(("tasks", "seeds"), [(1, 2), (3, 2), (2, 3)])
def test_measurements_of_another_run_are_refused(tasks, seeds):
    with pytest.raises(InputError, match="delete the checkpoint to start over"):
        Measurements.of(measured().copied(), tasks, seeds)


def test_a_result_is_strict_json_with_none_where_nothing_is_known():
    found = measured()
    matrix = found.matrix()
    matrix[:, 0, 1] = nan
    kept = {key: getattr(found, key) for key in KEPT}
    names = {"seconds": {"total": 1.0}, "digest": "d", "learner": "naive", "stream": "x", "device": "cpu"}
    result = Result((0, 1), matrix, np.full((2, 2), nan), **kept, **names).to_json()
    json.dumps(result, allow_nan=False)
    assert (
        result["matrix"] == [[[10, None], [10, 20]], [[11, None], [11, 21]]] and result["untrained"] == [[None] * 2] * 2
    )
    assert result["accuracy"]["values"] == pytest.approx([40 / 3, 43 / 3]) and result["forward_transfer"] is None
