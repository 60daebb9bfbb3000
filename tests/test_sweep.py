"""Sweeps: the points they mean, the workers that run them, what is told of them, and the best of them."""

import json
import math
import os
import re
import signal
import subprocess
import sys
import threading
import time
from io import StringIO
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.console import Console

import prer
from prer.cli.main import main
from prer.runs.checkpoint import Checkpoint
from prer.runs.experiment import Experiment
from prer.runs.folder import RunFolder
from prer.sweeps.best import NAMES, best
from prer.sweeps.distributions import Choice, Range
from prer.sweeps.engines import Local, cores, engine
from prer.sweeps.engines.base import ended_before
from prer.sweeps.sweep import Sweep
from prer.terminal.sweeps import Bar, far, follow, stepped

BASE = 'seeds = 1\ndevice = "cpu"\n[learner]\nname = "naive"\nepochs = 1\noptimiser = "sgd"\n'
GRID = BASE + '[axes]\n"learner.lr" = [0.01, 0.1]\n"learner.batch" = [32, 64]\n'
DRAWN = BASE + '[draws]\n"learner.lr" = {low = 1e-4, high = 1e-1, log = true}\n'
BITS = st.integers(0, 2**64 - 1)
quickly = settings(derandomize=True, database=None, deadline=None, max_examples=60)


