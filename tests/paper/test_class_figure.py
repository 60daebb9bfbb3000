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


def test_methods_are_points_sizes_are_a_line_and_the_legend_names_them_once(outcomes):
    outcomes |= {("cifar10", "naive"): Ended(0, 18.0)}
    figure = class_figure.plot(Request(), outcomes)
    naive, replay, prer = figure.axes[0].get_lines()
    assert replay.get_xydata().tolist() == [[78_400, 81], [235_200, 83], [784_000, 90]]
    assert prer.get_xydata().tolist() == [[500_000, 96]] and figure.axes[0].get_xscale() == "log"
    assert naive.get_xydata().tolist() == [[class_figure.NOTHING, 19]]
    (legend,) = figure.legends
    assert [text.get_text() for text in legend.get_texts()] == ["Naive", "Replay", "PRER"]


def test_without_a_finished_run_no_file_is_written(outcomes, tmp_path):
    assert class_figure.write(Request(), {("mnist", "prer"): None}, tmp_path) == []
    assert [path.name for path in class_figure.write(Request(), outcomes, tmp_path)] == [
        *("class.svg", "class.pdf", "class.png")
    ]
