"""The events of a run, as a page reads them."""

import json

import numpy as np
import pytest
from support.fake_runs import fake_run
from support.pages import page

from prer.report.events import RunEvents

STRANGE = [
    *("", "null", "[]", "7", '"x"', "{}", '{"event": 3, "task": 0}', '{"event": "epoch", "task": -1}'),
    *('{"event": "task", "task": 0, "accuracy": 3}', '{"event": "task", "task": 1e9, "accuracy": [[1]]}'),
    *('{"event": "task", "task": true, "accuracy": [["a"]]}', '{"event": "task", "task": 0, "accuracy": [[NaN]]}'),
    '{"event": "epoch", "task": 0, "phase": [1], "epoch": "x", "loss": [], "seconds": "y"}',
    '{"event": "epoch", "task": 0, "phase": "flow", "epoch": "x", "epochs": {}, "loss": [1, 2], "seconds": 1}',
    '{"event": "health", "task": 2, "class": {"a": 1}, "agreement": ["b"]}',
    '{"event": "epoch", "task": 100000000, "phase": "flow", "epoch": 0, "epochs": 1, "loss": [1], "seconds": 1}',
]


@pytest.mark.parametrize("line", STRANGE)
def test_strange_events_are_ignored(tmp_path, line, without_figures):
    folder = fake_run(tmp_path / "a", until=2)
    before = RunEvents.read(folder).matrix()
    with (folder / "events.jsonl").open("a") as file:
        file.write(line + "\n")
    events = RunEvents.read(folder)
    np.testing.assert_array_equal(events.matrix(), before)
    assert len(events.seconds_by_task()["flow"]) == 2
    assert page(folder)


def test_huge_folders_are_shown_in_part(monkeypatch, tmp_path, without_figures):
    for name, most in {"MOST_CLASSES": 500, "MOST_SEEDS": 100, "MOST_CELLS": 1e5}.items():
        monkeypatch.setattr(f"prer.report.events.{name}", most)
    folder = fake_run(tmp_path / "a", until=1)
    nested = "{}"
    for _ in range(300):
        nested = f'{{"a": {nested}}}'
    wide = json.dumps({f"k{i}": i for i in range(2000)})
    (folder / "environment.json").write_text(f'{{"deep": {nested}, "wide": {wide}}}')
    with (folder / "events.jsonl").open("a") as file:
        for i in range(600):
            file.write(json.dumps({"event": "health", "task": 0, "class": f"c{i}", "agreement_decoded": [1.0]}) + "\n")
        file.write(json.dumps({"event": "health", "task": 1, "class": "c400", "agreement_decoded": [0.1]}) + "\n")
        for i in range(100):
            epoch = {"event": "epoch", "task": 0, "phase": f"p{i}", "epoch": 0, "epochs": 1, "loss": [1], "seconds": 1}
            file.write(json.dumps(epoch) + "\n")
        for i in range(1, 60):
            file.write(json.dumps({"event": "task", "task": i, "accuracy": [[1.0]] * 150}) + "\n")
    events = RunEvents.read(folder)
    assert len(events.health) == 500 and len(events.losses) == 20 and 0 < events.matrix().size < 1e5
    html = page(folder)
    assert len(html) < 2e6 and html.count("▼ fades") == 1  # those that fade come first


def test_classes_of_several_tasks_with_one_label_are_told_apart():
    events = RunEvents()
    for task, values in enumerate([[0.9], [0.5, 0.8]]):
        for value in values:
            events.take({"event": "health", "task": task, "class": 3, "agreement_decoded": [value]})
    labels, agreement = events.agreement()
    assert labels == ["3", "3, task 2"]
    np.testing.assert_allclose(agreement, [[90, 50], [np.nan, 80]])