@pytest.fixture(autouse=True)
def here(monkeypatch, tmp_path):
    for name in ("FORCE_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE", "COLUMNS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)


def sweep(text, *overrides):
    Path("sweep.toml").write_text(text)
    return Sweep.read(Path("sweep.toml"), overrides)


def called(capsys, *arguments):
    """A command's exit code, what it prints, and what it complains of."""
    code = 0
    try:
        main([str(argument) for argument in arguments])
    except SystemExit as end:
        code = end.code
    return (code, *capsys.readouterr())


def chosen(points, key):
    return [getattr(point.learner, key) for point in points]


def finish(point, out=Path("runs"), accuracy=50.0, **metrics):
    """Write what a finished run of this point leaves behind."""
    folder = out / point.folder
    folder.mkdir(parents=True)
    (folder / "experiment.toml").write_text(point.to_toml())
    means = {"accuracy": accuracy, "bwt": 0.0} | metrics
    result = {name: {"mean": mean, "std": None, "values": [mean]} for name, mean in means.items()}
    result |= {
        "seeds": [0],
        "matrix": [[[accuracy]]],
        "memory_floats": [0],
        "memory_samples": [0],
        "seconds": {"total": 1},
    }
    (folder / "result.json").write_text(json.dumps(result | {"learner": point.learner.name, "stream": "digits"}))


# -- points ----------------------------------------------------------------------------------------------------------


def test_the_grid_is_every_combination_in_order():
    points = sweep(GRID).points()
    assert [(p.learner.lr, p.learner.batch) for p in points] == [(0.01, 32), (0.01, 64), (0.1, 32), (0.1, 64)]
    assert all(isinstance(p, Experiment) and p.seeds == (0,) and p.learner.epochs == 1 for p in points)


def test_a_sweep_of_nothing_is_its_one_experiment():
    assert sweep(BASE).points() == [Experiment.read(Path("sweep.toml"))]


def test_draws_are_the_same_for_ever():
    text = "budget = 4\n[draws]\n" + "\n".join(
        [
            '"learner.lr" = {low = 1e-4, high = 1e-1, log = true}',
            '"learner.epochs" = {low = 5, high = 50}',
            '"learner.batch" = [32, 64, 128]',
            '"learner.embedding" = {low = 2, high = 512, log = true}',
            '"learner.dropout" = {low = 0, high = 0.5}',
        ]
    )
    points = sweep(text).points()
    assert chosen(points, "lr") == [0.000946883, 0.0102693, 0.000116433, 0.0615989]
    assert chosen(points, "epochs") == [45, 14, 24, 8]
    assert chosen(points, "batch") == [128, 128, 32, 32]
    assert chosen(points, "embedding") == [13, 54, 71, 32]
    assert chosen(points, "dropout") == [0.23029, 0.38785, 0.216815, 0.248805]
    assert chosen(sweep("draw = 1\n" + text).points(), "epochs") != [45, 14, 24, 8]


def test_an_axis_or_a_draw_more_leaves_the_other_draws_as_they_are():
    text = "budget = 5\n" + DRAWN
    lrs = chosen(sweep(text).points(), "lr")
    more = sweep(text + '"learner.batch" = [32, 64]\n[axes]\n"learner.epochs" = [1, 2]\n').points()
    assert chosen(more, "lr") == lrs * 2
    assert chosen(more, "batch")[:5] == chosen(more, "batch")[5:]
    assert len(set(chosen(more, "batch"))) == 2
    assert chosen(sweep(text, "budget=3").points(), "lr") == lrs[:3]


@given(budget=st.integers(1, 40), draw=st.integers(0, 10**9), values=st.integers(1, 12), high=st.integers(1, 9))
@quickly
def test_the_budget_is_kept_or_everything_is_drawn_and_no_point_comes_twice(budget, draw, values, high):
    draws = {"learner.batch": Choice([2 + v for v in range(values)]), "learner.epochs": Range(1, high)}
    points = Sweep(shared={"learner": {"name": "naive"}}, axes={}, draws=draws, budget=budget, draw=draw).points()
    assert len(points) == len({p.hash for p in points}) == min(budget, values * high)


def test_points_that_are_the_same_by_their_hash_are_one():
    assert len(sweep('[axes]\nseeds = [2, [0, 1], 3]\n[learner]\nname = "naive"').points()) == 2


@given(bits=BITS, ends=st.tuples(*[st.floats(-1e300, 1e300)] * 2), log=st.booleans())
@quickly
def test_numbers_are_within_their_range(bits, ends, log):
    low, high = sorted(abs(end) + 1e-300 for end in ends) if log else sorted(ends)
    assert low <= Range(low, high, log).value(bits) <= high


@given(bits=BITS, ends=st.tuples(*[st.integers(1, 10**18)] * 2), log=st.booleans())
@quickly
def test_whole_numbers_are_whole_and_within_their_range(bits, ends, log):
    low, high = sorted(ends)
    value = Range(low, high, log).value(bits)
    assert type(value) is int and low <= value <= high


@pytest.mark.parametrize("log", [False, True])
def test_each_whole_number_is_as_likely_as_it_should_be(log):
    drawn = np.bincount([Range(1, 4, log).value(i << 54) for i in range(1024)], minlength=5)[1:] / 1024
    wanted = [math.log((k + 1) / k) / math.log(5) if log else 0.25 for k in (1, 2, 3, 4)]
    np.testing.assert_allclose(drawn, wanted, atol=0.002)


def test_logarithms_are_uniform_and_so_are_choices():
    points = sweep("budget = 600\n" + DRAWN + '"learner.batch" = [32, 64, 128]\n').points()
    share = np.sort((np.log10(chosen(points, "lr")) + 4) / 3)
    assert np.abs(share - (np.arange(600) + 0.5) / 600).max() < 1.6 / 600**0.5  # Kolmogorov and Smirnov, 1 in 80
    assert all(abs(chosen(points, "batch").count(batch) - 200) < 50 for batch in (32, 64, 128))


def test_the_base_is_beside_the_sweep_and_below_it(tmp_path):
    Path("deep").mkdir()
    Path("deep/base.toml").write_text(BASE)
    Path("deep/s.toml").write_text('base = "base.toml"\nseeds = 2\n[learner]\nepochs = 3\n[axes]\nseeds = [4, 5]')
    points = Sweep.read(Path("deep/s.toml"), ["device=auto"]).points()
    assert [(p.seeds, p.device, p.learner.epochs, p.learner.optimiser) for p in points] == [
        (tuple(range(n)), "auto", 3, "sgd") for n in (4, 5)
    ]


def test_an_override_holds_for_all_points_in_place_of_an_axis_or_draw():
    assert chosen(sweep(GRID, "learner.epochs=7").points(), "epochs") == [7] * 4
    assert [(p.learner.lr, p.learner.batch) for p in sweep(GRID, "learner.lr=0.5").points()] == [(0.5, 32), (0.5, 64)]
    assert chosen(sweep("budget = 9\n" + DRAWN, "learner.lr=0.5").points(), "lr") == [0.5]


# -- wrong input -----------------------------------------------------------------------------------------------------

AXES, DRAWS = "[axes]\n", "budget = 3\n[draws]\n"
WRONG = {
    "unknown key": ("bugdet = 3", "unknown key 'bugdet', did you mean 'budget'?"),
    "unknown axis": (AXES + '"leraner.lr" = [1]', "unknown key 'axes.leraner', did you mean 'learner'?"),
    "unknown setting": (AXES + '"learner.rl" = [1.0]', "point 1 of the sweep (learner.rl=1.0): unknown key"),
    "axis of names": (AXES + 'name = ["a"]', "a name makes no other experiment"),
    "wrong value": (AXES + '"learner.lr" = [0.1, "x"]', "point 2 of the sweep (learner.lr='x'): learner.lr='x': a"),
    "wrong in all": ("seeds = 0", "point 1 of the sweep (): seeds=0"),
    "another learner's": (
        AXES + '"learner.name" = ["naive"]\n"learner.blocks" = [2]',
        "a setting of prer, not of naive",
    ),
    "no list": (AXES + '"learner.lr" = 0.1', "axes.learner.lr=0.1: a list of one value at least"),
    "empty list": (AXES + '"learner.lr" = []', "axes.learner.lr=[]: a list of one value at least"),
    "empty draw": (DRAWS + '"learner.lr" = []', "draws.learner.lr=[]: a list of one value at least"),
    "twice": (AXES + '"learner.lr" = [1, 1.0]', "holds 1.0 twice"),
    "list twice": (AXES + '"learner.hidden" = [[8, 4], [8, 4]]', "holds [8, 4] twice"),
    "tables": (AXES + "learner = [{lr = 1}]", "holds a table"),
    "no quotes": (AXES + "learner.lr = [1]", "a key with a dot is written in quotes"),
    "no quotes in draws": (DRAWS + "learner.lr = [1]", "a key with a dot is written in quotes"),
    "axes no table": ("axes = 5", "'axes' must be a table"),
    "draws no table": ("draws = [1]", "'draws' must be a table"),
    "both": (DRAWS + '"learner.lr" = [1]\n' + AXES + '"learner.lr" = [1]', "'learner.lr' is both in axes and in draws"),
    "no high": (DRAWS + '"learner.lr" = {low = 1}', "needs low and high"),
    "more of a range": (DRAWS + '"learner.lr" = {low = 1, high = 2, logs = true}', "did you mean 'log'?"),
    "exchanged": (DRAWS + '"learner.lr" = {low = 2, high = 1}', "low=2 is above high=1"),
    "log of 0": (DRAWS + '"learner.lr" = {low = 0, high = 1, log = true}', "low=0 has no logarithm"),
    "log a number": (DRAWS + '"learner.lr" = {low = 1, high = 2, log = 1}', "true or false is wanted"),
    "low a word": (DRAWS + '"learner.lr" = {low = "1", high = 2}', "draws.learner.lr.low='1'"),
    "low true": (DRAWS + '"learner.lr" = {low = true, high = 2}', "draws.learner.lr.low=True"),
    "not finite": (DRAWS + '"learner.lr" = {low = nan, high = 2}', "low=nan: a finite number"),
    "infinite": (DRAWS + '"learner.lr" = {low = 1, high = inf}', "high=inf: a finite number"),
    "very large": (DRAWS + f'"learner.lr" = {{low = 1, high = 1{"0" * 400}}}', "a finite number"),
    "no budget": ("[draws]\nseeds = [1, 2]", "such as budget = 30"),
    "budget for nothing": ("budget = 3", "budget has a meaning only with [draws]"),
    "budget 0": ("budget = 0\n[draws]\nseeds = [1, 2]", "budget=0: take 1 or more"),
    "budget a word": ('budget = "many"\n[draws]\nseeds = [1, 2]', "budget='many': a whole number is wanted"),
    "draw below 0": ("draw = -1", "draw=-1: take 0 or more"),
    "huge": (AXES + "\n".join(f'"learner.{k}" = {list(range(50))}' for k in "abc"), "125,000 points; 100,000 are"),
    "huge budget": ("budget = 100001\n[draws]\nseeds = {low = 1, high = 9}", "100,001 points"),
    "base itself": ('base = "sweep.toml"', "base='sweep.toml' is the sweep itself"),
    "base by another path": ('base = "../{here}/sweep.toml"', "is the sweep itself"),
    "no base": ('base = "nowhere.toml"', "there is no file nowhere.toml; give an experiment in TOML as base"),
    "base a number": ("base = 5", "base=5: a string is wanted"),
    "base a folder": ('base = "."', "cannot be read as TOML"),
    "base a sweep": ('base = "other.toml"', "it is a key of sweeps, and a base is an experiment"),
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
        (["sweep.toml", "--engine", "ray"], "the engine ray comes later; take --engine local"),
        (["--engine", "slurm", "sweep.toml"], "the engine slurm comes later"),
        (["sweep.toml", "--engine", "locla"], "did you mean 'local'?"),
        (["sweep.toml", "other.toml"], "'other.toml' is not of the form key=value"),
        (["sweep.toml", "--workers", "0"], "0 is not in the range"),
        (["best", "sweep.toml"], "no point of the sweep has a result in runs with accuracy; run the sweep first"),
        (["best", "sweep.toml", "--by", "acuracy"], "unknown metric 'acuracy', did you mean 'accuracy'?"),
        (["best", "sweep.toml", "-o", "./sweep.toml"], "is the sweep itself"),
    ],
)
def test_wrong_words_are_refused(capsys, arguments, words):
    Path("sweep.toml").write_text(GRID)
    code, out, err = called(capsys, "sweep", *arguments)
    assert (code, out) == (2, "") and words in err
    assert Path("sweep.toml").read_text() == GRID and not Path("runs").exists()


