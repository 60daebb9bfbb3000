"""What a run tells its observer; without one it prints nothing and imports no terminal."""

from contextlib import contextmanager

import pytest
from support.commands import python
from support.folders import TINY, write_data

from prer.runs.experiment import Experiment
from prer.runs.observer import RunObserver
from prer.runs.run import execute, resume

SETTINGS = ["stream.data=my.npz", "learner.name=naive", *TINY[:4], "seeds=2", "device=cpu"]
ALONE = f"""
import sys
from pathlib import Path
from prer.runs.experiment import Experiment
from prer.runs.run import execute
folder = execute(Experiment.parse({{}}, {SETTINGS!r}), Path("runs"))
loaded = set(sys.modules) & {{"rich", "click", "matplotlib", "jinja2", "prer.terminal", "prer.report", "prer.cli"}}
Path("loaded.txt").write_text(repr(sorted(loaded)))
assert (folder.path / "result.json").exists()
"""


class Listener(RunObserver):
    """Notes all that it is told."""

    def __init__(self):
        self.told, self.events, self.start = [], [], None

    @contextmanager
    def fetching(self):
        self.told.append("fetching")
        yield lambda what, done, total: None
        self.told.append("fetched")

    @contextmanager
    def training(self, start):
        self.start = start
        self.told.append("training")
        yield self.events.append
        self.told.append("trained")


@pytest.fixture
def experiment(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_data(tmp_path / "my.npz")
    return Experiment.parse({}, SETTINGS)


def test_without_an_observer_nothing_is_printed_and_no_terminal_is_imported(tmp_path):
    """In a process of its own."""
    write_data(tmp_path / "my.npz")
    done = python("-c", ALONE, cwd=tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert (tmp_path / "loaded.txt").read_text() == "[]"


def test_an_observer_is_told_the_start_and_every_event(experiment, tmp_path):
    listener = Listener()
    folder = execute(experiment, tmp_path / "runs", listener)
    assert listener.told == ["fetching", "fetched", "training", "trained"]
    start = listener.start
    assert (start.name, start.folder, start.learned) == (experiment.name, folder.path, None)
    assert (len(start.stream), start.phases) == (2, {"classifier": 2})
    assert len(start.warnings) == 1 and "only" in start.warnings[0]
    assert [{k: e[k] for k in ("event", "task")} for e in listener.events] == [
        {"event": event, "task": task} for task in (0, 1) for event in ("epoch", "epoch", "task")
    ]
    assert listener.events == list(folder.events())


def test_a_finished_run_is_not_trained_again(experiment, tmp_path):
    execute(experiment, tmp_path / "runs")
    listener = Listener()
    execute(experiment, tmp_path / "runs", listener)
    assert listener.told == ["fetching", "fetched"] and listener.events == []


def test_an_observer_is_told_how_many_tasks_were_learned_before(run):
    listener = Listener()
    resume(run, listener)
    assert listener.start.learned == 1
    assert {event["task"] for event in listener.events} == {1}


def test_an_observer_that_fails_ends_the_run_and_it_goes_on_later(experiment, tmp_path):
    class Broken(Listener):
        @contextmanager
        def training(self, start):
            def show(event):
                raise KeyError("nobody listens")

            yield show

    with pytest.raises(KeyError, match="nobody listens"):
        execute(experiment, tmp_path / "runs", Broken())
    assert execute(experiment, tmp_path / "runs").result is not None
