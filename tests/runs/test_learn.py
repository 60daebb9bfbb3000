"""The loop over the tasks of a stream: accuracies, events, the digest, and warnings."""

import warnings
from dataclasses import replace

import numpy as np
import pytest
import torch
from support.learners import blobs, make, one_head, started

from prer import learn
from prer.errors import InputError
from prer.learners import DGR, Naive
from prer.runs.learn import digest_of


def accuracy(learner, task, seeds):
    """Per cent of a task's test rows that each seed predicts correctly, by hand."""
    found = []
    for place, seed in enumerate(seeds):
        rows = task.test_rows([seed])[0]
        x = task.x[rows].expand(len(seeds), *task.x[rows].shape)
        outputs = torch.tensor(task.outputs)[task.y[rows]]
        found.append(100 * float((learner.predict(x, task.head)[place] == outputs).double().mean()))
    return found


@pytest.mark.parametrize("stream", [blobs(), one_head()], ids=["heads", "one head"])
def test_the_matrix_has_the_accuracy_of_every_task_after_each(stream):
    seeds = (4, 1)
    result = learn(stream, make("naive"), seeds=seeds, device="cpu")
    same = started(make("naive"), stream, seeds)
    for i, task in enumerate(stream):
        if i and stream[0].head == task.head:  # tested before it is learned, too
            np.testing.assert_allclose(result.matrix[:, i - 1, i], accuracy(same, task, seeds), rtol=1e-5)
        same.learn(task)
        for j in range(i + 1):
            np.testing.assert_allclose(result.matrix[:, i, j], accuracy(same, stream[j], seeds), rtol=1e-5)
    assert result.seeds == seeds and (result.learner, result.device) == ("naive", "cpu")
    assert result.digest == digest_of(same, result.matrix)


def test_every_task_is_an_event_with_its_row_of_the_matrix():
    events = []
    result = learn(blobs(), make("er"), seeds=2, device="cpu", observe=events.append)
    told = [event for event in events if event["event"] == "task"]
    assert [event["task"] for event in told] == [0, 1, 2]
    for i, event in enumerate(told):
        np.testing.assert_allclose(event["accuracy"], result.matrix[:, i, : i + 1])
    for key in ("memory_floats", "memory_samples", "transient_floats"):
        assert [event[key] for event in told] == getattr(result, key)


def test_time_is_that_of_the_phases_and_in_all():
    result = learn(blobs(), make("prer"), seeds=1, device="cpu")
    assert list(result.seconds)[-1] == "total" and {"autoencoder", "flow", "head"} <= result.seconds.keys()
    assert all(0 < seconds < result.seconds["total"] for name, seconds in result.seconds.items() if name != "total")


def test_tasks_may_arrive_one_after_another():
    """The next one is asked for when the last one is learned."""
    learner, learned = make("naive"), []

    def arriving():
        for task in blobs():
            learned.append(len(getattr(learner, "tasks_", [])))
            yield task

    result = learn(arriving(), learner, seeds=2, device="cpu")
    assert learned == [0, 1, 2] and result.stream == "arriving"
    assert result.digest == learn(blobs(), make("naive"), seeds=2, device="cpu").digest


def test_a_learner_starts_from_scratch():
    learner = make("er")
    first, again = (learn(blobs(), learner, seeds=2, device="cpu").digest for _ in range(2))
    assert first == again


@pytest.mark.parametrize(
    ("options", "sentence"),
    [({"seeds": 0}, "seeds=0"), ({"seeds": [1, 1]}, "distinct seeds"), ({"device": "tpu"}, "device 'tpu'")],
)
def test_wrong_seeds_and_devices_are_refused(options, sentence):
    with pytest.raises(InputError, match=sentence):
        learn(blobs(), make("naive"), **{"seeds": 1, "device": "cpu"} | options)


def test_a_stream_without_tasks_is_refused():
    for stream in ([], replace(blobs(), tasks=())):
        with pytest.raises(InputError, match="the stream has no tasks"):
            learn(stream, make("naive"), seeds=1, device="cpu")


def test_the_digest_covers_every_tensor_its_name_and_the_matrix():
    learner, matrix = started(make("naive"), blobs()), np.zeros((2, 3, 3))
    before = digest_of(learner, matrix)
    assert before == digest_of(started(make("naive"), blobs()), matrix)
    assert before != digest_of(learner, matrix + 1e-12)
    state = learner.state()
    for name in state:
        changed = {key: t.clone() for key, t in state.items()}
        changed[name].view(-1)[-1] += 1
        renamed = {f"{key}s" if key == name else key: t for key, t in state.items()}
        for other in (changed, renamed):
            learner.state = lambda other=other: other
            assert digest_of(learner, matrix) != before, name


# -- before training ---------------------------------------------------------------------------------------------------


def test_accuracy_before_training_is_known_where_the_head_is():
    assert np.isnan(learn(blobs(), make("naive"), seeds=2, device="cpu").untrained).all()
    stream = one_head()
    result = learn(stream, make("naive", epochs=20, lr=5e-3), seeds=2, device="cpu")
    untrained = result.untrained
    assert not np.allclose(untrained[:, 1], result.matrix[:, 0, 1])
    beginner = started(make("naive"), stream)
    beginner.meet(stream[0])
    assert np.isnan(untrained[:, 0]).all()
    for task in (1, 2):
        np.testing.assert_allclose(untrained[:, task], accuracy(beginner, stream[task], (0, 1)), rtol=1e-5)


def test_the_untrained_accuracy_of_dgr_trains_no_generator(monkeypatch):
    trained, train = [], DGR.train_generator
    monkeypatch.setattr(DGR, "train_generator", lambda self, task: trained.append(task.index) or train(self, task))
    learn(one_head(), make("dgr"), seeds=1, device="cpu")
    assert trained == [0, 1, 2]


# -- warnings ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("observe", [None, lambda event: None])
def test_too_few_steps_give_one_warning_unless_the_caller_has_warned(observe):
    words = "a task has 64 samples to learn from, so that phase 'classifier' has only 20 steps; raise the epochs, or"
    with pytest.warns(UserWarning, match=words) as warned:
        learn(blobs(), Naive(epochs=10), seeds=1, device="cpu", observe=observe)
    assert len(warned) == 1 and warned[0].filename == __file__
    with warnings.catch_warnings(action="error"):
        learn(blobs(), Naive(epochs=10), seeds=1, device="cpu", observe=observe, warned=True)
