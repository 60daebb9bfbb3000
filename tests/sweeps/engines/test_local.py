"""Points as processes on this machine, with workers that cost nothing."""

import os
import time
from pathlib import Path

import pytest
from support.sweeps import GRID, finish, is_alive, sweep

from prer.sweeps.engines import Local, engine
from prer.sweeps.engines.base import ended_before
from prer.sweeps.engines.local import cores, gpus

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
        ("import sys; print('one', file=sys.stderr); sys.exit('prer: two')", ["one", "prer: two"]),
        ("raise SystemExit(3)", ["its process ended with exit code 3"]),
        (
            "import os; os.write(2, b'one'); os.kill(os.getpid(), 9)",
            ["one", "its process was killed by SIGKILL"],
        ),
        (
            "import sys; sys.exit('\\n'.join(map(str, range(100))))",
            ["92", "93", "94", "95", "96", "97", "98", "99"],
        ),
    ],
)
def test_a_failed_point_has_its_last_lines_and_the_last_one_is_its_error(workers, code, words):
    workers(code)
    outcomes = list(Local(4).run(sweep(GRID).points(), Path("runs")))
    assert [o.lines for o in outcomes] == [words] * 4
    assert [o.error for o in outcomes] == [words[-1].removeprefix("prer: ")] * 4


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
    begin = time.monotonic()
    outcomes.close()
    assert time.monotonic() - begin < 30
    assert not any(is_alive(path.name) for path in Path("out").iterdir())


def test_a_worker_that_ignores_sigterm_is_killed(workers, monkeypatch):
    monkeypatch.setattr("prer.sweeps.engines.worker.GRACE", 0.1)
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
    assert (
        cores() == 3 and engine("local").places(False) == [None] * 3 and engine("local", 2).places(False) == [None] * 2
    )


def test_the_process_of_a_submitted_run_is_a_future(workers):
    workers("import sys; sys.exit('no' if 'lr = 0.1' in open(sys.argv[1]).read() else 0)")
    points, local = sweep(GRID).points(), Local(1)
    futures = [local.submit(point, Path("out")) for point in points]
    errors = [future.exception() for future in futures]
    local.close()
    assert [error and str(error) for error in errors] == [None, None, "no", "no"]
    with pytest.raises(RuntimeError):  # a closed engine starts nothing
        local.submit(points[0], Path("out"))


# -- GPUs: no process touches one, since they are faked ----------------------------------------------------------------


@pytest.fixture
def two_gpus(monkeypatch):
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    monkeypatch.setattr("torch.cuda.device_count", lambda: 2)


@pytest.mark.usefixtures("two_gpus")
@pytest.mark.parametrize(("about", "per_gpu"), [({}, 1), ({"per_gpu": 2}, 2), ({"workers": 3}, 2)])
def test_runs_are_spread_over_gpus(workers, about, per_gpu):
    workers(
        "import os, sys, time, pathlib; begin = time.time(); time.sleep(0.3)\n"
        "text = f'{begin} {time.time()} {os.environ[\"CUDA_VISIBLE_DEVICES\"]}'\n"
        "pathlib.Path(sys.argv[2], pathlib.Path(sys.argv[1]).stem).write_text(text)"
    )
    Path("out").mkdir()
    points = [p for epochs in (1, 2) for p in sweep(GRID, "device=auto", f"learner.epochs={epochs}").points()]
    assert not any(outcome.error for outcome in Local(**about).run(points, Path("out")))
    spans = [file.read_text().split() for file in Path("out").iterdir()]
    for gpu in ("0", "1"):
        on_it = [(float(begin), float(end)) for begin, end, where in spans if where == gpu]
        assert len(on_it) >= 2
        most = max(sum(a <= begin < b for a, b in on_it) for begin, _ in on_it)
        assert most == per_gpu if "workers" not in about else most <= per_gpu
    assert len(spans) == 8 and {where for *_, where in spans} == {"0", "1"}


@pytest.mark.usefixtures("two_gpus")
def test_each_gpu_has_a_worker_and_runs_on_cpus_have_the_cores(monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {3, 5, 8}, raising=False)
    assert Local().places(True) == ["0", "1"] and Local().places(False) == [None] * 3
    assert Local(per_gpu=2).places(True) == ["0", "1", "0", "1"]
    assert Local(3).places(True) == ["0", "1", "0"]


@pytest.mark.usefixtures("two_gpus")
@pytest.mark.parametrize(("named", "found"), [("4,7", ["4", "7"]), ("GPU-a,GPU-b,-1,3", ["GPU-a", "GPU-b"])])
def test_gpus_have_the_names_of_the_environment(monkeypatch, named, found):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", named)
    assert gpus() == found


def test_no_gpu_is_found_where_there_is_none(monkeypatch):
    monkeypatch.setattr("torch.cuda.device_count", lambda: 0)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    assert gpus() == []
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES")
    assert gpus() == []