# -- the local engine, with workers that cost nothing ----------------------------------------------------------------


@pytest.fixture
def workers(monkeypatch):
    """Let workers run this code instead of an experiment; its file and folder are in sys.argv."""

    def do(code):
        monkeypatch.setattr(
            "prer.sweeps.engines.local.command", lambda file, out: [sys.executable, "-Sc", code, file, out]
        )

    return do


def alive(pid):
    try:
        os.kill(int(pid), 0)
    except ProcessLookupError:
        return False
    return True


def test_so_many_workers_run_at_a_time_and_each_has_one_thread(workers, monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "7")
    workers(
        "import os, sys, time, pathlib; begin = time.time(); time.sleep(0.2)\n"
        "text = f'{begin} {time.time()} {os.environ[\"OMP_NUM_THREADS\"]}'\n"
        "pathlib.Path(sys.argv[2], pathlib.Path(sys.argv[1]).stem).write_text(text)"
    )
    Path("out").mkdir()
    points = sweep(GRID).points()
    outcomes = list(Local(2).run([*points, *sweep(GRID, "learner.epochs=2").points()], Path("out")))
    assert len(outcomes) == 8 and all(o.trained and not o.error for o in outcomes)
    spans = [file.read_text().split() for file in Path("out").iterdir()]
    beside = [sum(float(a) <= float(begin) < float(b) for a, b, _ in spans) for begin, _, _ in spans]
    assert len(spans) == 8 and max(beside) == 2
    assert {threads for *_, threads in spans} == {"1"}


