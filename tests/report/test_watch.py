"""A page that is renewed while runs go on."""

import re
import shutil
from pathlib import Path

import pytest
from support.commands import outcome
from support.fake_runs import fake_run

from prer.cli.main import main
from prer.report import watch


def test_watching_ends_when_all_runs_are_finished(capsys, monkeypatch, tmp_path, without_figures):
    fake_run(tmp_path / "runs/a", until=1), fake_run(tmp_path / "done/b")
    pages = []

    def sleep(seconds):
        pages.append(Path("report.html").read_text("utf-8"))
        if len(pages) == 3:
            shutil.rmtree(tmp_path / "runs/a")
            fake_run(tmp_path / "runs/a")

    monkeypatch.setattr(watch.time, "sleep", sleep)
    code, out, _ = outcome(capsys, "report", "runs/a", "done", "--watch")
    assert code == 0 and "Written: report.html" in out
    assert len(pages) == 3 and all('data-watch="3"' in html and 'http-equiv="refresh"' in html for html in pages)
    last = Path("report.html").read_text("utf-8")
    assert "data-watch" not in last and 'http-equiv="refresh"' not in last and "not finished" not in last


def test_watching_writes_only_what_has_changed(monkeypatch, tmp_path, without_figures):
    folder, written = fake_run(tmp_path / "a", until=1), []
    beats = iter([None, None, "event", None, KeyboardInterrupt])

    def sleep(seconds):
        beat = next(beats)
        if beat is KeyboardInterrupt:
            raise beat
        if beat:
            with (folder / "events.jsonl").open("a") as file:
                file.write("\n")

    monkeypatch.setattr(watch.time, "sleep", sleep)
    monkeypatch.setattr(watch, "write", lambda html, file: written.append(html))
    with pytest.raises(KeyboardInterrupt):
        watch.report([folder], Path("report.html"), lambda line: None, watch=True)
    assert ["data-watch" in html for html in written] == [True, True, False]


def test_an_interrupted_watch_ends_with_130_and_one_sentence(capsys, monkeypatch, tmp_path, without_figures):
    def interrupt(seconds):
        raise KeyboardInterrupt

    fake_run(tmp_path / "a", until=1)
    monkeypatch.setattr(watch.time, "sleep", interrupt)
    with pytest.raises(SystemExit) as caught:
        main(["report", "a", "--watch"])
    err = capsys.readouterr().err
    assert caught.value.code == 130 and re.fullmatch(r"interrupted[^\n]+", err.strip())
    assert "data-watch" not in Path("report.html").read_text("utf-8")
