"""A sweep as it goes: what runs, how far it is, and bars over many points."""

import json
import re
from io import StringIO
from pathlib import Path
from types import SimpleNamespace

import pytest
from rich.console import Console
from rich.progress import Progress
from support.sweeps import GRID, sweep

from prer.runs.folder import RunFolder
from prer.sweeps.engines import Local
from prer.terminal.sweeps import Bar, far, follow, stepped

pytestmark = pytest.mark.usefixtures("no_terminal")


def half_way(folder, tasks=2, phases=None):
    """What a worker has written when half of its first task is learned, and a line that is being written."""
    about = {"event": "epoch", "task": 0, "phase": "classifier", "epochs": 2, "loss": [0.5], "seconds": 10.0}
    folder.path.mkdir(parents=True)
    (folder.path / "environment.json").write_text(json.dumps({"tasks": tasks, "phases": phases or {"classifier": 2}}))
    (folder.path / "events.jsonl").write_text(json.dumps(about | {"epoch": 0}) + '\n{"event": "epo')


def test_the_progress_of_a_run_is_read_from_its_folder():
    one, two = RunFolder(Path("one")), RunFolder(Path("two"))
    half_way(one)
    half_way(two, tasks=None)
    said = [far(folder) for folder in (one, two, RunFolder(Path("three")))]
    assert said == ["30 s left  task 1/2  classifier 1/2", "starting", "starting"]


@pytest.mark.parametrize(
    "event",
    [
        {},
        *({key: value} for key in ("phase", "task", "epoch", "epochs", "seconds") for value in (None, [], "none")),
        *({"seconds": float(value)} for value in ("nan", "inf")),
        {"task": 10**400},
    ],
)
def test_a_damaged_event_does_not_end_the_display(event):
    folder = RunFolder(Path("run"))
    half_way(folder)
    about = {"event": "epoch", "task": 0, "phase": "classifier", "epoch": 0, "epochs": 2, "seconds": 1.0}
    (folder.path / "events.jsonl").write_text(json.dumps(about | event if event else {"event": "epoch"}) + "\n")
    assert far(folder) == "starting"


@pytest.mark.parametrize("name", ["cifar10-prer-literal-95c25905", "x" * 40 + "-95c25905"])
def test_the_time_left_is_seen_on_a_narrow_terminal(name):
    folder = RunFolder(Path(name))
    half_way(folder, tasks=10, phases={"autoencoder": 20, "flow": 20, "head": 2})
    about = {"event": "epoch", "task": 1, "phase": "autoencoder", "epoch": 19, "epochs": 20, "seconds": 1000.0}
    (folder.path / "events.jsonl").write_text(json.dumps(about) + "\n")
    console = Console(file=StringIO(), force_terminal=True, width=80)
    with Bar(console, SimpleNamespace(running=[folder])):
        pass
    line, *_ = (line for line in console.file.getvalue().splitlines() if name in line)
    assert re.search(r"-95c25905  \d+ h \d+ min left  task 2/10", line)
    assert len(name) > 40 or "autoencoder 20/20" in line


@pytest.fixture
def often(monkeypatch):
    """Bars are refreshed twenty times a second."""
    usual = Progress.__init__
    monkeypatch.setattr(
        Progress, "__init__", lambda self, *columns, **more: usual(self, *columns, **more | {"refresh_per_second": 20})
    )


@pytest.mark.parametrize("live", [True, False])
def test_active_runs_are_shown(workers, often, live):
    workers("import time; time.sleep(0.4); raise SystemExit(1)")
    points = sweep(GRID, "learner.epochs=2").points()
    half_way(RunFolder(Path("runs", points[0].folder)))
    (Path("runs") / points[0].folder / "experiment.toml").write_text(points[0].to_toml())
    console = Console(file=StringIO(), force_terminal=live, width=200)
    follow(console, Local(1).run(points[:2], Path("runs")), points[:2], Path("runs"))
    text = console.file.getvalue()
    assert (f"runs to do (one line is printed as each ends): {points[0].folder}, {points[1].folder}\n" in text) != live
    assert (f"{points[0].folder}  30 s left  task 1/2  classifier 1/2" in text) == live
    assert (f"{points[1].folder}  starting" in text) == live


def test_a_terminal_shows_a_transient_bar_for_many_points(monkeypatch):
    monkeypatch.setattr("prer.terminal.sweeps.MANY", 4)
    console = Console(file=StringIO(), width=120, force_terminal=True, legacy_windows=False)
    assert list(stepped(console, range(4), "checking", 4)) == [0, 1, 2, 3]
    assert "checking" in console.file.getvalue() and console.file.getvalue().endswith("\x1b[1A\x1b[2K")
    console = Console(file=StringIO(), width=120, force_terminal=True)
    assert list(stepped(console, range(3), "checking", 3)) == [0, 1, 2]
    assert console.file.getvalue() == ""
