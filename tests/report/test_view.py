"""The tables of a run on the page."""

import base64
import json

import numpy as np
import pytest
from support.fake_runs import fake_run, forge_result, matrix

from prer.report import view as views
from prer.report.model_view import Class, MemoryView
from prer.report.page_figures import PageFigures
from prer.report.run import Run
from prer.report.view import METRICS, View, view


def of(path, full=True):
    return view(Run.read(path), 1, full, False, PageFigures())


@pytest.fixture
def usual(two_runs):
    return of(two_runs[0])


def test_the_matrix_is_shown_for_the_mean_and_each_seed(usual):
    heat, R = usual.heat, matrix(3, 3)
    assert list(heat["tables"]) == ["mean", "seed 0", "seed 1", "seed 2"] and (heat["M"], heat["S"]) == (3, 3)
    cell = heat["tables"]["seed 1"][2][0]
    assert cell["value"] == pytest.approx(R[1, 2, 0]) and cell["shown"] == f"{R[1, 2, 0]:.2f}"
    assert heat["lowest"] == 80 and cell["shade"] == round(100 * (R[1, 2, 0] - 80) / 20)
    assert heat["tables"]["mean"][0][2] == {"shown": "", "value": None, "shade": 0}
    assert heat["tables"]["mean"][1][0]["value"] == pytest.approx(R[:, 1, 0].mean())


def test_a_compact_view_has_the_mean_and_a_large_matrix_is_not_a_table(two_runs, monkeypatch):
    assert list(of(two_runs[0], full=False).heat["tables"]) == ["mean"]
    assert list(of(two_runs[0], full=False).figures) == []
    monkeypatch.setattr(views, "MOST_CELLS", 26)
    assert list(of(two_runs[0]).heat["tables"]) == ["mean"]
    monkeypatch.setattr(views, "MOST_TASKS", 2)
    assert of(two_runs[0]).heat is None


def test_every_metric_is_shown_with_its_formula_and_the_main_ones_first(usual, two_runs):
    result = json.loads((two_runs[0] / "result.json").read_text())
    assert [m["key"] for m in usual.metrics] == [key for key, _, _ in METRICS]
    shown = {m["key"]: m["shown"] for m in usual.metrics}
    accuracy = result["accuracy"]
    assert shown["accuracy"] == f"{accuracy['mean']:.2f} ± {accuracy['std']:.2f}" and shown["forward_transfer"] == "–"
    assert [m["key"] for m in usual.cards] == ["accuracy", "bwt", "forgetting_best", "forward_transfer"]


def test_each_task_has_its_seconds_and_its_memory(usual, tmp_path):
    kept = {"memory_samples": "0", "transient_floats": "0", "autoencoder": "0.8", "flow": "0.8"}
    sizes = [{"memory_floats": f"{1000 + 10 * t:,}", "memory_bytes": f"{4000 + 40 * t:,}"} for t in range(3)]
    assert usual.per_task == [{"task": str(t + 1)} | of | kept for t, of in enumerate(sizes)]
    forge_result(fake_run(tmp_path / "a"), memory_floats=[None, "x", 3])
    assert [row["memory_floats"] for row in of(tmp_path / "a").per_task] == ["–", "–", "3"]


def test_times_that_are_none_are_not_shown(tmp_path):
    forge_result(fake_run(tmp_path / "a"), seconds={"total": 75.0, "flow": None, "head": -1.0, "x": "y", "z": 1e10})
    assert list(of(tmp_path / "a").phases) == ["total"]
    assert of(fake_run(tmp_path / "half", until=1)).phases == {}


def test_classes_that_fade_are_marked_and_come_first_where_there_are_too_many(usual, two_runs, monkeypatch):
    agreement = usual.agreement
    assert [row["label"] for row in agreement["rows"] if row["fades"]] == ["0"] and agreement["all"] == 6
    assert list(agreement["tasks"]) == [1, 2, 3]
    assert [cell["shown"] for cell in agreement["rows"][0]["cells"]] == ["99.00", "70.00", "70.00"]
    monkeypatch.setattr(views, "MOST_ROWS", 1)
    monkeypatch.setattr(views, "MOST_TASKS", 2)
    agreement = of(two_runs[0]).agreement
    assert [row["label"] for row in agreement["rows"]] == ["0"] and list(agreement["tasks"]) == [2, 3]
    assert len(agreement["rows"][0]["cells"]) == 2 and agreement["all"] == 6


def test_health_is_the_latest_of_each_class(usual, tmp_path):
    assert usual.health[0] == {"label": "0", "agreement": "0.99", "agreement_decoded": "0.893", "nll": "-3"}
    assert len(usual.health) == 6
    assert of(fake_run(tmp_path / "new", until=0)).agreement is None


def test_settings_and_the_file_itself_can_be_read(usual, two_runs):
    rows = dict(usual.settings)
    assert rows["stream.data"] == "nowhere.npz" and rows["seeds"] == "[0, 1, 2]"
    kind, _, data = usual.download.partition(",")
    assert kind == "data:application/toml;base64"
    assert base64.b64decode(data) == (two_runs[0] / "experiment.toml").read_bytes()


def test_what_is_private_is_not_shown(usual):
    assert usual.environment == [("python", "3.11"), ("data_sha256", "0" * 64)]


def test_warnings_are_those_of_the_run_and_about_fading_classes(tmp_path):
    folder = fake_run(tmp_path / "a")
    about = json.loads((folder / "environment.json").read_text())
    (folder / "environment.json").write_text(json.dumps(about | {"warnings": ["one", 3]}))
    full, compact = of(folder), of(folder, full=False)
    assert full.warnings[0] == compact.warnings[0] == "one" and len(compact.warnings) < len(full.warnings)
    assert "70% of '0'" in full.warnings[-1]


def test_classes_are_shown_with_their_accuracy_and_figures(usual, monkeypatch):
    monkeypatch.setattr(PageFigures, "of_classes", lambda self, classes: [c.label for c in classes])
    assert usual.classes == [] == usual.cards_of_classes
    classes = [Class("a", accuracy=[90.0, 92.0]), Class("b", accuracy=[50.0]), Class("c")]
    for generates, cards in ((True, ["a", "b", "c"]), (False, [])):
        made = View(usual.run, 1, True, PageFigures(), MemoryView(classes, generates=generates))
        assert made.classes == [("a", f"91.00 ± {np.sqrt(2):.2f}"), ("b", "50.00")]
        assert made.cards_of_classes == cards
