"""`prer sweep`: wrong input, the table, the best point, and real workers."""

import json
import os
import re
import signal
import subprocess
import threading
import time
from pathlib import Path

import numpy as np
import pytest
from support.commands import COMMAND, environment, python
from support.sweeps import BASE, GRID, finish, is_alive, sweep

from prer.cli.main import main
from prer.runs.checkpoint import Checkpoint
from prer.runs.experiment import Experiment
from prer.runs.folder import RunFolder
from prer.sweeps.sweep import Sweep

pytestmark = pytest.mark.usefixtures("no_terminal")


def called(capsys, *arguments):
    """A command's exit code, what it prints, and what it complains of."""
    code = 0
    try:
        main([str(argument) for argument in arguments])
    except SystemExit as end:
        code = end.code
    return (code, *capsys.readouterr())


# -- wrong input -----------------------------------------------------------------------------------------------------

AXES, DRAWS = "[axes]\n", "budget = 3\n[draws]\n"
WRONG = {
    "unknown key": ("bugdet = 3", "unknown key 'bugdet', did you mean 'budget'?"),
    "unknown axis": (AXES + '"leraner.lr" = [1]', "unknown key 'axes.leraner', did you mean 'learner'?"),
    "unknown setting": (AXES + '"learner.rl" = [1.0]', "point 1 of the sweep (learner.rl=1.0): unknown key"),
    "axis of names": (AXES + 'name = ["a"]', "a name does not change the experiment"),
    "wrong value": (
        AXES + '"learner.lr" = [0.1, "x"]',
        "point 2 of the sweep (learner.lr='x'): learner.lr='x': expected a",
    ),
    "wrong in all": ("seeds = 0", "point 1 of the sweep (): seeds=0"),
    "another learner's": (
        AXES + '"learner.name" = ["naive"]\n"learner.density.blocks" = [2]',
        "a setting of prer, not of naive",
    ),
    "no list": (AXES + '"learner.lr" = 0.1', "axes.learner.lr=0.1: expected a list of at least one value"),
    "empty list": (AXES + '"learner.lr" = []', "axes.learner.lr=[]: expected a list of at least one value"),
    "empty draw": (DRAWS + '"learner.lr" = []', "draws.learner.lr=[]: expected a list of at least one value"),
    "twice": (AXES + '"learner.lr" = [1, 1.0]', "contains 1.0 twice"),
    "list twice": (AXES + '"learner.hidden" = [[8, 4], [8, 4]]', "contains [8, 4] twice"),
    "tables": (AXES + "learner = [{lr = 1}]", "contains a table"),
    "no quotes": (AXES + "learner.lr = [1]", "write a key with a dot in quotes"),
    "no quotes in draws": (DRAWS + "learner.lr = [1]", "write a key with a dot in quotes"),
    "axes no table": ("axes = 5", "'axes' must be a table"),
    "draws no table": ("draws = [1]", "'draws' must be a table"),
    "both": (DRAWS + '"learner.lr" = [1]\n' + AXES + '"learner.lr" = [1]', "'learner.lr' is both in axes and in draws"),
    "no high": (DRAWS + '"learner.lr" = {low = 1}', "needs low and high"),
    "more of a range": (DRAWS + '"learner.lr" = {low = 1, high = 2, logs = true}', "did you mean 'log'?"),
    "exchanged": (DRAWS + '"learner.lr" = {low = 2, high = 1}', "low=2 is above high=1"),
    "log of 0": (DRAWS + '"learner.lr" = {low = 0, high = 1, log = true}', "a log-uniform range needs low above 0"),
    "log a number": (DRAWS + '"learner.lr" = {low = 1, high = 2, log = 1}', "expected true or false"),
    "low a word": (DRAWS + '"learner.lr" = {low = "1", high = 2}', "draws.learner.lr.low='1'"),
    "low true": (DRAWS + '"learner.lr" = {low = true, high = 2}', "draws.learner.lr.low=True"),
    "not finite": (DRAWS + '"learner.lr" = {low = nan, high = 2}', "low=nan: expected a finite number"),
    "infinite": (DRAWS + '"learner.lr" = {low = 1, high = inf}', "high=inf: expected a finite number"),
    "very large": (DRAWS + f'"learner.lr" = {{low = 1, high = 1{"0" * 400}}}', "a finite number"),
    "no budget": ("[draws]\nseeds = [1, 2]", "such as budget = 30"),
    "budget for nothing": ("budget = 3", "budget applies only with [draws]"),
    "budget 0": ("budget = 0\n[draws]\nseeds = [1, 2]", "budget=0: must be at least 1"),
    "budget a word": ('budget = "many"\n[draws]\nseeds = [1, 2]', "budget='many': expected a whole number"),
    "draw below 0": ("draw = -1", "draw=-1: must be at least 0"),
    "huge": (
        AXES + "\n".join(f'"learner.{k}" = {list(range(50))}' for k in "abc"),
        "125,000 points, more than the limit of 100,000",
    ),
    "huge budget": ("budget = 100001\n[draws]\nseeds = {low = 1, high = 9}", "100,001 points"),
    "base itself": ('base = "sweep.toml"', "base='sweep.toml' is the sweep itself"),
    "base by another path": ('base = "../{here}/sweep.toml"', "is the sweep itself"),
    "no base": ('base = "nowhere.toml"', "there is no file nowhere.toml; give an experiment in TOML as base"),
    "base a number": ("base = 5", "base=5: expected a string"),
    "base a folder": ('base = "."', "cannot be read as TOML"),
    "base a sweep": ('base = "other.toml"', "it is allowed only in sweeps, and a base is an experiment"),
    "no TOML": ("axes", "sweep.toml cannot be read as TOML"),
}


