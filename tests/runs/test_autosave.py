"""A run that is saved and stopped after any epoch ends in the same state, to the last bit."""

import numpy as np
import pytest
import torch
from support.learners import CLOSED

from prer.errors import RunError
from prer.learners import ABLATION, LEARNERS
from prer.runs.autosave import Autosave
from prer.runs.checkpoint import Checkpoint
from prer.runs.learn import learn
from prer.streams.stream import Stream

SMALL = {"batch": 8, "epochs": 2, "hidden": (8,), "embedding": 6}
OF_LEARNER = {
    "prer": {"epochs_autoencoder": 2, "lr": 0.01, "density": {"epochs": 2, "blocks": 2, "lr": 0.01}},
    "dgr": {"epochs_generator": 2, "latent": 4},
    "gem": {"size": 10, "memory_batch": 4},
    "agem": {"size": 10},
    "er": {"size": 10},
    "lwf": {"size": 10},
    "replay": {"size": 15},
    "der": {"size": 15},
}
VARIANTS = [
    *((name, {}) for name in LEARNERS),
    ("prer", {"labels": "head"}),
    ("prer", {"labels": "distilled"}),
    ("prer-variant", {"labels": "auxiliary", "restart": True}),
    ("prer-variant", {"schedule": "joint", "anchor": 1.0}),
    ("prer", {"density": "gaussian", "decay_autoencoder": True}),
    ("prer", {"encoder": "rests", "answer": "density", "anchor": 1.0}),
    ("lwf", {"form": "classic"}),
    ("ewc", {"form": "online", "fisher": "empirical"}),
    ("replay", {"selection": "balanced"}),
    ("naive", {"optimiser": "sgd", "lr": 0.1}),
]


class Crash(BaseException):
    """The process is gone."""


def blobs(tasks=3, scenario="task"):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(24 * tasks, 5)) + 2 * np.repeat(np.eye(5)[np.arange(2 * tasks) % 5], 12, axis=0)
    return Stream.split(x, np.repeat(np.arange(2 * tasks), 12), scenario=scenario)


def domains():
    rng = np.random.default_rng(1)
    x, y = rng.normal(size=(24, 5)), np.arange(24) % 2
    return Stream.of([(x + shift, y) for shift in range(3)])


def made(name, more):
    shared = {} if name in CLOSED else SMALL
    return (LEARNERS | ABLATION)[name](**shared | OF_LEARNER.get("prer" if name == "prer-variant" else name, {}) | more)


@pytest.fixture(autouse=True)
def every_epoch(monkeypatch):
    monkeypatch.setenv("PRER_CHECKPOINT_SECONDS", "0")
    monkeypatch.setattr("prer.runs.checkpoint.Pace.due", lambda pace: True)


def run(path, learner, stream, seeds, crash_after=None, device="cpu"):
    """Learn until so many epochs are saved, if that many come."""
    autosave = Autosave(Checkpoint(path), {"learner": learner.name})
    write, count = autosave.checkpoint.write, 0

    def writing(saved):
        nonlocal count
        write(saved)
        count += 1
        if count == crash_after:
            raise Crash

    object.__setattr__(autosave.checkpoint, "write", writing)
    return learn(stream, learner, seeds=seeds, device=device, autosave=autosave)


@pytest.mark.parametrize("stream", [blobs(), domains(), blobs(scenario="class")], ids=["heads", "one head", "growing"])
@pytest.mark.parametrize(("name", "more"), VARIANTS, ids=lambda v: str(v))
def test_a_run_stopped_after_any_epoch_ends_as_if_never_stopped(tmp_path, name, more, stream):
    for seeds in ([0], [3, 1]):
        whole = learn(stream, made(name, more), seeds=seeds, device="cpu")
        folder, stops = tmp_path / str(len(seeds)), 0
        while True:
            try:
                found = run(folder, made(name, more), stream, seeds, crash_after=1)
                break
            except Crash:
                stops += 1
        epochs = sum(made(name, more).phases(100, 2).values()) * len(stream)
        assert stops == epochs or (name in CLOSED and stops == len(stream) - 1)  # these are saved between tasks
        assert found.digest == whole.digest
        np.testing.assert_array_equal(found.matrix, whole.matrix)
        np.testing.assert_array_equal(found.untrained, whole.untrained)
        assert (found.memory_floats, found.transient_floats) == (whole.memory_floats, whole.transient_floats)
        assert found.seconds.keys() == whole.seconds.keys()


def pictures():
    rng = np.random.default_rng(2)
    return Stream.split(rng.integers(0, 256, size=(240, 12, 12), dtype=np.uint8), np.arange(240) % 6)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
@pytest.mark.parametrize("seeds", [[0], [0, 1, 2, 3, 4]], ids=["one seed", "five seeds"])
@pytest.mark.parametrize("name", LEARNERS)
def test_a_stopped_run_ends_as_if_never_stopped_on_a_gpu(tmp_path, name, seeds):
    stream, more = pictures(), {} if name in CLOSED else {"epochs": 3}
    whole = [learn(stream, made(name, more), seeds=seeds, device="cuda").digest for _ in range(2)]
    assert whole[0] == whole[1]
    while True:
        try:
            found = run(tmp_path / "checkpoint", made(name, more), stream, seeds, crash_after=1, device="cuda")
            break
        except Crash:
            pass
    assert found.digest == whole[0]


@pytest.mark.parametrize("kept", [False, True])
def test_whether_a_run_fails_does_not_depend_on_its_being_saved(tmp_path, kept):
    learner = made("er", {"weight": 1e25})  # the optimiser's squares overflow, while weights and losses are finite
    autosave = Autosave(Checkpoint(tmp_path / "checkpoint"), {}) if kept else None
    with pytest.raises(RunError, match="no longer finite in task 2, phase 'classifier'"):
        learn(blobs(), learner, seeds=1, device="cpu", autosave=autosave)
