"""The runs of distilled labels without decoder and density have the settings of the files otherwise."""

import json
from argparse import Namespace
from pathlib import Path

from support.benchmarks import script

from prer.paper import DATA, file_of
from prer.runs.experiment import Experiment

distilled_accuracy = script("distilled_accuracy")
LEFT_OUT = ("epochs_autoencoder", "density")


def options(settings=(), quick=False):
    return Namespace(settings=list(settings), quick=quick, seeds=5)


def test_all_but_decoder_and_density_is_as_in_the_files(monkeypatch):
    monkeypatch.setenv("PRER_DATA", "data")
    for data in DATA:
        found = distilled_accuracy.experiment(data, options()).tables()
        whole = Experiment.read(file_of(data, "prer-distilled")).tables()
        changed = [key for key, value in whole["learner"].items() if found["learner"][key] != value]
        assert changed == list(LEFT_OUT) and found["seeds"] == [0, 1, 2, 3, 4]
        place = str(Path("data") / distilled_accuracy.PARTS[data]) if data in distilled_accuracy.PARTS else data
        assert found["stream"] == whole["stream"] | {"data": place}
        assert found["learner"]["epochs_autoencoder"] == 0 and found["learner"]["density"] == {"name": "gaussian"}


def test_settings_can_be_given():
    found = distilled_accuracy.experiment("mnist", options(["learner.anchor=3.0"])).learner
    assert (found.anchor, found.labels) == (3.0, "distilled")


def test_the_best_point_has_the_asked_bwt_or_lacks_the_fewest_points():
    points = [{"accuracy": a, "bwt": b} for a, b in ((87.0, -0.1), (86.0, 0.2), (86.4, 0.0), (50.0, 0.0))] + [
        {"error": "x"}
    ]
    assert distilled_accuracy.chosen_of(points, 86.7, 0.0) == points[2]
    assert distilled_accuracy.chosen_of([points[0], points[3] | {"bwt": -0.01}], 86.7, 0.0) == points[0]


def test_records_and_settings_can_be_given_in_any_order(tmp_path, monkeypatch):
    seen = []
    monkeypatch.setattr(distilled_accuracy, "aimed", lambda record: seen.append(str(record)) or {})
    monkeypatch.setattr(
        distilled_accuracy, "recorded", lambda experiments, options, part: seen.append(options.settings)
    )
    for words in (
        ["--aimed", "a", "learner.lr=0.1", "--aimed", "b"],
        ["learner.lr=0.1", "--aimed", "a", "--aimed", "b"],
    ):
        monkeypatch.setattr("sys.argv", ["distilled_accuracy.py", str(tmp_path), *words, "--only", "mnist"])
        distilled_accuracy.main()
    assert seen == ["a", "b", ["learner.lr=0.1"]] * 2


def test_the_points_of_a_record_run_whole_with_their_settings(tmp_path, monkeypatch):
    monkeypatch.setenv("PRER_DATA", "data")
    settings = {"learner.optimiser": "adam", "learner.lr": 0.00123456, "learner.anchor": 3.0}
    points = [{"settings": settings, "accuracy": 99.8, "bwt": 0.0}, {"settings": {}, "accuracy": 99.9, "bwt": -1.0}]
    record = tmp_path / "record.json"
    record.write_text(json.dumps({"searches": {"mnist-prer-distilled": points}}))
    found = distilled_accuracy.aimed(record)
    run = distilled_accuracy.experiment("mnist", options(["learner.weight=2.0"]), found["mnist"])
    assert run.name == "mnist-prer-distilled-aimed" and run.learner.density.name == "flow"
    assert (run.learner.lr, run.learner.anchor, run.learner.weight) == (0.00123, 3.0, 2.0)
