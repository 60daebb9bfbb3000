"""ContinualClassifier as an estimator of scikit-learn that is taught again and again."""

import copy
import pickle
import warnings

import joblib
import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import check_estimator
from support.learners import make
from support.lessons import FIRST, classifier, lesson, lessons, taught

import prer
from prer.errors import InputError
from prer.learners.closed_form import ClosedForm

# Checks of scikit-learn that may fail, and why; docs/models.md names them.
MAY_FAIL = {"check_methods_subset_invariance": "sums of 32-bit floats depend on how many rows are in a call"}
PROBABILITIES = 1e-5  # by which those of a sample differ if other samples or seeds are computed with it


def two_lessons(name="prer", kind="vectors", **settings):
    """A tiny model that has learned a, b and c."""
    return taught(classifier(name, **settings), *lessons("class", "more", kind)[:2])


def known(model, x):
    """All that a failed call must not change."""
    told = (model.state_digest_, model.classes_.tolist(), model.n_features_in_, model.validation_score_)
    return *told, model.model_.lessons, model.model_.health, model.predict(x).tolist(), model.predict_proba(x).tobytes()


# -- the contract of scikit-learn --------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["tiny prer", "slda", pytest.param("prer", marks=pytest.mark.slow)])
def test_the_checks_of_scikit_learn_pass(method):
    model = prer.ContinualClassifier(make("prer") if method == "tiny prer" else method, device="cpu")
    with warnings.catch_warnings(action="ignore"):
        found = check_estimator(model, expected_failed_checks=MAY_FAIL, on_skip=None, on_fail=None)
    assert {each["check_name"]: each["exception"] for each in found if each["status"] == "failed"} == {}
    assert {each["check_name"] for each in found if each["status"] == "xfail"} <= MAY_FAIL.keys()
    assert {each["check_name"] for each in found if each["status"] == "skipped"} <= {"check_array_api_input"}


def test_a_clone_has_the_settings_and_has_learned_nothing():
    model = two_lessons(ensemble=2, random_state=3, validation=0.2)
    fresh = clone(model)
    assert repr(fresh.get_params()) == repr(model.get_params()) and not hasattr(fresh, "model_")
    with pytest.raises(NotFittedError, match="not fitted yet"):
        fresh.predict(lesson("ab", 1)[0])
    assert two_lessons(ensemble=2, random_state=3, validation=0.2).state_digest_ == model.state_digest_
    assert fresh.set_params(ensemble=1).get_params()["ensemble"] == 1


def test_it_is_searched_and_cross_validated():
    x, y = lesson("abc", 1)
    with warnings.catch_warnings(action="ignore"):  # of classes with few samples
        search = GridSearchCV(classifier("slda"), {"method": [make("naive"), "ncm"], "validation": [0, 0.2]}, cv=3).fit(
            x, y
        )
        scores = cross_val_score(classifier("slda"), x, y, cv=3)
    assert search.best_params_ == {"method": "ncm", "validation": 0} and search.best_score_ == 1  # naive: two epochs
    assert search.best_estimator_.predict(x).tolist() == y.tolist() and scores.tolist() == [1, 1, 1]


def test_the_last_step_of_a_pipeline_goes_on_learning(tmp_path):
    (x, y), (more, new) = lessons("class", "new")[0], lessons("class", "new")[2]
    with warnings.catch_warnings(action="ignore"):
        line = make_pipeline(StandardScaler(), classifier("slda")).fit(x, y)
    assert line.score(x, y) == 1 and line.classes_.tolist() == ["a", "b"]
    scaler, model = line[0], prer.load(line[-1].save(tmp_path / "model"))
    model.partial_fit(scaler.transform(more), new)
    assert model.classes_.tolist() == ["a", "b", "d"]
    assert model.score(scaler.transform(np.concatenate([x, more])), [*y, *new]) == 1


def _dumped(model, folder):
    joblib.dump(model, folder / "model.joblib")
    return joblib.load(folder / "model.joblib")


COPIES = {
    "pickle": lambda model, _: pickle.loads(pickle.dumps(model)),
    "copy": lambda model, _: copy.copy(model),
    "deepcopy": lambda model, _: copy.deepcopy(model),
    "joblib": _dumped,
}


@pytest.mark.parametrize("copied", COPIES.values(), ids=COPIES)
@pytest.mark.parametrize("name", ["prer", "joint"])  # the second keeps the data of its lessons
def test_a_copy_knows_the_same_and_learns_on_alone(copied, name, tmp_path):
    model, (x, y) = two_lessons(name), lessons("class", "both")[2]
    before = known(model, x)
    other = copied(model, tmp_path)
    assert known(other, x) == before
    taught(other, (x, y))
    assert known(model, x) == before and other.state_digest_ == taught(model, (x, y)).state_digest_


