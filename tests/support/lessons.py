"""Lessons in each scenario, and saved models that learn one more in another process."""

import json
import warnings
from pathlib import Path

import numpy as np
from support.commands import ROOT, printed
from support.learners import make

import prer
from prer.errors import InputError
from prer.learners.registry import load_plugin

FIRST = {"class": ("ab", "c"), "task": ("ab", "cd"), "domain": ("abc", "abc")}  # the classes of lessons 1 and 2
THIRD = {  # those of lesson 3, by what it brings
    "class": {"new": "d", "more": "ac", "both": "bd"},
    "task": {"new": "ef", "more": "d", "both": "be"},
    "domain": {"more": "ca"},
}
SHAPES = {"vectors": (5,), "images": (8, 8)}
QUICK = {"ewc": {"samples": 4, "fisher": "empirical"}, "dgr": {"epochs_generator": 1}}


def lesson(classes, number, kind="vectors"):
    """Samples of these classes, each 12 or a few more; every number has its own."""
    shape, known = SHAPES[kind], "abcdef"
    centres = np.random.default_rng(0).uniform(0, 200, (len(known), *shape))
    y = np.concatenate([np.repeat(label, 12 + known.index(label)) for label in classes])
    noise = np.random.default_rng(number).uniform(0, 50, (len(y), *shape))
    x = centres[[known.index(label) for label in y]] + noise
    return (x.astype(np.uint8) if kind == "images" else x.astype(np.float32)), y


def lessons(scenario, brings, kind="vectors"):
    """Three lessons, the third of which brings new classes, more of known ones, or both."""
    classes = [*FIRST[scenario], THIRD[scenario][brings]]
    return [lesson(of_lesson, number, kind) for number, of_lesson in enumerate(classes, 1)]


def classifier(method, **settings):
    """A classifier with a tiny learner, given its name or the learner."""
    learner = make(method, **QUICK.get(method, {})) if isinstance(method, str) else method
    return prer.ContinualClassifier(learner, device="cpu", **settings)


def taught(model, *given):
    """The model after these lessons; warnings are ignored."""
    with warnings.catch_warnings(action="ignore"):
        for x, y in given:
            model.partial_fit(x, y)
    return model


def knowledge(model, kind="vectors"):
    """What a model knows and answers, as plain values."""
    x, learned = lesson("abcdef", 9, kind)[0], model.model_
    asked = range(1, len(learned.tasks) + 1) if model.scenario == "task" else [None]
    return {
        "digest": model.state_digest_,
        "classes": model.classes_.tolist(),
        "answers": [model.predict(x, task).tolist() for task in asked],
        "samples": [about["samples"] for about in learned.lessons],
        "health": sorted(map(list, learned.health.items())),
    }


def continued_elsewhere(folder, plugin=""):
    """What each model of a folder knows after lesson 3, by what that brings; another process loads and teaches it."""
    code = "import sys; from support.lessons import _continue_all; _continue_all(*sys.argv[1:])"
    path = f"{ROOT}:{ROOT}/tests"
    return json.loads(printed("-W", "ignore", "-c", code, folder, plugin, PYTHONPATH=path))


def _continue_all(folder, plugin):
    if plugin:
        load_plugin(plugin)
    print(json.dumps({path.name: _continued(path) for path in Path(folder).iterdir()}))  # noqa: T201, read by the parent


def _continued(path):
    scenario, found = prer.load(path).scenario, {}
    for brings in THIRD[scenario]:
        model = prer.load(path)
        kind = "vectors" if len(model.model_.reading.shape) == 1 else "images"
        try:
            found[brings] = knowledge(taught(model, lessons(scenario, brings, kind)[2]), kind)
        except (InputError, LookupError, ValueError, RuntimeError) as error:  # the others go on
            found[brings] = repr(error)
    return found
