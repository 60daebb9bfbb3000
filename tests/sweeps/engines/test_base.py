"""Which points of a sweep have ended before it starts."""

from pathlib import Path

import pytest
from support.sweeps import GRID, finish, sweep

from prer.sweeps.engines.base import ended_before

pytestmark = pytest.mark.usefixtures("no_terminal")
RUNS = Path("runs")


@pytest.fixture
def point():
    return sweep(GRID).points()[0]


def test_a_point_without_a_result_must_run(point):
    assert ended_before(point, RUNS) is None
    finish(point)
    (RUNS / point.folder / "result.json").unlink()
    assert ended_before(point, RUNS) is None


def test_a_finished_point_is_not_trained(point):
    finish(point)
    outcome = ended_before(point, RUNS)
    assert (outcome.experiment, outcome.error, outcome.trained) == (point, "", False)
    assert outcome.folder.result["seeds"] == [0]


def test_a_failed_point_runs_again_on_request_only(point):
    finish(point)
    (RUNS / point.folder / "result.json").unlink()
    (RUNS / point.folder / "events.jsonl").write_text('{"event": "failed", "reason": "it diverged"}\n')
    assert ended_before(point, RUNS) is None
    outcome = ended_before(point, RUNS, retry=False)
    assert (outcome.error, outcome.trained) == ("it diverged", False)


@pytest.mark.parametrize(
    ("file", "text", "error"),
    [
        ("result.json", "{", "result.json cannot be read"),
        ("experiment.toml", "seeds = ", "is damaged"),
        ("experiment.toml", "seeds = 9\n", "belongs to a different experiment"),
    ],
)
def test_a_folder_that_cannot_be_used_is_an_error(point, file, text, error):
    finish(point)
    (RUNS / point.folder / file).write_text(text)
    outcome = ended_before(point, RUNS)
    assert not outcome.trained and error in outcome.error