@pytest.mark.parametrize("case", WRONG)
def test_wrong_input_is_one_sentence_and_runs_nothing(capsys, tmp_path, case):
    text, words = WRONG[case]
    Path("sweep.toml").write_text(text.replace("{here}", tmp_path.name))
    Path("other.toml").write_text("[axes]\nseeds = [1]")
    code, out, err = called(capsys, "sweep", "sweep.toml")
    assert (code, out) == (2, "") and re.fullmatch(r"prer: [^\n]+\n", err)
    assert words in err
    assert not Path("runs").exists()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["nowhere.toml"], "there is no file nowhere.toml; give a sweep in TOML"),
        (["sweep.toml", "--engine", "locla"], "did you mean 'local'?"),
        (["sweep.toml", "other.toml"], "'other.toml' is not of the form key=value"),
        (["sweep.toml", "--workers", "0"], "0 is not in the range"),
        (["best", "sweep.toml"], "no point of the sweep has a result with accuracy in runs; run the sweep first"),
        (["best", "sweep.toml", "--by", "acuracy"], "unknown metric 'acuracy', did you mean 'accuracy'?"),
        (["best", "sweep.toml", "-o", "./sweep.toml"], "is the sweep itself"),
    ],
)
def test_wrong_arguments_are_refused(capsys, arguments, words):
    Path("sweep.toml").write_text(GRID)
    code, out, err = called(capsys, "sweep", *arguments)
    assert (code, out) == (2, "") and words in err
    assert Path("sweep.toml").read_text() == GRID and not Path("runs").exists()


@pytest.mark.parametrize("command", [["sweep"], ["sweep", "best"]])
def test_progress_is_shown_while_many_points_are_checked(capsys, monkeypatch, command):
    monkeypatch.setattr("prer.terminal.sweeps.MANY", 4)
    Path("sweep.toml").write_text(GRID.replace("[32, 64]", "[32, -1]"))  # the second point is wrong
    code, out, err = called(capsys, *command, "sweep.toml")
    assert (code, out) == (2, "checking the points of the sweep: 4\n") and "point 2 of the sweep" in err


def test_a_log_names_the_steps_for_many_points(capsys, monkeypatch, workers):
    monkeypatch.setattr("prer.terminal.sweeps.MANY", 4)
    workers("raise SystemExit(1)")
    Path("sweep.toml").write_text(GRID)
    lines = called(capsys, "sweep", "sweep.toml", "learner.epochs=2")[1].splitlines()
    assert lines[0] == "checking the points of the sweep: 4"
    assert lines[1].startswith("4 points in the sweep")
    assert lines[2] == "checking which points are finished: 4"


# -- the table and the best ------------------------------------------------------------------------------------------


def rows(out):
    return [line.split("│")[1:-1] for line in out.splitlines() if line.startswith("│")]