@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("import sys; print('one', file=sys.stderr); sys.exit('prer: two')", "two"),
        ("raise SystemExit(3)", "its process ended with 3"),
        ("import os; os.kill(os.getpid(), 9)", "its process was ended by SIGKILL"),
    ],
)
def test_a_failed_point_is_told_by_its_last_words(workers, code, words):
    workers(code)
    assert [o.error for o in Local(4).run(sweep(GRID).points(), Path("runs"))] == [words] * 4


def test_one_that_fails_stops_no_other_and_ends_are_told_as_they_come(workers):
    workers(
        "import sys, time; text = open(sys.argv[1]).read()\n"
        "sys.exit('no') if 'lr = 0.01' in text else time.sleep(1.0 if 'batch = 32' in text else 0)"
    )
    points = sweep(GRID).points()
    ended = [(points.index(outcome.experiment), outcome.error) for outcome in Local(2).run(points, Path("runs"))]
    assert sorted(ended[:2]) == [(0, "no"), (1, "no")]
    assert ended[2:] == [(3, ""), (2, "")]


def test_finished_and_useless_folders_need_no_process(workers):
    workers("raise AssertionError")
    points = sweep(GRID).points()
    finish(points[0])
    finish(points[1])
    (Path("runs") / points[1].folder / "result.json").write_text("{")
    (Path("runs") / points[2].folder).mkdir()
    (Path("runs") / points[2].folder / "mine").write_text("")
    known = [ended_before(point, Path("runs")) for point in points]
    assert [o and (o.trained, bool(o.error)) for o in known] == [(False, False), (False, True), (False, True), None]
    ended = list(Local(1).run(points, Path("runs")))
    assert [o.trained for o in ended] == [False, False, False, True]


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
    assert len(pids) == 2 and not any(map(alive, pids))
    assert signal.getsignal(number) is before


