"""Runs on a page that are unfinished, failed, damaged or forged."""

from pathlib import Path

import pytest
from support.commands import outcome
from support.fake_runs import fake_run, forge_result, matrix
from support.pages import page

from prer.report import watch


def test_half_a_run_is_shown_from_its_events(capsys, tmp_path):
    fake_run(tmp_path / "half", until=2)
    code, out, _ = outcome(capsys, "report", "half")
    assert code == 0
    assert "half: it is not finished; tasks learned: 2; last event: task 2, epoch 3 of 3 in phase flow" in out
    html = Path("report.html").read_text("utf-8")
    R = matrix(3, 3).mean(0)
    assert f">{R[1, 0]:.2f}</td>" in html and "not finished" in html
    assert f">{R[2, 0]:.2f}</td>" not in html


def test_a_run_that_failed_says_why_and_is_not_waited_for(capsys, monkeypatch, tmp_path, without_figures):
    folder = fake_run(tmp_path / "lost", until=2)
    with (folder / "events.jsonl").open("a") as events:
        events.write('{"event": "failed", "reason": "the loss became nan <b>"}\n')
    monkeypatch.setattr(watch.time, "sleep", lambda seconds: pytest.fail("there is nothing to wait for"))
    _, out, _ = outcome(capsys, "report", "lost", "--watch")
    assert "lost: it failed; tasks learned: 2; error: the loss became nan <b>" in out
    html = Path("report.html").read_text("utf-8")
    assert "error: the loss became nan &lt;b&gt;" in html and "<strong>failed</strong>" in html
    with (folder / "events.jsonl").open("a") as events:
        events.write('{"event": "epoch", "task": 2, "phase": "head", "epoch": 0, "loss": [1.0], "seconds": 1.0}\n')
    assert "it is not finished; tasks learned: 2" in page("lost")  # it is being tried again


def test_a_run_without_events(tmp_path, without_figures):
    (fake_run(tmp_path / "new", until=0) / "events.jsonl").unlink()
    assert "it is not finished, and it has no events yet" in page("new")
    (tmp_path / "new/environment.json").unlink()
    assert "Its environment is unknown" in page("new")


@pytest.mark.parametrize("damage", ["", "{", "[]", '{"seeds": 1}', "\x00\xff", '{"a":' * 100_000])
def test_a_damaged_result_is_named_and_the_events_are_shown(tmp_path, damage, without_figures):
    fake_run(tmp_path / "broken")
    (tmp_path / "broken/result.json").write_text(damage)
    html = page("broken")
    assert "its result.json is damaged; the numbers shown come from its events" in html
    assert f">{matrix(3, 3).mean(0)[2, 0]:.2f}</td>" in html


def test_a_damaged_experiment_is_named(tmp_path, without_figures):
    fake_run(tmp_path / "broken")
    (tmp_path / "broken/experiment.toml").write_text("name = ")
    html = page("broken")
    assert "its experiment.toml is missing or cannot be read" in html and "Its settings are unknown" in html
    assert "data-metric" in html  # the result is whole


FORGED = {
    "seconds": {"total": 1.0, "<b>": "x", "flow": None},
    "memory_floats": ["x", 3],
    "bwt": {"mean": 1.0, "std": None, "values": "x"},
    "forward_transfer": 7,
    "forgetting_best": {"mean": "x"},
    "digest": ["<b>"],
    "seeds": [{"a": "<b>"}, None, 3],
    "accuracy": {"mean": None, "std": None, "values": []},
}


@pytest.mark.parametrize("key", FORGED)
def test_a_forged_result_is_shown_as_far_as_it_makes_sense(tmp_path, key, without_figures):
    fake_run(tmp_path / "b", rng_seed=1)
    forge_result(fake_run(tmp_path / "a"), **{key: FORGED[key]})
    assert "<b>" not in page("a", "b") + page("a")


def test_folders_of_runs_empty_folders_and_others(capsys, tmp_path, without_figures):
    (
        fake_run(tmp_path / "runs/a"),
        fake_run(tmp_path / "runs/b"),
        (tmp_path / "empty").mkdir(),
        (tmp_path / "x/y").mkdir(parents=True),
    )
    code, out, _ = outcome(capsys, "report", "runs", "empty", "x", "missing", "runs/../runs/a")
    assert code == 0
    for sentence in ("empty is empty", "x contains no run", "missing is not a folder"):
        assert sentence in out and sentence in Path("report.html").read_text("utf-8")
    assert Path("report.html").read_text("utf-8").count('<details class="run"') == 2  # each once