def test_the_table_has_the_settings_that_vary_and_the_best_first(capsys):
    points = sweep(GRID + '"learner.name" = ["naive"]\n"learner.epochs" = [1]\n').points()
    for point, accuracy in zip(points, (20.0, 9.0, 40.0, 20.0), strict=True):
        finish(point, accuracy=accuracy)
    code, out, err = called(capsys, "sweep", "sweep.toml")
    header = next(line for line in out.splitlines() if line.startswith("┃"))
    assert (code, err) == (0, "")
    assert header.split()[1::2][:6] == ["run", "learner", "data", "learner.lr", "learner.batch", "seeds"]
    wanted = [points[2], points[0], points[3], points[1]]
    assert [[cell.strip() for cell in row[:5]] for row in rows(out)] == [
        [p.folder, "naive", "digits", str(p.learner.lr), str(p.learner.batch)] for p in wanted
    ]


def test_a_sweep_repeats_warnings_of_its_runs_and_warns_of_a_winner_near_chance(capsys):
    points = sweep(GRID).points()
    for point in points:
        finish(point, accuracy=53.0)
        (Path("runs") / point.folder / "environment.json").write_text(json.dumps({"warnings": ["too few steps"]}))
    told = f"warning: {points[0].folder}: on average, tasks reach only 53.0 % after training; chance level is 50 %\n"
    for command in ("run", "best"):
        out = called(capsys, "sweep", command, "sweep.toml")[1]
        assert out.count("warning: too few steps\n") == 1 and told in out


def test_the_best_is_the_first_with_the_highest_mean_and_others_are_counted(capsys):
    points = sweep(GRID).points()
    for point, accuracy in zip(points, (50.0, 70.5, 70.5), strict=False):
        finish(point, accuracy=accuracy)
    (Path("runs") / points[0].folder / "result.json").unlink()
    code, out, err = called(capsys, "sweep", "best", "sweep.toml", "-o", "found.toml")
    assert (code, err) == (0, "")
    assert f"{points[1].folder} has the best accuracy, 70.50; points compared: 2" in out
    assert "warning: points left out of the comparison: 1 not finished and 1 not started" in out
    assert "warning: it was selected on the test part" in out
    assert Experiment.read(Path("found.toml")) == points[1]


def test_what_was_found_on_a_validation_part_is_tested_on_the_test_part(capsys):
    points = sweep(GRID, "stream.validation=0.25").points()
    for i, point in enumerate(points):
        finish(point, accuracy=90 + i)
    _, out, _ = called(capsys, "sweep", "best", "sweep.toml", "stream.validation=0.25")
    assert "warning" not in out and "uses the test part" in out
    assert Experiment.read(Path("best.toml")).hash == sweep(GRID).points()[3].hash != points[3].hash


def test_a_best_point_that_cannot_be_written_is_one_sentence(capsys):
    finish(sweep(GRID).points()[0])
    assert "cannot write nowhere/b.toml" in called(capsys, "sweep", "best", "sweep.toml", "-o", "nowhere/b.toml")[2]


# -- signals ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_ends_all_workers(capsys, workers, number, code):
    workers("import os, sys, time, pathlib; pathlib.Path(sys.argv[2], str(os.getpid())).touch(); time.sleep(60)")
    Path("out").mkdir()
    Path("sweep.toml").write_text(GRID)
    before = signal.getsignal(number)

    def interrupt():
        while len(list(Path("out").iterdir())) < 2:
            time.sleep(0.01)
        os.kill(os.getpid(), number)

    thread = threading.Thread(target=interrupt)
    thread.start()
    assert called(capsys, "sweep", "sweep.toml", "--workers", "2", "--out", "out")[0] == code
    thread.join()
    pids = [path.name for path in Path("out").iterdir()]
    assert len(pids) == 2 and not any(map(is_alive, pids))
    assert signal.getsignal(number) is before


# -- real workers, few as each imports torch -------------------------------------------------------------------------


@pytest.fixture(scope="module")
def swept(tmp_path_factory):
    """A sweep of two points, run by two workers: its folder and its process."""
    cwd = tmp_path_factory.mktemp("swept")
    (cwd / "sweep.toml").write_text(BASE + '[axes]\n"learner.lr" = [0.01, 0.1]\n')
    done = python("-m", "prer", "sweep", "sweep.toml", "--workers", "2", cwd=cwd)
    assert done.returncode == 0, done.stdout + done.stderr  # or only what follows from it would be seen
    return cwd, done