def test_who_looks_no_further_ends_the_workers(workers):
    workers(
        "import os, sys, time, pathlib; pathlib.Path(sys.argv[2], str(os.getpid())).touch()\n"
        "time.sleep(0 if 'lr = 0.01' in open(sys.argv[1]).read() else 60)"
    )
    Path("out").mkdir()
    outcomes = Local(4).run(sweep(GRID).points(), Path("out"))
    assert next(outcomes).experiment.learner.lr == 0.01
    outcomes.close()
    assert not any(alive(path.name) for path in Path("out").iterdir())


def test_a_worker_that_does_not_listen_is_killed(workers, monkeypatch):
    monkeypatch.setattr("prer.sweeps.engines.local.GRACE", 0.1)
    workers(
        "import os, signal, sys, time, pathlib; signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        "pathlib.Path(sys.argv[2], str(os.getpid())).touch()\n"
        "time.sleep(0.5 if 'lr = 0.01' in open(sys.argv[1]).read() else 60)"
    )
    Path("out").mkdir()
    outcomes = Local(4).run(sweep(GRID).points(), Path("out"))
    next(outcomes)
    outcomes.close()
    assert not any(alive(path.name) for path in Path("out").iterdir())


def half_way(record, tasks=2, phases=None):
    """What a worker has written when half of its first task is learned, and a line that is being written."""
    about = {"event": "epoch", "task": 0, "phase": "classifier", "epochs": 2, "loss": [0.5], "seconds": 10.0}
    record.path.mkdir(parents=True)
    (record.path / "environment.json").write_text(json.dumps({"tasks": tasks, "phases": phases or {"classifier": 2}}))
    (record.path / "events.jsonl").write_text(json.dumps(about | {"epoch": 0}) + '\n{"event": "epo')


def test_how_far_a_run_is_stands_in_its_folder():
    one, two = RunFolder(Path("one")), RunFolder(Path("two"))
    half_way(one)
    half_way(two, tasks=None)
    said = [far(record) for record in (one, two, RunFolder(Path("three")))]
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
def test_a_damaged_event_is_no_reason_to_end_the_display(event):
    record = RunFolder(Path("run"))
    half_way(record)
    about = {"event": "epoch", "task": 0, "phase": "classifier", "epoch": 0, "epochs": 2, "seconds": 1.0}
    (record.path / "events.jsonl").write_text(json.dumps(about | event if event else {"event": "epoch"}) + "\n")
    assert far(record) == "starting"


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


def test_the_newest_events_are_found_in_a_long_file():
    record = RunFolder(Path("run"))
    record.path.mkdir()
    for number in range(2000):
        record.event({"event": "epoch", "number": number, "text": "x" * 100})
    newest = [event["number"] for event in record.newest() if event]
    assert newest == list(range(newest[0], 2000)) and 100 < len(newest) < 400


@pytest.mark.parametrize("live", [True, False])
def test_it_is_shown_what_runs(workers, live):
    workers("import time; time.sleep(1); raise SystemExit(1)")
    points = sweep(GRID, "learner.epochs=2").points()
    half_way(RunFolder(Path("runs", points[0].folder)))
    (Path("runs") / points[0].folder / "experiment.toml").write_text(points[0].to_toml())
    console = Console(file=StringIO(), force_terminal=live, width=200)
    follow(console, Local(1).run(points[:2], Path("runs")), points[:2])
    text = console.file.getvalue()
    assert (f"to run, with a line when each has ended: {points[0].folder}, {points[1].folder}\n" in text) != live
    assert (f"{points[0].folder}  30 s left  task 1/2  classifier 1/2" in text) == live
    assert (f"{points[1].folder}  starting" in text) == live


