"""Every number of a run as a scalar, and nothing else."""

import json
import os
import threading
import time

import pytest
from filelock import FileLock

from prer.interop.scalars import Scalar, scalars


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


def test_foreign_lines_are_ignored(finished, tmp_path):
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