def test_a_sweep_runs_every_point_in_its_folder_and_prints_a_line_for_each(swept):
    cwd, done = swept
    assert (done.returncode, done.stderr) == (0, "")
    points = Sweep.read(cwd / "sweep.toml").points()
    assert {path.name for path in (cwd / "runs").iterdir()} == {p.folder for p in points}
    first, waiting, *lines = done.stdout.splitlines()[:4]
    assert first == "2 points in the sweep; folder of runs: runs"
    assert waiting.endswith(", ".join(p.folder for p in points))
    assert [line.split("/")[0] for line in lines] == ["1", "2"]
    assert all(re.fullmatch(r"\d/2  digits-naive-[0-9a-f]{8}  Accuracy [\d.]+  .* left", line) for line in lines)
    for point in points:
        folder = RunFolder(cwd / "runs" / point.folder)
        assert folder.result["seeds"] == [0]
        assert json.loads((folder.path / "environment.json").read_text())["threads"] == 1


def test_a_repeated_sweep_trains_nothing_and_its_best_is_the_first_of_its_table(capsys, monkeypatch, swept, workers):
    cwd, done = swept
    workers("raise AssertionError")
    monkeypatch.chdir(cwd)
    before = {path: path.stat().st_mtime_ns for path in Path("runs").rglob("*")}
    code, out, err = called(capsys, "sweep", "sweep.toml")
    assert (code, err) == (0, "") and rows(out) == rows(done.stdout) and "left" not in out
    assert {path: path.stat().st_mtime_ns for path in Path("runs").rglob("*")} == before
    called(capsys, "sweep", "best", "sweep.toml")
    path = called(capsys, "run", "best.toml", "--quiet")[1].strip()
    assert Path(path).name == rows(out)[0][0].strip()
    assert {path: path.stat().st_mtime_ns for path in Path("runs").rglob("*")} == before


def test_a_failed_point_is_reported_and_the_others_go_on(capsys):
    Path("sweep.toml").write_text(BASE + '[axes]\n"learner.lr" = [1e30, 0.1]\n')
    code, out, err = called(capsys, "sweep", "sweep.toml", "--workers", "2")
    assert (code, err) == (1, "prer: 1 of 2 points failed; to run them again, add --retry\n")
    assert re.search(r"^\d/2  digits-naive-\w{8}  failed: the loss of seed 0 became .* lower learning rate", out, re.M)
    assert re.search(r"^\d/2  digits-naive-\w{8}  Accuracy", out, re.M)
    assert len(rows(out)) == 1
    again = called(capsys, "sweep", "sweep.toml")  # trains nothing
    assert again[0] == 1 and again[1].count("failed: the loss of seed 0") == 1 and " left" not in again[1]
    assert re.search("failed: .* left", called(capsys, "sweep", "sweep.toml", "--retry")[1])
    left_out = "warning: points left out of the comparison: 1 not finished"
    assert left_out in called(capsys, "sweep", "best", "sweep.toml")[1]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_a_killed_sweep_leaves_no_orphan_and_goes_on_later(capsys, workers, number):
    np.savez("my.npz", x=np.random.default_rng(0).normal(size=(48, 4)), y=np.arange(48) % 4)
    text = BASE + '[stream]\ndata = "my.npz"\n[axes]\n"learner.epochs" = [1, 1000000]\n'
    points = sweep(text).points()
    finish(points[0])
    begun = Path("runs") / points[1].folder / "events.jsonl"
    command, quiet = [*COMMAND, "sweep", "sweep.toml"], subprocess.DEVNULL
    with subprocess.Popen(command, env=environment(), stdout=quiet, start_new_session=True) as running:
        try:
            while not (begun.exists() and begun.read_text()):
                time.sleep(0.05)
                assert running.poll() is None
            running.send_signal(number)
            assert running.wait(20) == (143 if number == signal.SIGTERM else -signal.SIGKILL)
        finally:
            running.kill()
    deadline = time.monotonic() + 30
    while RunFolder(begun.parent).running():
        time.sleep(0.05)
        assert time.monotonic() < deadline, "its worker goes on"
    assert Checkpoint(begun.parent / "checkpoint").read() is not None
    assert not (begun.parent / "result.json").exists()
    workers("import sys; sys.exit(open(sys.argv[1]).read().split('epochs = ')[1].split()[0])")
    code, out, _ = called(capsys, "sweep", "sweep.toml")
    assert code == 1 and out.count("failed") == 1 and "failed: 1000000\n" in out.replace("  0 s left", "")
