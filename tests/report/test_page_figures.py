"""The figures of a page: which there are, their numbers and their texts for screen readers."""

import json

import numpy as np
import pytest
from support.fake_runs import fake_run, forge_result

from prer.report import page_figures
from prer.report.model_view import Class
from prer.report.page_figures import PageFigures, kept
from prer.report.run import Run


@pytest.fixture
def drawn(monkeypatch):
    """The number and the text of every figure; nothing is drawn."""
    found = []
    monkeypatch.setattr("prer.report.inline.inlined", lambda figure, alt, number: found.append((number, alt)) or "svg")
    return found


def test_a_run_has_accuracy_losses_time_memory_and_agreement(two_runs, drawn):
    figures = list(PageFigures().of_run(Run.read(two_runs[0])))
    assert [number for number, _ in drawn] == [1, 2, 3, 4, 5, 6] and len(figures) == 6
    assert all(figure["svg"] == "svg" and figure["caption"] for figure in figures)
    texts = [alt for _, alt in drawn]
    assert texts[0].startswith("Lines: accuracy of each of 3 tasks after each task.")
    assert texts[1] == "Line: loss of phase autoencoder in 9 epochs; first 1, last 0.333."
    assert texts[2].startswith("Line: loss of phase flow")
    assert [text.split(":")[0] for text in texts[3:]] == ["Bars", "Bars", "Lines"]


def test_figures_without_data_are_left_out(tmp_path, drawn):
    assert list(PageFigures().of_run(Run.read(fake_run(tmp_path / "new", until=0)))) == [] == drawn
    one = fake_run(tmp_path / "one", tasks=1)
    (one / "events.jsonl").write_text("")
    list(PageFigures().of_run(Run.read(one)))
    assert [alt.split(" after")[0] for _, alt in drawn] == ["Bars: numbers stored"]  # one task has no line


def test_of_many_classes_the_fading_ones_are_drawn(two_runs, drawn, monkeypatch):
    monkeypatch.setattr(page_figures, "MOST_CLASSES", 2)
    shown = []
    from prer.report import figures

    usual = figures.agreement
    monkeypatch.setattr(figures, "agreement", lambda *about: shown.append(about) or usual(*about))
    list(PageFigures().of_run(Run.read(two_runs[0])))
    ((values, names, fades),) = shown
    assert (names, fades, len(values)) == (["0", "1"], [True, False], 2)


def test_figures_are_numbered_through_a_page(drawn):
    drawing, images = PageFigures(), np.zeros((8, 1, 8, 8), np.uint8)
    points = np.zeros((9, 2))
    classes = [Class("a", {"real": images}, points, points + 1), Class("b"), Class("c", {"real": images})]
    cards = drawing.of_classes(classes)
    assert [(bool(card["images"]), bool(card["embeddings"])) for card in cards] == [(1, 1), (0, 0), (1, 0)]
    assert drawn == [
        (1, "Class a: rows of samples: real."),
        (2, "Class a: 9 real and 9 sampled embeddings."),
        (3, "Class c: rows of samples: real."),
    ]


def test_of_a_long_stream_the_first_and_the_last_rows_are_drawn(drawn):
    images = np.zeros((9, 1, 8, 8), np.uint8)
    PageFigures().of_classes([Class("a", {f"task {t}": images for t in range(1, 31)})])
    names = [f"task {t}" for t in (*range(1, 7), *range(25, 31))]
    assert drawn == [(1, f"Class a: rows of samples: {', '.join(names)}.")]


def test_the_size_of_the_memory_is_that_of_the_result_or_of_the_events(tmp_path):
    run = Run.read(fake_run(tmp_path / "a"))
    assert [kept(run, "memory_floats", task) for task in range(4)] == [1000, 1010, 1020, None]
    forge_result(run.path, memory_floats=["x", 3])
    assert [kept(Run.read(run.path), "memory_floats", task) for task in range(3)] == [None, 3, 1020]
    half = Run.read(fake_run(tmp_path / "half", until=2))
    assert [kept(half, "memory_floats", task) for task in range(3)] == [1000, 1010, None]
    assert json.loads((run.path / "result.json").read_text())["memory_samples"] == [0, 0, 0]
