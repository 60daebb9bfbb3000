"""benchmarks/recorded_runs.py: runs are recorded one line each, without paths, and a line has the whole run."""

import json
from types import SimpleNamespace

import numpy as np
import pytest
from support.benchmarks import script

from prer.runs.experiment import Experiment

recorded_runs = script("recorded_runs")
paper_records = script("paper_records")
SETTINGS = {"learner": {"name": "naive", "channels": [2], "embedding": 4, "epochs": 1}, "device": "cpu", "seeds": 2}


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """The options, experiments and lines of a run that ended and of one whose data cannot be read."""
    out = tmp_path_factory.mktemp("recorded")
    rng, y = np.random.default_rng(0), np.repeat(np.arange(4), 10)
    data = recorded_runs.written(out / "data.npz", rng.integers(0, 256, (40, 1, 8, 8), dtype=np.uint8), y)
    (out / "broken.npz").write_text("no archive")
    options = SimpleNamespace(workers=1, runs=out / "runs", record=out / "record.jsonl")
    experiments = {
        name: Experiment.parse(SETTINGS | {"name": name, "stream": {"data": str(path), "resplit": 0.2}})
        for name, path in (("good", data), ("bad", out / "broken.npz"))
    }
    return out, options, experiments, recorded_runs.recorded(experiments.values(), options, "both")


def test_a_line_has_what_the_folder_of_its_run_has(made, tmp_path):
    _, options, experiments, lines = made
    line = json.loads(next(text for text in options.record.read_text().splitlines() if '"good"' in text))
    assert line == lines["good"] and line["clock"]["part"] == "both"
    paper_records.unpack([json.dumps(line)], tmp_path / "unpacked")
    (folder,) = (path for path in (tmp_path / "unpacked").iterdir() if path.is_dir())
    unpacked, there = json.loads((folder / "result.json").read_text()), options.runs / experiments["good"].folder
    assert unpacked == json.loads((there / "result.json").read_text())
    settings = paper_records.experiment_of(line).tables()
    expected = experiments["good"].tables()
    assert expected.pop("stream") | {"data": "data.npz"} == settings.pop("stream") and settings == expected


def test_a_record_has_no_path_and_the_reason_of_a_failure(made):
    out, options, _, lines = made
    assert str(out) not in options.record.read_text()
    assert "broken.npz" in lines["bad"]["failure"] and "result" not in lines["bad"]


def test_a_run_that_is_recorded_again_replaces_its_line(made):
    _, options, experiments, lines = made
    again = recorded_runs.recorded([experiments["good"]], options, "again")  # it has ended before
    names = [json.loads(text)["name"] for text in options.record.read_text().splitlines()]
    assert names == ["bad", "good"] and again["good"]["result"] == lines["good"]["result"]


def test_figures_are_those_of_the_result():
    R = [[[100.0, None], [80.0, 90.0]], [[90.0, None], [80.0, 90.0]]]
    result = {"matrix": R, "untrained": [[None, None]] * 2, "memory_floats": [1, 2000], "memory_bytes": [4, 8000]}
    found = recorded_runs.figures(
        {"seeds": [0, 1], "result": result, "agreement": [["a", [0.5, 1.0]], ["b", [1.0, 1.0]]]}
    )
    assert (found["accuracy"], found["bwt"], found["final_accuracy"]) == pytest.approx((265 / 3, -15, 85))
    assert (found["floats"], found["kB"], found["samples of their class, %"]) == pytest.approx((2000, 8, 87.5))


def test_images_are_chosen_at_random_and_as_many_of_each_class(tmp_path):
    x = (4 * np.arange(60, dtype=np.uint8)).repeat(64).reshape(60, 1, 8, 8)
    path = recorded_runs.written(tmp_path / "data.npz", x, np.array(["dog", "cat", "ant"] * 20))
    every, _ = recorded_runs.images(path)
    some, y = recorded_runs.images(path, 5)
    assert every.tolist() == x.tolist() and np.bincount(y).tolist() == [5, 5, 5]
    assert [int(image[0, 0, 0]) // 4 % 3 for image in some] == [
        2 - label for label in y
    ]  # classes in the order of names
    assert (
        recorded_runs.images(path, 5)[0].tolist() == some.tolist() != recorded_runs.images(path, 5, seed=1)[0].tolist()
    )


def test_a_quick_run_has_one_epoch_in_each_phase():
    for name in ("prer", "naive"):
        tables = recorded_runs.quickened({"learner": {"name": name}}, True)
        learner = Experiment.parse(tables).learner
        assert set(learner.phases(1000, 2).values()) == {1}
    tables = {"learner": {"name": "prer", "density": {"name": "mixture"}}}
    assert set(Experiment.parse(recorded_runs.quickened(tables, True)).learner.phases(1000, 2).values()) == {1}
    assert recorded_runs.quickened(tables, False) == tables
