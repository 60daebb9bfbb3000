"""What all learners share: recommended settings by `like`, and the length of training."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from support.learners import CLOSED

from prer import Stream, learn
from prer.errors import InputError
from prer.learners import LEARNERS, PRER, Joint, Learner, Naive
from prer.runs.experiment import Experiment
from prer.training.loop import Step


@pytest.mark.parametrize("name", LEARNERS)
@pytest.mark.parametrize("data", ["digits", "mnist", "cifar100"])
def test_like_gives_the_learner_of_the_experiment(name, data):
    learner = Experiment.parse({"like": data, "learner": {"name": name}}).learner
    assert LEARNERS[name].like(data) == learner
    if name not in CLOSED:  # they have no epochs
        assert LEARNERS[name].like(data, epochs=3) == replace(learner, epochs=3)


@pytest.mark.parametrize(
    ("data", "settings", "sentence"),
    [
        ("digist", {}, "did you mean 'digits'"),
        (5, {}, "unknown data set 5; known: digits"),
        (["digits"], {}, r"unknown data set \['digits'\]"),
        ("digits", {"epochs": -1}, "learner.epochs=-1: take 0 or more"),
    ],
)
def test_like_refuses_unknown_data_and_wrong_settings(data, settings, sentence):
    with pytest.raises(InputError, match=sentence):
        PRER.like(data, **settings)


def test_like_needs_a_learner_and_not_its_base():
    with pytest.raises(InputError, match="Learner is the base of learners; call this of one of them"):
        Learner.like("digits")


# -- length of training ------------------------------------------------------------------------------------------------


@pytest.fixture
def untrained(monkeypatch):
    """Steps that train nothing, where only their number is asked for."""
    monkeypatch.setattr(Step, "__call__", lambda step, *tensors: torch.zeros(len(tensors[0])))


def epochs_of_each_task(learner, tasks):
    events = []
    learn(Stream.of(tasks, resplit=0.5), learner, seeds=1, device="cpu", observe=events.append)
    epochs = [event for event in events if event["event"] == "epoch"]
    return [max(e["epoch"] + 1 for e in epochs if e["task"] == task) for task in range(len(tasks))]


def samples(classes, per_class):
    rng = np.random.default_rng(0)
    y = np.repeat(classes, per_class)
    return rng.normal(size=(len(y), 3)) + y[:, None], y


@pytest.mark.usefixtures("untrained")
def test_the_length_of_training_is_that_of_the_samples_of_the_task():
    tasks = [samples((0, 1), per_class=8), samples((2, 3), per_class=1000)]
    found = epochs_of_each_task(Naive(hidden=(4,), embedding=2), tasks)
    assert found == [1000, math.ceil(1000 / (1000 // 32))]


@pytest.mark.usefixtures("untrained")
def test_the_length_of_training_of_joint_is_that_of_all_its_samples():
    tasks = [samples((0, 1), per_class=1000), samples((2, 3), per_class=8)]
    found = epochs_of_each_task(Joint(hidden=(4,), embedding=2), tasks)
    assert found == [math.ceil(1000 / (1000 // 32)), math.ceil(2000 / (1008 // 32))]
