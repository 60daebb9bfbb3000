"""Batch and epochs that follow from the data, and the warning about too few steps."""

import tomllib
from dataclasses import fields

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.learners import TRAINED

from prer.errors import InputError
from prer.learners import LEARNERS, Naive
from prer.presets.auto import batch_of, too_few_steps
from prer.runs.experiment import Experiment


@pytest.fixture(params=TRAINED)
def name(request):
    return request.param


def few(learner, samples, classes):
    return too_few_steps(learner.phases(samples, classes), learner.batch, samples)


@pytest.mark.parametrize("name", LEARNERS)
def test_the_recommended_settings_of_digits_have_enough_steps(name):
    assert few(LEARNERS[name].like("digits"), 283, 2) == ""


def test_the_shortest_phase_is_warned_of(name):
    longest = {f.name: 1000 for f in fields(LEARNERS[name]) if f.name.startswith("epochs")}
    assert "phase 'classifier' has only 6 steps" in few(Naive(epochs=2, batch=32), 100, 2)
    for setting in longest:
        words = few(LEARNERS[name](**longest | {setting: 2}, batch=32), 100, 2)
        assert "has only 6 steps; raise the epochs, or leave them (and `like`) out" in words


@given(samples=st.integers(2, 100_000), classes=st.integers(1, 1000))
def test_with_nothing_set_every_phase_has_enough_steps_and_epochs(samples, classes):
    least = 1000 if classes <= 2 else 5000 if classes >= 10 else 500 * classes
    for kind in LEARNERS.values():
        learner = kind()
        assert few(learner, samples, classes) == ""
        steps = samples // batch_of(learner.batch, samples)
        for epochs in learner.phases(samples, classes).values():
            assert epochs >= 10 and epochs * steps >= least
            assert epochs == 10 or (epochs - 1) * steps < least  # and no more than that


@pytest.mark.parametrize("setting", ["batch", "epochs"])
def test_what_is_set_is_used_however_many_samples_there_are(name, setting):
    for samples in (20, 300, 100_000):
        learner = LEARNERS[name](**{setting: 7})
        assert batch_of(learner.batch, samples) == 7 if setting == "batch" else 7 in learner.phases(samples, 2).values()


@pytest.mark.parametrize("value", ["often", -1, 2.5, True])
def test_a_length_of_training_is_a_number_or_auto(value):
    with pytest.raises(InputError, match=r"learner\.epochs=.*(whole number or auto|take 0 or more)"):
        Experiment.parse({"learner": {"name": "naive", "epochs": value}})


def test_auto_is_written_to_a_file_and_read_again():
    experiment = Experiment.parse({"stream": {"data": "my.npz"}})
    assert experiment.learner.epochs == experiment.learner.batch == "auto"
    assert Experiment.parse(tomllib.loads(experiment.to_toml())).hash == experiment.hash
