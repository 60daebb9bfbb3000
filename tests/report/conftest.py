"""Run folders that pages are made of."""

import json

import pytest
from support.commands import TINY_PRER
from support.fake_runs import HOSTILE, fake_run, forge_result
from support.pages import page

from prer.cli.main import main


@pytest.fixture(autouse=True)
def own_folder(monkeypatch, tmp_path):
    """The current folder is the test's own."""
    monkeypatch.chdir(tmp_path)


@pytest.fixture(scope="session")
def real(tmp_path_factory):
    """The folder of a short run of PRER on the digits, with its model."""
    out = tmp_path_factory.mktemp("real")
    main(["run", *TINY_PRER, "--seeds", "2", "--device", "cpu", "--out", str(out), "--quiet"])
    (folder,) = out.iterdir()
    return folder


@pytest.fixture
def without_figures(monkeypatch):
    """Figures are made but not drawn, which takes most of the time."""
    monkeypatch.setattr("prer.report.inline.inlined", lambda figure, alt, number: "")


@pytest.fixture(scope="session")
def two_runs(tmp_path_factory):
    """The folders of two runs, which tests only read."""
    out = tmp_path_factory.mktemp("two")
    return [fake_run(out / name) for name in "ab"]


@pytest.fixture(scope="session")
def page_of_one(two_runs):
    """The page about one run, with all its figures."""
    return page(two_runs[0])


@pytest.fixture(scope="session")
def page_of_two(two_runs):
    """The page about two runs."""
    return page(*two_runs)


@pytest.fixture(scope="session")
def hostile_runs(tmp_path_factory):
    """A folder of runs whose learner, stream, classes, phases, seeds and folders have hostile names."""
    out = tmp_path_factory.mktemp("hostile") / "runs"
    for i, name in list(enumerate(HOSTILE))[1:5:3]:  # all are names of classes
        path = out / f"{i} {name.replace('/', '∕')}"[:80]
        fake_run(path, learner=name, stream=name, labels=HOSTILE)
        events = (path / "events.jsonl").read_text().replace('"flow"', json.dumps(name))
        (path / "events.jsonl").write_text(events)
        forge_result(path, seeds=[name, 1, 2], digest=name, seconds={name: 1.0, "total": 1.0})
        tables = f"name = {json.dumps(name, ensure_ascii=True)}\n[stream]\n{json.dumps(name)} = {json.dumps(name)}\n"
        (path / "experiment.toml").write_text(tables, "utf-8")
        (path / "environment.json").write_text(json.dumps({name: name}))
    return out
