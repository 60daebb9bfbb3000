"""Health of PRER's memory: what is reported after each task, and when a run stops."""

import math

import numpy as np
import pytest
from support.learners import blobs, tiny_prer

from prer import PRER, Stream, learn
from prer.densities.flow import Flow
from prer.errors import RunError
from prer.learners import health


def test_health_is_reported_for_every_class_after_every_task():
    events = []
    learn(blobs(), tiny_prer(), seeds=2, device="cpu", observe=events.append)
    health = [e for e in events if e["event"] == "health"]
    assert [(e["task"], e["class"]) for e in health] == [(t, f"class {c}") for t in range(3) for c in range(2 * t + 2)]
    for e in health:
        for figure in ("agreement", "agreement_decoded", "reconstruction", "distance", "nll"):
            assert len(e[figure]) == 2
            assert all(map(math.isfinite, e[figure]))
        assert all(0 <= a <= 1 for a in e["agreement"] + e["agreement_decoded"])


def test_of_very_many_classes_the_newest_and_some_old_ones_are_reported(monkeypatch):
    monkeypatch.setattr(health, "MOST_OLD", 3)
    x, y = np.random.default_rng(0).normal(size=(160, 4)), np.repeat(np.arange(16), 10)
    seen = []
    settings = {"epochs": 0, "epochs_autoencoder": 0, "density": {"epochs": 0}}
    learn(Stream.split(x, y), tiny_prer(**settings), seeds=1, device="cpu", observe=seen.append)
    reported = [[e["class"] for e in seen if e["event"] == "health" and e["task"] == t] for t in range(8)]
    assert [len(classes) for classes in reported] == [2, 4, 5, 5, 5, 5, 5, 5]
    assert all({2 * t, 2 * t + 1} <= set(classes) for t, classes in enumerate(reported))
    assert len({c for t, classes in enumerate(reported) for c in classes if c < 2 * t}) > 8  # not always the same


def test_a_run_stops_where_different_samples_have_one_embedding():
    stream = blobs()
    learner = tiny_prer()
    learner.start(stream.shape, (4, 7))
    learner.meet(stream[0])
    rows = stream[0].train_rows((4, 7))
    z, y = learner.embed(stream[0], rows), stream[0].y[rows]
    health.check_embeddings(learner, z, y, stream[0], rows)
    z[1, y[1] == 1] = 0.25
    with pytest.raises(RunError, match=r"class .* has collapsed: after phase 'autoencoder' of task 1 .*seed 7"):
        health.check_embeddings(learner, z, y, stream[0], rows)


def test_the_same_sample_many_times_is_no_collapse():
    x = np.repeat(np.random.default_rng(0).normal(size=(4, 5)), 20, axis=0)
    learn(Stream.split(x, np.repeat(np.arange(4), 20)), tiny_prer(), seeds=2, device="cpu")


@pytest.mark.parametrize("encoder", ["identity", "random", "patches"])
def test_samples_that_differ_by_rounding_are_no_collapse_where_no_encoder_is_trained(encoder):
    """Features of one text many times: a network rounds differently in other batches."""
    rng = np.random.default_rng(0)
    x = np.repeat(rng.normal(size=(4, 5)), 20, axis=0) + 1e-8 * rng.normal(size=(80, 5))
    learner = PRER(encoder=encoder, embedding="auto", density="mixture", answer="both", epochs=3)
    learn(Stream.split(x, np.repeat(np.arange(4), 20)), learner, seeds=2, device="cpu", warned=True)


def test_a_run_stops_where_the_samples_of_the_past_explode(monkeypatch):
    stream, draw = blobs(), Flow._draw
    monkeypatch.setattr(Flow, "_draw", lambda *about: 1e6 * draw(*about))
    with pytest.raises(RunError, match=r"samples of the past have exploded in task 2: 100% .*lower learner.density.lr"):
        learn(stream, tiny_prer(), seeds=2, device="cpu")
