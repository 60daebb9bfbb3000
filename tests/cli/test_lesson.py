"""The settings of a lesson: which are new, and which the model has."""

import pytest

from prer.cli.lesson import lesson_of
from prer.errors import InputError


def test_a_new_model_has_one_seed_and_is_not_told_the_task(tmp_path):
    lesson = lesson_of((), "digits", None, "cpu")
    model, version = lesson.model(tmp_path)
    assert (model.seeds, model.scenario, model.learner.name, version) == ((0,), "class", "prer", None)
    assert lesson.given == {"device"} and lesson.how == {"balance": False, "validation": 0.0}


def test_settings_are_those_of_an_experiment(tmp_path):
    words = ("learner.name=ewc", "learner.weight=3", "stream.scenario=task", "stream.balance=true")
    lesson = lesson_of(words, "digits", "0,7", "cpu")
    model, _ = lesson.model(tmp_path)
    assert (model.seeds, model.scenario, model.learner.weight) == ((0, 7), "task", 3.0) and lesson.how["balance"]


@pytest.mark.parametrize("word", ["stream.classes_per_task=2", "stream.crop=2", "name=x"])
def test_settings_that_a_lesson_cannot_have_are_refused(word):
    with pytest.raises(InputError, match="has no meaning for a lesson"):
        lesson_of((word,), "digits", None, None)
