"""Trackers get every number of a run, and nothing else."""

import json
import os
import resource
import threading
import time

import numpy as np
import pytest
from filelock import FileLock
from support.folders import begun, ended
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from prer.cli.main import main
from prer.interop.scalars import Scalar, scalars

SETTINGS = ("learner.epochs=2", "learner.epochs_autoencoder=3", "learner.epochs_flow=2", "learner.blocks=2")


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    out = tmp_path_factory.mktemp("runs")
    main(["run", *SETTINGS, "--seeds", "3,8", "--device", "cpu", "--quiet", "--out", str(out)])
    return next(out.iterdir())


def events(run, kind):
    return [e for e in map(json.loads, (run / "events.jsonl").read_text().splitlines()) if e["event"] == kind]


def test_tensorboard_reads_back_what_the_run_says(finished, tmp_path, capsys):
    main(["track", str(finished), "--logdir", str(tmp_path)])
    assert "numbers, below" in capsys.readouterr().out
    for place, seed in enumerate((3, 8)):
        board = EventAccumulator(str(tmp_path / finished.name / f"seed-{seed}"))
        board.Reload()
        losses = {
            (e["phase"], e["task"] * e["epochs"] + e["epoch"]): e["loss"][place] for e in events(finished, "epoch")
        }
        for phase in ("autoencoder", "flow", "head"):
            found = {(phase, s.step): s.value for s in board.Scalars(f"loss/{phase}")}
            assert found == pytest.approx({key: loss for key, loss in losses.items() if key[0] == phase}, rel=1e-6)
        matrix = json.loads((finished / "result.json").read_text())["matrix"][place]
        for j in range(5):
            found = [s.value for s in board.Scalars(f"accuracy/task {j + 1}")]
            np.testing.assert_allclose(found, [matrix[i][j] for i in range(j, 5)], rtol=1e-6)
        agreement = [e["agreement"][place] for e in events(finished, "health") if e["class"] == 0]
        np.testing.assert_allclose([s.value for s in board.Scalars("agreement/class 0")], agreement, rtol=1e-6)


def test_a_run_that_goes_on_is_followed_to_its_end(finished, tmp_path):
    lines = (finished / "events.jsonl").read_bytes().splitlines(keepends=True)
    (tmp_path / "experiment.toml").write_bytes((finished / "experiment.toml").read_bytes())

    def write():
        with (tmp_path / "events.jsonl").open("wb", buffering=0) as file:
            for line in lines:
                file.write(line[:7])  # a reader may come in between
                time.sleep(0.001)
                file.write(line[7:])
        (tmp_path / "result.json").write_bytes((finished / "result.json").read_bytes())

    lock = FileLock(tmp_path / "run.lock", thread_local=False)
    lock.acquire()  # as a run does
    writer = threading.Thread(target=lambda: (write(), lock.release()))
    writer.start()
    found = list(scalars(tmp_path, follow=True, pause=0.01))
    writer.join()
    assert found == list(scalars(finished))


def test_a_run_that_was_stopped_is_not_waited_for(finished, tmp_path):
    for name in ("experiment.toml", "events.jsonl"):
        (tmp_path / name).write_bytes((finished / name).read_bytes())
    assert list(scalars(tmp_path, follow=True)) == list(scalars(finished))


def test_a_pipe_is_not_read(finished, tmp_path):
    (tmp_path / "experiment.toml").write_bytes((finished / "experiment.toml").read_bytes())
    os.mkfifo(tmp_path / "events.jsonl")
    assert list(scalars(tmp_path)) == []


def test_lines_that_are_not_ours_are_left_out(finished, tmp_path):
    (tmp_path / "experiment.toml").write_text("seeds = [4]\n")
    strange = ["{", "[]", "null", '{"event": "epoch"}', '{"event": "task", "task": 0, "accuracy": 5}', "\x00" * 9]
    strange += [
        '{"event": "epoch", "task": 0, "phase": "flow", "epoch": 0, "epochs": 2, "loss": [null], "seconds": 1.5}'
    ]
    strange += ['{"event": "epoch", "task": [], "phase": "x", "epoch": 0, "epochs": 2, "loss": [1], "seconds": 1}']
    strange += ['{"event": "task", "task": 1000000000000000000000, "accuracy": [[5]], "memory_floats": 1}']
    strange += ["x" * 2**24]
    (tmp_path / "events.jsonl").write_text("\n".join([*strange, '{"event": "task", "torn']))
    assert list(scalars(tmp_path)) == [Scalar(4, "seconds/flow", 0, 1.5)]


@pytest.mark.parametrize(("given", "meant"), [("2", [0, 1]), ("[3, 8]", [3, 8])])
def test_seeds_mean_what_they_mean_in_an_experiment(tmp_path, given, meant):
    (tmp_path / "experiment.toml").write_text(f"seeds = {given}\n")
    event = {"event": "epoch", "task": 0, "phase": "head", "epoch": 0, "epochs": 1, "loss": [1.0, 2.0], "seconds": 1.0}
    (tmp_path / "events.jsonl").write_text(json.dumps(event) + "\n")
    losses = [(scalar.seed, scalar.value) for scalar in scalars(tmp_path) if scalar.name == "loss/head"]
    assert losses == list(zip(meant, [1.0, 2.0], strict=True))


@pytest.mark.parametrize("seeds", ["1.5", '"two"', "{}", '[0, "1"]'])
def test_seeds_that_are_none_are_said_to_be_so(tmp_path, capsys, seeds):
    (tmp_path / "experiment.toml").write_text(f"seeds = {seeds}\n")
    with pytest.raises(SystemExit) as ended:
        main(["track", str(tmp_path)])
    assert ended.value.code == 2 and "whole number" in capsys.readouterr().err


def test_several_runs_cannot_be_followed(finished, capsys):
    with pytest.raises(SystemExit) as ended:
        main(["track", str(finished), str(finished), "--follow"])
    assert ended.value.code == 2 and "one run" in capsys.readouterr().err


def test_no_run_is_said_to_be_none(tmp_path, capsys):
    with pytest.raises(SystemExit) as ended:
        main(["track", str(tmp_path)])
    assert ended.value.code == 2 and "is not a run's folder" in capsys.readouterr().err


def test_a_full_disk_is_said_in_a_sentence_and_nothing_torn_is_left(finished, tmp_path):
    boards = tmp_path / "boards"

    def before():  # as on a disk that has room for little more
        resource.setrlimit(resource.RLIMIT_FSIZE, (5000, 5000))

    code, out, err = ended(begun(["track", finished, "--logdir", boards], before))
    assert (code, out, err) == (2, "", f"prer: cannot write {boards}: File too large; give another --logdir\n")
    assert not any(path.is_file() for path in boards.rglob("*"))


def test_a_place_that_cannot_be_written_is_said_in_a_sentence(finished, tmp_path, capsys):
    (tmp_path / "boards").write_text("mine")
    with pytest.raises(SystemExit) as refused:
        main(["track", str(finished), "--logdir", str(tmp_path / "boards")])
    assert refused.value.code == 2 and "give another --logdir" in capsys.readouterr().err
    assert (tmp_path / "boards").read_text() == "mine"
