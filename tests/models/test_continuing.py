"""A model that is saved, and taught later in another process, equals one that never stopped."""

import shutil
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.learners import REHEARSE
from support.lessons import FIRST, THIRD, classifier, continued_elsewhere, knowledge, lesson, lessons, taught
from support.models import finished_run
from support.plugins import write_plugin

import prer
from prer.learners import ABLATION, LEARNERS
from prer.learners.registry import load_plugin, registered

EVERY = sorted(LEARNERS | ABLATION)
KEEP = {*REHEARSE, "joint"}
MODELS = [(name, scenario, "vectors") for name in EVERY for scenario in FIRST]
MODELS += [(name, "class", "images") for name in ("prer", "joint", "replay", "slda")]
CASES = [(*model, brings) for model in MODELS for brings in THIRD[model[1]]]


def digest(model):
    return model.state_digest_


# -- in another process ------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module", params=[1, pytest.param(2, marks=pytest.mark.slow)], ids=["one seed", "two seeds"])
def seeds(request):
    return request.param


@pytest.fixture(scope="module")
def elsewhere(seeds, tmp_path_factory):
    """What models know that have learned lessons 1 and 2 here, and lesson 3 in another process."""
    folder = tmp_path_factory.mktemp("models")
    for name, scenario, kind in MODELS:
        model = classifier(name, scenario=scenario, ensemble=seeds)
        taught(model, *lessons(scenario, "more", kind)[:2]).save(folder / f"{name} {scenario} {kind}")
    return continued_elsewhere(folder)


@pytest.mark.parametrize(("name", "scenario", "kind", "brings"), CASES)
def test_continuing_in_another_process_is_exact(elsewhere, seeds, name, scenario, kind, brings):
    whole = taught(classifier(name, scenario=scenario, ensemble=seeds), *lessons(scenario, brings, kind))
    assert elsewhere[f"{name} {scenario} {kind}"][brings] == knowledge(whole, kind)


def test_a_learner_of_ones_own_continues_exactly(tmp_path):
    plugin = write_plugin(tmp_path / "plugins")
    (kind,) = load_plugin(plugin)
    own = {"embedding": 8, "hidden": (8,), "epochs": 2}
    with registered(kind):
        taught(classifier(kind(**own)), *lessons("class", "both")[:2]).save(tmp_path / "models" / "own")
    found = continued_elsewhere(tmp_path / "models", plugin)["own"]["both"]
    assert found == knowledge(taught(classifier(kind(**own)), *lessons("class", "both")))


# -- in any number of pieces -------------------------------------------------------------------------------------------


@settings(max_examples=10, deadline=None, database=None)
@given(st.data())
def test_lessons_of_any_classes_and_sizes_may_be_saved_anywhere(data):
    x, y = lesson("abcdef", 1)
    number = st.integers(0, data.draw(st.integers(0, 5), "lessons - 1"))
    of_sample = np.array(data.draw(st.lists(number, min_size=len(y), max_size=len(y)), "lesson of each sample"))
    given = [(x[of_sample == each], y[of_sample == each]) for each in sorted(set(of_sample.tolist()))]
    whole = taught(classifier("slda"), *given)
    stopped = classifier("slda")
    with TemporaryDirectory() as folder:
        for part in given:
            taught(stopped, part)
            if data.draw(st.booleans(), "save and load"):
                stopped = prer.load(stopped.save(folder))
    assert digest(stopped) == digest(whole)
    assert stopped.classes_.tolist() == whole.classes_.tolist()
    assert np.array_equal(stopped.predict_proba(x), whole.predict_proba(x))


# -- from a run, after undo, after score -------------------------------------------------------------------------------


def write_parts(path, classes):
    """Write lesson 1 of these classes, with lesson 2 as its test part."""
    (x, y), (tests, labels) = (lesson(classes, number) for number in (1, 2))
    np.savez(path, x_train=x, y_train=y, x_test=tests, y_test=labels)
    return path


@pytest.mark.parametrize("name", ["naive", "joint", "replay", "slda"])
def test_a_copied_model_of_a_run_continues_as_if_the_run_had_one_more_task(tmp_path, capsys, name):
    stream = ["stream.scenario=class", "stream.classes_per_task=2"]
    learner = [f"learner.name={name}", *(() if name == "slda" else ("learner.epochs=2", "learner.hidden=[8]"))]
    four, six = (write_parts(tmp_path / f"{classes}.npz", classes) for classes in ("abcd", "abcdef"))
    whole = finished_run(tmp_path / "whole", f"stream.data={six}", *stream, *learner)
    run = finished_run(tmp_path / "runs", f"stream.data={four}", *stream, *learner)
    copy = shutil.copytree(run / "model", tmp_path / "copy")
    shutil.rmtree(run.parent)
    four.unlink()
    model = prer.load(copy)
    x, y = lesson("abcdef", 1)
    new = np.isin(y, ["e", "f"])
    taught(model, (x[new], y[new])).save(copy)
    assert digest(prer.load(copy)) == digest(prer.load(whole))
