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


class Told(int):
    """A task that is only its number."""

    scenario = "task"


class Untold(int):
    """The same in the scenario "class"."""

    scenario = "class"


ONE, TWO, THREE = map(Told, (1, 2, 3))


class Learner:
    """Keeps five floats of 20 bytes and three samples."""

    transient_floats_ = 7

    def __init__(self):
        self.loop_ = Loop()

    def memory_size(self):
        return MemorySize(5, 3, 20)


@pytest.fixture(autouse=True)
def known_accuracies(monkeypatch):
    def accuracies(learner, task, given=False):
        return torch.tensor([10.0 * task, 10.0 * task + 1]) + 5 * given

    monkeypatch.setattr("prer.runs.result.accuracy_of", accuracies)


def measured():
    """Two tasks of two seeds; the head of the second task was there before it was learned."""
    found, learner = Measurements(), Learner()
    found.untrained.append(np.full(2, nan))
    found.test(learner, [ONE])
    found.untrained.append(np.full(2, nan))
    found.foresee(np.array([60.0, 61.0]), np.array([50.0, 51.0]))
    found.test(learner, [ONE, TWO])
    return found


def test_a_row_for_each_task_makes_the_matrix():
    found = measured()
    np.testing.assert_array_equal(found.matrix(), [[[10, 60], [10, 20]], [[11, 61], [11, 21]]])
    np.testing.assert_array_equal(np.stack(found.untrained, 1), [[nan, 50], [nan, 51]])
    assert (found.memory_floats, found.memory_samples, found.transient_floats) == ([5, 5], [3, 3], [7, 7])
    assert found.memory_bytes == [20, 20] and found.matrix_task_given() is None


def test_what_is_not_evaluated_is_nan():
    found, learner = Measurements(), Learner()
    for tasks in ([ONE], [ONE, TWO]):
        found.test(learner, tasks)
    np.testing.assert_array_equal(found.matrix()[0], [[10, nan], [10, 20]])


def test_a_test_returns_plain_values_of_the_newest_row():
    assert Measurements().test(Learner(), [ONE, TWO]) == {
        "accuracy": [[10.0, 20.0], [11.0, 21.0]],
        "memory_floats": 5,
        "memory_samples": 3,
        "memory_bytes": 20,
        "transient_floats": 7,
    }


def test_a_copy_does_not_change_and_is_read_back():
    found = measured()
    copied = found.copied()
    again = Measurements.of(
        json.loads(json.dumps({k: [np.asarray(v).tolist() for v in vs] for k, vs in copied.items()})), 2, 2
    )
    np.testing.assert_array_equal(again.matrix(), found.matrix())
    found.test(Learner(), [ONE, TWO, THREE])
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
    names = {
        "seconds": {"total": 1.0},
        "digest": "d",
        "state_digest": "e",
        "learner": "naive",
        "stream": "x",
        "device": "cpu",
    }
    names |= {
        "scenario": "task",
        "classes": ["a", "b"],
        "matrix_task_given": None,
        "confusion": None,
        "test_samples": [9, 9],
    }
    result = Result((0, 1), matrix, np.full((2, 2), nan), **kept, **names).to_json()
    json.dumps(result, allow_nan=False)
    assert (
        result["matrix"] == [[[10, None], [10, 20]], [[11, None], [11, 21]]] and result["untrained"] == [[None] * 2] * 2
    )
    assert result["accuracy"]["values"] == pytest.approx([40 / 3, 43 / 3]) and result["forward_transfer"] is None
    assert result["class_accuracy"] is None and result["confusion"] is None and result["matrix_task_given"] is None
    assert result["final_accuracy"]["values"] == [15, 16]


def test_in_the_class_scenario_the_accuracy_with_the_task_given_is_kept_beside_the_other():
    found, learner = Measurements(), Learner()
    for tasks in ([Untold(1)], [Untold(1), Untold(2)]):
        found.untrained.append(np.full(2, nan))
        found.test(learner, tasks)
    np.testing.assert_array_equal(found.matrix()[0], [[10, nan], [10, 20]])
    np.testing.assert_array_equal(found.matrix_task_given()[0], [[15, nan], [15, 25]])
    again = Measurements.of(found.copied(), 2, 2)
    np.testing.assert_array_equal(again.matrix_task_given(), found.matrix_task_given())
    with pytest.raises(InputError, match="delete the checkpoint to start over"):
        Measurements.of(found.copied() | {"given": found.given[:1]}, 2, 2)


def test_measurements_of_an_earlier_version_are_read():
    saved = measured().copied()
    del saved["given"], saved["memory_bytes"]
    found = Measurements.of(saved, 2, 2)
    assert found.memory_bytes == [None, None] and found.matrix_task_given() is None
    found.test(Learner(), [ONE, TWO, THREE])
    assert found.memory_bytes == [None, None, 20]


def test_the_final_accuracy_of_the_class_scenario_is_that_of_all_test_samples():
    confusion = np.array([[[8, 2, 0], [1, 3, 0], [0, 0, 0]]] * 2)  # the third class has no test sample
    about = {key: [0] for key in KEPT} | {"seconds": {}, "digest": "d", "state_digest": "e", "device": "cpu"}
    about |= {"learner": "naive", "stream": "x", "scenario": "class", "classes": ["a", 7, "c"], "test_samples": [14]}
    matrix = np.full((2, 1, 1), 50.0)
    result = Result(
        (0, 1), matrix, np.full((2, 1), nan), matrix_task_given=matrix, confusion=confusion, **about
    ).to_json()
    json.dumps(result, allow_nan=False)
    assert result["final_accuracy"]["values"] == pytest.approx([100 * 11 / 14] * 2)
    assert result["class_accuracy"] == {"a": [80, 80], "7": [75, 75], "c": [None, None]}
    assert result["confusion"] == confusion.tolist() and result["accuracy"]["values"] == [50, 50]


def test_the_task_given_never_seems_to_hurt_because_tasks_differ_in_size():
    """Both accuracies are over all test samples: 198 of the first task and two of the second."""
    confusion = np.array([[[190, 8], [0, 2]]])
    given = np.array([[[100.0, nan], [100 * 191 / 198, 100.0]]])
    about = {key: [0, 0] for key in KEPT} | {"seconds": {}, "digest": "d", "state_digest": "e", "device": "cpu"}
    about |= {"learner": "naive", "stream": "x", "scenario": "class", "classes": [0, 1], "test_samples": [198, 2]}
    result = Result((0,), given, np.full((1, 2), nan), matrix_task_given=given, confusion=confusion, **about)
    assert result.metrics["final_accuracy"]["values"] == [96.0]
    assert result.metrics["final_accuracy_task_given"]["values"] == pytest.approx([96.5])
