"""A stack of points reaches what its points reach one by one."""

import numpy as np
import pytest
from support.benchmarks import script

from prer.runs.experiment import Experiment
from prer.training.optimisers import OPTIMISERS, Adam

stacked_points = script("stacked_points")
SHORT = {"epochs_autoencoder": 1, "density": {"name": "flow", "epochs": 1, "blocks": 2}}
POINTS = {
    "naive": ({}, [{"lr": 3e-4}, {"lr": 1e-2}]),
    "classic lwf": ({"name": "lwf", "form": "classic"}, [{"lr": 1e-3, "weight": 0.1}, {"lr": 3e-3, "weight": 3.0}]),
    "der": ({"size": 50}, [{"weight": 0.01, "label_weight": 3.0}, {"weight": 2.0, "label_weight": 0.1}]),
    "joint": ({"restart": True}, [{"lr": 3e-4}, {"lr": 1e-2}]),
    "prer": (
        SHORT | {"epochs_autoencoder": 5},
        [
            {"lr": 3e-3, "weight": 0.1, "temperature": 1.0},
            {"lr": 6e-3, "weight": 9.0, "temperature": 0.5, "sparsity": 0.2},
        ],
    ),
    "distilled": (
        {"name": "prer", "labels": "distilled"} | SHORT,
        [{"anchor": 0.0, "autoencoder": 0.0}, {"anchor": 0.3, "autoencoder": 0.1, "weight": 9.0}],
    ),
}


@pytest.fixture(autouse=True)
def restored(monkeypatch):
    monkeypatch.setitem(OPTIMISERS, "adam", Adam)


def points(name, epochs=3):
    common, each = POINTS[name]
    learner = {"name": name, "epochs": epochs, "batch": 32, "optimiser": "adam"} | common
    stream = {"data": "digits", "classes_per_task": 2, "resplit": 0.2}
    tables = {"stream": stream, "seeds": [0, 1], "device": "cpu"}
    return [Experiment.parse(tables | {"learner": learner | own}, presets=False) for own in each]


@pytest.mark.parametrize("name", POINTS)
def test_a_stack_reaches_what_its_points_reach_alone(name, monkeypatch):
    both = points(name)
    assert len(stacked_points.stacks(both)) == 1
    together, alone = stacked_points._matrix(both), [stacked_points._matrix([point]) for point in points(name)]
    apart = np.nanmean(np.abs(together - np.concatenate(alone)))
    between = np.nanmean(np.abs(alone[0] - alone[1]))
    assert apart < between / 5, (apart, between)  # apart by rounding, which classic LwF amplifies most


def test_points_that_differ_in_anything_else_are_not_stacked():
    assert len(stacked_points.stacks([*points("naive"), *points("naive", epochs=4), *points("der")])) == 3


def test_stacks_are_of_limited_and_similar_size(monkeypatch):
    monkeypatch.setattr(stacked_points, "MOST", 4)
    ten = [Experiment.parse({"learner": {"name": "naive", "lr": 1e-3 * (i + 1)}}) for i in range(10)]
    assert sorted(map(len, stacked_points.stacks(ten))) == [3, 3, 4]


@pytest.mark.parametrize("name", ["naive", "prer"])
def test_a_point_that_diverges_does_not_change_the_others(name):
    good, bad = points(name)
    bad = Experiment.parse(bad.tables() | {"learner": bad.tables()["learner"] | {"lr": 1e30}}, presets=False)
    found, (alone,) = stacked_points.learned([good, bad]), stacked_points.learned([points(name)[0]])
    same = ("error", "accuracy", "bwt", "diagonal", "stack")
    assert [found[0][key] for key in same] == [alone[key] for key in same]
    assert "became nan" in found[1]["error"] or "became inf" in found[1]["error"]


def test_what_was_found_is_not_run_again(tmp_path, monkeypatch):
    (first, second), ran = points("naive", epochs=1), []
    learned = stacked_points.learned
    monkeypatch.setattr(stacked_points, "ProcessPoolExecutor", Inline)
    monkeypatch.setattr(stacked_points, "learned", lambda stack: ran.append(len(stack)) or learned(stack))
    ((_, once),) = stacked_points.run([first], tmp_path, 1)
    again = {point.hash: found for point, found in stacked_points.run([first, second], tmp_path, 1)}
    assert ran == [1, 1] and again[first.hash] == once and len(again) == 2


class Inline:
    """An executor that calls at once."""

    def __init__(self, *arguments, **options):
        pass

    def __enter__(self):
        return self

    def __exit__(self, *error):
        pass

    def submit(self, function, *arguments):
        from concurrent.futures import Future

        future = Future()
        future.set_result(function(*arguments))
        return future
