"""Points as processes on this machine, with workers that cost nothing."""

import os
from pathlib import Path

import pytest
from support.sweeps import GRID, finish, is_alive, sweep

from prer.sweeps.engines import Local, cores, engine
from prer.sweeps.engines.base import ended_before

pytestmark = pytest.mark.usefixtures("no_terminal")


def test_the_given_number_of_workers_runs_at_a_time_with_one_thread_each(workers, monkeypatch):
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
        ("raise SystemExit(3)", "its process ended with exit code 3"),
        ("import os; os.kill(os.getpid(), 9)", "its process was killed by SIGKILL"),
    ],
)
def test_the_error_of_a_failed_point_is_its_last_line(workers, code, words):
    workers(code)
    assert [o.error for o in Local(4).run(sweep(GRID).points(), Path("runs"))] == [words] * 4


def test_a_failed_point_stops_no_other_and_outcomes_come_as_points_end(workers):
    workers(
        "import sys, time; text = open(sys.argv[1]).read()\n"
        "sys.exit('no') if 'lr = 0.01' in text else time.sleep(0.5 if 'batch = 32' in text else 0)"
    )
    points = sweep(GRID).points()
    ended = [(points.index(outcome.experiment), outcome.error) for outcome in Local(2).run(points, Path("runs"))]
    assert sorted(ended[:2]) == [(0, "no"), (1, "no")]
    assert ended[2:] == [(3, ""), (2, "")]


def test_finished_and_unusable_folders_need_no_process(workers):
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


def test_closing_the_outcomes_ends_the_workers(workers):
    workers(
        "import os, sys, time, pathlib; pathlib.Path(sys.argv[2], str(os.getpid())).touch()\n"
        "time.sleep(0 if 'lr = 0.01' in open(sys.argv[1]).read() else 60)"
    )
    Path("out").mkdir()
    outcomes = Local(4).run(sweep(GRID).points(), Path("out"))
    assert next(outcomes).experiment.learner.lr == 0.01
    outcomes.close()
    assert not any(is_alive(path.name) for path in Path("out").iterdir())


def test_a_worker_that_ignores_sigterm_is_killed(workers, monkeypatch):
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
    assert not any(is_alive(path.name) for path in Path("out").iterdir())


def test_there_is_one_worker_for_each_usable_core(monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {3, 5, 8}, raising=False)
    assert cores() == 3 and engine("local") == Local(3) and engine("local", 2) == Local(2)