@pytest.mark.parametrize("command", [["sweep"], ["sweep", "best"]])
def test_many_points_are_not_checked_in_silence(capsys, monkeypatch, command):
    monkeypatch.setattr("prer.terminal.sweeps.MANY", 4)
    Path("sweep.toml").write_text(GRID.replace("[32, 64]", "[32, -1]"))  # the second point is wrong
    code, out, err = called(capsys, *command, "sweep.toml")
    assert (code, out) == (2, "checking the points of the sweep: 4\n") and "point 2 of the sweep" in err


def test_of_many_points_a_log_says_what_is_done_with_them(capsys, monkeypatch, workers):
    monkeypatch.setattr("prer.terminal.sweeps.MANY", 4)
    workers("raise SystemExit(1)")
    Path("sweep.toml").write_text(GRID)
    lines = called(capsys, "sweep", "sweep.toml", "learner.epochs=2")[1].splitlines()
    assert lines[0] == "checking the points of the sweep: 4"
    assert lines[1].startswith("points of the sweep: 4")
    assert lines[2] == "looking for points that are finished: 4"


def test_of_many_points_a_terminal_shows_a_bar_and_keeps_nothing_of_it(monkeypatch):
    monkeypatch.setattr("prer.terminal.sweeps.MANY", 4)
    console = Console(file=StringIO(), width=120, force_terminal=True, legacy_windows=False)
    assert list(stepped(console, range(4), "checking", 4)) == [0, 1, 2, 3]
    assert "checking" in console.file.getvalue() and console.file.getvalue().endswith("\x1b[1A\x1b[2K")
    console = Console(file=StringIO(), width=120, force_terminal=True)
    assert list(stepped(console, range(3), "checking", 3)) == [0, 1, 2]
    assert console.file.getvalue() == ""


def test_there_are_as_many_workers_as_cores_that_are_ours(monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {3, 5, 8}, raising=False)
    assert cores() == 3 and engine("local") == Local(3) and engine("local", 2) == Local(2)


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


def test_a_sweep_warns_of_what_its_runs_were_warned_of_and_of_a_winner_that_learned_nothing(capsys):
    points = sweep(GRID).points()
    for point in points:
        finish(point, accuracy=53.0)
        (Path("runs") / point.folder / "environment.json").write_text(json.dumps({"warnings": ["too few steps"]}))
    told = f"warning: {points[0].folder} learned a task to 53.0 % on average; guessing reaches 50 %\n"
    for command in ("run", "best"):
        out = called(capsys, "sweep", command, "sweep.toml")[1]
        assert out.count("warning: too few steps\n") == 1 and told in out


# -- the best --------------------------------------------------------------------------------------------------------


def test_the_best_is_the_first_with_the_highest_mean_and_others_are_counted(capsys):
    points = sweep(GRID).points()
    for point, accuracy in zip(points, (50.0, 70.5, 70.5), strict=False):
        finish(point, accuracy=accuracy)
    (Path("runs") / points[0].folder / "result.json").unlink()
    code, out, err = called(capsys, "sweep", "best", "sweep.toml", "-o", "found.toml")
    assert (code, err) == (0, "")
    assert f"{points[1].folder} has the best accuracy, 70.50; points compared: 2" in out
    assert "warning: 1 not finished and 1 not begun, so not compared" in out
    assert "warning: it was found on the test part" in out
    assert Experiment.read(Path("found.toml")) == points[1]


def test_what_was_found_on_a_validation_part_is_tested_on_the_test_part(capsys):
    points = sweep(GRID, "stream.validation=0.25").points()
    for i, point in enumerate(points):
        finish(point, accuracy=90 + i)
    _, out, _ = called(capsys, "sweep", "best", "sweep.toml", "stream.validation=0.25")
    assert "warning" not in out and "tested on the test part" in out
    assert Experiment.read(Path("best.toml")).hash == sweep(GRID).points()[3].hash != points[3].hash


@pytest.mark.parametrize("by", NAMES)
def test_by_any_metric_more_is_better_but_of_forgetting(by):
    points = sweep(GRID).points()
    for point, value in zip(points, (2.0, None, 9.0, -1.0), strict=True):
        finish(point, **{by: value})
    found = best(points, Path("runs"), by)
    assert found.point is points[3 if "forgetting" in by else 2]
    assert (found.compared, found.unfinished, found.missing) == (3, 0, 0)


def test_a_best_that_cannot_be_written_is_one_sentence(capsys):
    finish(sweep(GRID).points()[0])
    assert "cannot write nowhere/b.toml" in called(capsys, "sweep", "best", "sweep.toml", "-o", "nowhere/b.toml")[2]


