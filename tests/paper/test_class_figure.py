"""The figure of accuracy against bytes."""

import pytest

from prer.paper import class_figure
from prer.paper.plan import Request


class Ended:
    """The outcome of a run that is finished."""

    error = ""

    def __init__(self, kept, accuracy):
        self.result = {"memory_bytes": [0, kept], "final_accuracy": {"mean": accuracy, "std": 0.5}}


@pytest.fixture
def outcomes(monkeypatch):
    monkeypatch.setattr(class_figure, "result_of", lambda outcome: outcome and outcome.result)
    monkeypatch.setattr("prer.paper.class_incremental.result_of", lambda outcome: outcome and outcome.result)
    found = {("mnist", "naive"): Ended(0, 19.0), ("mnist", "prer"): Ended(500_000, 96.0)}
    return found | {("mnist", f"replay-{n}"): Ended(784 * n, 80.0 + n / 100) for n in (1000, 100, 300)}


def test_methods_are_points_and_sizes_are_a_line(outcomes):
    (axis,) = class_figure.plot(Request(), outcomes).axes
    line, *points = axis.get_lines()
    assert line.get_xydata().tolist() == [[78_400, 81], [235_200, 83], [784_000, 90]]
    assert [point.get_xydata().tolist() for point in points] == [[[500, 19]], [[500_000, 96]]]  # nothing kept: at 500
    assert [text.get_text() for text in axis.texts] == ["Naive", "PRER"] and axis.get_xscale() == "log"


def test_without_a_finished_run_no_file_is_written(outcomes, tmp_path):
    assert class_figure.write(Request(), {("mnist", "prer"): None}, tmp_path) == []
    assert [path.name for path in class_figure.write(Request(), outcomes, tmp_path)] == [
        *("class.svg", "class.pdf", "class.png")
    ]
