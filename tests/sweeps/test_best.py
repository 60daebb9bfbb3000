"""The best point of a sweep."""

from pathlib import Path

import pytest
from support.sweeps import GRID, finish, sweep

from prer.errors import InputError
from prer.sweeps.best import NAMES, best

pytestmark = pytest.mark.usefixtures("no_terminal")


@pytest.mark.parametrize("by", NAMES)
def test_more_of_any_metric_is_better_except_of_forgetting(by):
    points = sweep(GRID).points()
    for point, value in zip(points, (2.0, None, 9.0, -1.0), strict=True):
        finish(point, **{by: value})
    found = best(points, Path("runs"), by)
    assert found.point is points[3 if "forgetting" in by else 2]
    assert (found.compared, found.unfinished, found.missing) == (3, 0, 0)


def test_points_without_a_result_are_counted_apart():
    points = sweep(GRID).points()
    for point in points[:3]:
        finish(point, accuracy=60.0)
    (Path("runs") / points[0].folder / "result.json").unlink()
    found = best(points, Path("runs"))
    assert found.point is points[1]  # the first of equal ones
    assert (found.compared, found.unfinished, found.missing) == (2, 1, 1)
    assert (found.folder.path.name, found.metric["mean"]) == (points[1].folder, 60.0)


def test_the_winner_is_tested_without_a_validation_part():
    points = sweep(GRID, "stream.validation=0.25").points()
    finish(points[0])
    tested = best(points, Path("runs")).to_test()
    assert (tested.stream.validation, points[0].stream.validation) == (0.0, 0.25)
    assert tested.learner == points[0].learner


@pytest.mark.parametrize(
    ("by", "sentence"),
    [("accuracy", "no point of the sweep has a result with accuracy in"), ("bwtt", "did you mean 'bwt'")],
)
def test_without_a_result_or_a_metric_there_is_no_best(by, sentence):
    with pytest.raises(InputError, match=sentence):
        best(sweep(GRID).points(), Path("runs"), by)


def test_without_the_task_points_are_compared_by_the_final_accuracy():
    points = sweep(GRID, "stream.scenario=class").points()
    finish(points[0], accuracy=90.0, final_accuracy=50.0)
    finish(points[1], accuracy=80.0, final_accuracy=60.0)
    found = best(points, Path("runs"))
    assert (found.point, found.by, found.metric["mean"]) == (points[1], "final_accuracy", 60.0)
    assert best(points, Path("runs"), "accuracy").point is points[0]