# -- real workers, few as each imports torch -------------------------------------------------------------------------


@pytest.fixture(scope="module")
def swept(tmp_path_factory):
    """The grid, run by two workers: where it is, and what was said."""
    folder = tmp_path_factory.mktemp("swept")
    (folder / "sweep.toml").write_text(GRID)
    command = [sys.executable, "-c", "from prer.cli.main import main; main()", "sweep", "sweep.toml", "--workers", "2"]
    path = os.pathsep.join([str(Path(prer.__file__).parents[1]), os.environ.get("PYTHONPATH", "")])
    environment = os.environ | {"PYTHONPATH": path}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr  # or only what follows from it would be seen
    return folder, done


def test_a_sweep_runs_every_point_in_its_folder_and_tells_of_each(swept):
    folder, done = swept
    assert (done.returncode, done.stderr) == (0, "")
    points = Sweep.read(folder / "sweep.toml").points()
    assert {path.name for path in (folder / "runs").iterdir()} == {p.folder for p in points}
    first, waiting, *lines = done.stdout.splitlines()[:6]
    assert first == "points of the sweep: 4; run folders: runs"
    assert waiting.endswith(", ".join(p.folder for p in points))
    assert [line.split("/")[0] for line in lines] == ["1", "2", "3", "4"]
    assert all(re.fullmatch(r"\d/4  digits-naive-[0-9a-f]{8}  Accuracy [\d.]+  .* left", line) for line in lines)
    for point in points:
        record = RunFolder(folder / "runs" / point.folder)
        assert record.result["seeds"] == [0]
        assert json.loads((record.path / "environment.json").read_text())["threads"] == 1


def test_a_sweep_again_trains_nothing_and_its_best_is_the_first_of_its_table(capsys, monkeypatch, swept, workers):
    folder, done = swept
    workers("raise AssertionError")
    monkeypatch.chdir(folder)
    before = {path: path.stat().st_mtime_ns for path in Path("runs").rglob("*")}
    code, out, err = called(capsys, "sweep", "sweep.toml")
    assert (code, err) == (0, "") and rows(out) == rows(done.stdout) and "left" not in out
    assert {path: path.stat().st_mtime_ns for path in Path("runs").rglob("*")} == before
    called(capsys, "sweep", "best", "sweep.toml")
    path = called(capsys, "run", "best.toml", "--quiet")[1].strip()
    assert Path(path).name == rows(out)[0][0].strip()
    assert {path: path.stat().st_mtime_ns for path in Path("runs").rglob("*")} == before


def test_a_point_that_fails_is_told_and_the_others_go_on(capsys):
    Path("sweep.toml").write_text(BASE + '[axes]\n"learner.lr" = [1e30, 0.1]\n')
    code, out, err = called(capsys, "sweep", "sweep.toml", "--workers", "2")
    assert (code, err) == (1, "prer: 1 of 2 points failed; the sweep again tries them again\n")
    assert re.search(r"^\d/2  digits-naive-\w{8}  failed: the loss of seed 0 became .* lower learning rate", out, re.M)
    assert re.search(r"^\d/2  digits-naive-\w{8}  Accuracy", out, re.M)
    assert len(rows(out)) == 1
    assert "warning: 1 not finished" in called(capsys, "sweep", "best", "sweep.toml")[1]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_a_killed_sweep_leaves_no_orphan_and_goes_on_later(capsys, workers, number):
    np.savez("my.npz", x=np.random.default_rng(0).normal(size=(48, 4)), y=np.arange(48) % 4)
    text = BASE + '[stream]\ndata = "my.npz"\n[axes]\n"learner.epochs" = [1, 1000000]\n'
    points = sweep(text).points()
    finish(points[0])
    begun = Path("runs") / points[1].folder / "events.jsonl"
    path = os.pathsep.join([str(Path(prer.__file__).parents[1]), os.environ.get("PYTHONPATH", "")])
    command = [sys.executable, "-m", "prer", "sweep", "sweep.toml"]
    environment, quiet = os.environ | {"PYTHONPATH": path}, subprocess.DEVNULL
    with subprocess.Popen(command, env=environment, stdout=quiet, start_new_session=True) as running:
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