# -- answers -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["prer", "slda"])
def test_columns_of_probabilities_are_the_classes_in_order_of_arrival(name):
    x, model = lesson("abcd", 9)[0], classifier(name)
    for number, (new, expected) in enumerate({"c": "c", "da": "cad", "bd": "cadb"}.items()):
        taught(model, lesson(new, number))
        assert "".join(model.classes_) == expected
        p, scores = model.predict_proba(x), model.decision_function(x)
        assert p.shape == scores.shape == (len(x), len(expected))
        assert np.allclose(p.sum(1), 1) and (p >= 0).all() and np.allclose(np.exp(scores), p, atol=PROBABILITIES)
        assert model.predict(x).tolist() == model.classes_[p.argmax(1)].tolist()


def test_of_two_classes_the_decision_is_one_number():
    x, y = lesson("ab", 1)
    model = taught(classifier("slda"), (x, y))
    decision, p = model.decision_function(x), model.predict_proba(x)
    assert decision.shape == (len(x),) and np.allclose(decision, np.log(p[:, 1] / p[:, 0]))
    assert model.classes_[(decision > 0).astype(int)].tolist() == model.predict(x).tolist() == y.tolist()


@pytest.mark.parametrize("name", ["prer", "replay"])
def test_probabilities_of_an_ensemble_are_the_mean_of_its_seeds(name):
    x = lesson("abc", 9)[0]
    each = [two_lessons(name, random_state=seed).predict_proba(x) for seed in (5, 6, 7)]
    assert np.abs(each[0] - each[1]).max() > 100 * PROBABILITIES
    model = two_lessons(name, ensemble=3, random_state=5)
    assert np.allclose(model.predict_proba(x), np.mean(each, 0), atol=PROBABILITIES)


@pytest.mark.parametrize("kind", ["vectors", "images"])
@pytest.mark.parametrize(
    ("name", "scenario"),
    [("prer", "class"), ("prer", "task"), ("slda", "class"), ("replay", "class"), ("dgr", "class")],
)
def test_a_loaded_model_answers_row_by_row_as_the_saved_one_and_stays_as_it_is(name, scenario, kind, tmp_path):
    model = taught(classifier(name, scenario=scenario), *lessons(scenario, "more", kind)[:2])
    x = lesson("abc", 9, kind)[0]
    loaded = prer.load(model.save(tmp_path / "model"))
    for row in (x[i : i + 1] for i in range(0, len(x), 4)):
        assert np.array_equal(loaded.predict_proba(row), model.predict_proba(row))
        assert loaded.predict(row).tolist() == model.predict(row).tolist()
    assert loaded.state_digest_ == model.state_digest_
    assert np.array_equal(loaded.predict_proba(x), model.predict_proba(x))


def test_a_score_is_weighted_and_compares_labels_as_text():
    x, y = lesson("ab", 1)
    model = taught(classifier("slda"), (x, (y == "b").astype(int)))
    wrong = np.where(np.arange(len(y)) < 3, 1, (y == "b").astype(int))
    assert model.score(x, wrong) == pytest.approx(1 - 3 / len(y))
    assert model.score(x, wrong, sample_weight=[0] * 3 + [1] * (len(y) - 3)) == 1
    assert model.score(x, (y == "b").astype(int).astype(str)) == model.score(x, (y == "b") * 1.0) == 1


@pytest.mark.parametrize(("kind", "shape"), [("vectors", (5,)), ("images", (8, 8)), ("colours", (8, 8, 3))])
def test_samples_of_a_class_come_from_memory_in_the_shape_of_the_data(kind, shape):
    x, y = lesson("ab", 1, "images" if kind == "colours" else kind)
    x = np.stack([x, x // 2, x // 3], -1) if kind == "colours" else x
    longer = {"epochs_autoencoder": 300, "lr_autoencoder": 5e-3, "density": {"epochs": 100, "lr": 5e-3}}
    model = taught(classifier(make("prer", **longer)), (x, y))
    a, b = (model.sample(label, 30) for label in "ab")
    assert a.shape == (30, *shape) and a.dtype == (np.float32 if kind == "vectors" else np.uint8)
    for made, near, far in ((a, "a", "b"), (b, "b", "a")):
        off = [np.abs(made.mean(0) - x[y == label].mean(0)).mean() for label in (near, far)]
        assert off[0] < off[1] / 2
    assert np.array_equal(a, model.sample("a", 30)) and len(model.sample("a")) == 16
    assert not np.array_equal(a, model.sample("a", 30, random_state=1))


# -- tasks -------------------------------------------------------------------------------------------------------------


def test_with_one_head_a_task_limits_the_answers_to_its_classes():
    x, model = lesson("abc", 9)[0], two_lessons("slda")
    assert set(model.predict(x, task=1)) == {"a", "b"} and set(model.predict(x, task=2)) == {"c"}
    assert model.score(*lesson("abc", 9)) == 1


def test_every_task_has_a_head_that_learns_more_of_its_classes():
    x, model = lesson("abcd", 9)[0], taught(classifier("slda", scenario="task"), *lessons("task", "new")[:2])
    assert set(model.predict(x, task=1)) == {"a", "b"} and set(model.predict(x, task=2)) == {"c", "d"}
    assert model.score(*lesson("ab", 9), task=1) == model.score(*lesson("cd", 9), task=2) == 1
    with warnings.catch_warnings(action="ignore"):
        model.partial_fit(*lesson("ad", 3)).partial_fit(*lesson("b", 4), task=1)  # a head of its own, and more for one
    assert set(model.predict(x, task=3)) == {"a", "d"} and set(model.predict(x, task=4)) == {"a", "b"}
    assert [task.head for task in model.model_.tasks] == [0, 1, 2, 0]


def test_domains_share_one_head():
    x, model = lesson("abc", 9)[0], taught(classifier("slda", scenario="domain"), *lessons("domain", "more")[:2])
    assert model.predict(x).tolist() == model.predict(x, task=2).tolist() == lesson("abc", 9)[1].tolist()
    with pytest.raises(InputError, match="class 'd' is new, but all domains have the same classes"):
        model.partial_fit(*lesson("ad", 3))


@pytest.mark.parametrize("scenario", FIRST)
@pytest.mark.parametrize("task", [0, 3, -1, 1.5, "1"])
def test_a_task_that_does_not_exist_is_refused(scenario, task):
    model, (x, y) = taught(classifier("slda", scenario=scenario), *lessons(scenario, "more")[:2]), lesson("ab", 3)
    for ask in (lambda: model.predict(x, task=task), lambda: model.score(x, y, task=task)):
        with pytest.raises(InputError, match=f"task {task!r} does not exist; give 1 to 2"):
            ask()
    sentence = "does not exist; give 1 to 2" if scenario == "task" else "which has one head; leave it out"
    with pytest.raises(InputError, match=sentence):
        model.partial_fit(x, y, task=task)


# -- lessons that fail, and progress -----------------------------------------------------------------------------------


class Failing:
    """An observer that raises an error at its event of this number."""

    def __init__(self, at, error):
        self.left, self.error = at, error

    def __call__(self, event):
        self.left -= 1
        if not self.left:
            raise self.error


@pytest.mark.parametrize("error", [RuntimeError("disk"), KeyboardInterrupt()], ids=["error", "Ctrl-C"])
@pytest.mark.parametrize("at", range(1, 7))  # two epochs in each of three phases
def test_a_lesson_that_fails_in_the_middle_of_training_changes_nothing(at, error):
    model, undisturbed, (x, y) = two_lessons(), two_lessons(), lessons("class", "both")[2]
    before = known(model, x)
    with pytest.raises(type(error)):
        model.set_params(verbose=Failing(at, error)).partial_fit(x, y)
    assert known(model, x) == before
    with pytest.raises(type(error)):
        model.set_params(verbose=Failing(at, error)).fit(x, y)
    assert known(model, x) == before
    taught(model.set_params(verbose=False), (x, y))
    assert model.state_digest_ == taught(undisturbed, (x, y)).state_digest_


def test_a_closed_form_that_fails_after_it_has_learned_changes_nothing(monkeypatch):
    model, (x, y), learn = two_lessons("slda"), lessons("class", "both")[2], ClosedForm.learn
    before = known(model, x)

    def failing(self, task):
        learn(self, task)
        raise MemoryError

    with monkeypatch.context() as patch, pytest.raises(MemoryError):
        patch.setattr(ClosedForm, "learn", failing)
        model.partial_fit(x, y)
    assert known(model, x) == before


def test_a_first_lesson_that_fails_leaves_an_unfitted_estimator():
    model = classifier("prer", verbose=Failing(3, RuntimeError("disk")))
    with pytest.raises(RuntimeError, match="disk"):
        model.partial_fit(*lesson("ab", 1))
    with pytest.raises(NotFittedError):
        model.predict(lesson("ab", 1)[0])
    assert not [name for name in vars(model) if name.endswith("_")]


def test_progress_is_written_or_given_to_a_function(capsys):
    events = []
    two_lessons(verbose=events.append)
    epochs = [(event["phase"], event["epoch"]) for event in events if event["event"] == "epoch"]
    assert epochs == [(phase, epoch) for phase in ("autoencoder", "flow", "head") for epoch in (0, 1)] * 2
    assert capsys.readouterr() == ("", "")
    two_lessons(verbose=True)
    out, err = capsys.readouterr()
    assert out == "" and [line[:21] for line in err.splitlines()[::3]] == [
        "lesson 1  autoencoder",
        "lesson 2  autoencoder",
    ]


def test_a_first_lesson_may_be_a_single_sample():
    with warnings.catch_warnings(action="ignore"):
        model = classifier("prer").partial_fit(*(part[:1] for part in lesson("a", 1)))
        assert model.predict_proba(lesson("a", 2)[0]).tolist() == [[1]] * 12
        model.partial_fit(*lesson("bc", 2))
    assert model.classes_.tolist() == ["a", "b", "c"] and np.isfinite(model.predict_proba(lesson("abc", 3)[0])).all()
