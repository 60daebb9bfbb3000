"""A model as plain values and tensors, and back; whatever else a file may hold is refused."""

import copy
import json

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from support.hostile_models import HUGE
from support.lessons import classifier, lesson, lessons, taught

from prer.models import plain
from prer.models.folder import UNREADABLE

TEXT = st.characters(exclude_characters="\0")  # which no label may contain
METHODS = ("slda", "ncm", "ranpac", "joint", "replay", "prer")


def parts(model):
    """The plain values of a model, as a file holds them, and its tensors."""
    return json.loads(json.dumps(plain.about(model))), plain.tensors(model)


def same(tensors, others):
    return tensors.keys() == others.keys() and all(tensor.equal(others[name]) for name, tensor in tensors.items())


# -- there and back ----------------------------------------------------------------------------------------------------


@settings(max_examples=25, deadline=None, database=None)
@given(st.data())
def test_any_model_comes_back(data):
    scenario = data.draw(st.sampled_from(["class", "task"]), "scenario")
    kind = data.draw(st.sampled_from([st.integers(-(2**62), 2**62), st.text(TEXT, min_size=1, max_size=20)]), "labels")
    labels = data.draw(st.lists(kind, min_size=2, max_size=6, unique=True), "labels")
    method = data.draw(st.sampled_from(["slda", "ncm", "ranpac", "joint"]), "method")
    held = data.draw(st.sampled_from([0.0, 0.25]), "validation")
    classified = classifier(method, scenario=scenario, ensemble=data.draw(st.integers(1, 2), "seeds"), validation=held)
    rng, groups = np.random.default_rng(0), data.draw(st.integers(1, len(labels) // 2), "lessons")
    for of_lesson in range(groups):
        y = [label for label in labels[of_lesson::groups] for _ in range(12)]
        taught(classified, (rng.normal(size=(len(y), 3)).astype(np.float32), y))
    model = classified.model_
    model.history = data.draw(
        st.lists(st.dictionaries(st.text(max_size=5), st.text(max_size=5)), max_size=2), "history"
    )
    model.health = dict.fromkeys(model.labels, data.draw(st.floats(0, 1), "health"))
    about, tensors = parts(model)
    back = plain.model_of(about, tensors)
    assert parts(back)[0] == about
    assert same(plain.tensors(back), tensors)
    assert (back.labels, back.lessons, back.health) == (model.labels, model.lessons, model.health)
    assert back.digest == model.digest


@pytest.mark.parametrize("kind", ["vectors", "images"])
@pytest.mark.parametrize("scenario", ["class", "task", "domain"])
@pytest.mark.parametrize("method", METHODS)
def test_a_model_of_any_method_and_scenario_comes_back(method, scenario, kind):
    model = taught(classifier(method, scenario=scenario, ensemble=2), *lessons(scenario, "more", kind)).model_
    about, tensors = parts(model)
    before = copy.deepcopy(about), {name: tensor.clone() for name, tensor in tensors.items()}
    back = plain.model_of(about, tensors)
    assert back.digest == model.digest and parts(back)[0] == about and same(plain.tensors(back), tensors)
    assert back.dtype == model.dtype == (torch.uint8 if kind == "images" else torch.float32)
    assert (about, True) == (before[0], same(tensors, before[1]))  # what was given stays as it was


def test_only_joint_has_the_data_of_its_lessons_among_its_tensors():
    for method in METHODS:
        tensors = plain.tensors(taught(classifier(method), *lessons("class", "new")[:2]).model_)
        of_data = [name for name in tensors if name.startswith(plain.DATA)]
        assert len(of_data) == (6 if method == "joint" else 0)
        assert not any(name.startswith(plain.DATA) for name in plain.own(tensors))


def test_what_older_versions_did_not_write_is_not_needed():
    about, tensors = parts(taught(classifier("slda", scenario="task"), *lessons("task", "new")[:2]).model_)
    older = {key: about[key] for key in ("learner", "settings", "seeds", "shape", "tasks")}
    older["tasks"] = [{key: task[key] for key in plain.PLACE} for task in about["tasks"]]
    back = plain.model_of(older, tensors)
    assert (back.scenario, back.dtype, back.history, back.health) == ("task", None, [], {})
    assert back.lessons == [dict.fromkeys(plain.LESSON)] * 2


# -- what is refused ---------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def known():
    """The plain values and tensors of a model with one head that has learned two lessons."""
    return parts(taught(classifier("slda", ensemble=2), lesson("ab", 1), lesson("bc", 2)).model_)


@pytest.fixture(scope="module")
def stored():
    """Those of a model that contains its data."""
    return parts(taught(classifier("joint"), lesson("ab", 1), lesson("c", 2)).model_)


WRONG = {
    "learner": [None, 5, "x", "../x", ["slda"], {}, "\x1b[2J"],
    "settings": [None, 5, "x", {"x": 1}, {"shrinkage": "x"}, {"shrinkage": -1}, {"shrinkage": float("nan")}],
    "seeds": [None, [], "x", [-1], [0.5], [0, 0], ["0"], [True], 10**9, [2**80], {}, 0],
    "scenario": ["x", None, 5, []],
    "shape": [None, [], "x", [0], [-5], [5.0], ["5"], [True], [6], [2**62], {"5": 1}, [1, 5]],
    "notes": [5, "x", [1]],
    "tasks": [None, [], {}, 5, "ab", [5], [None], [[]], [{}]],
    "reading": [None, 5, [], "x", {"columns": ["a"]}, {"x": 1}],
    "health": [5, None, ["a"], [["a"]], [["a", 0.5, 1]], [["a", "x"]], [["a", None]], [["a", -0.1]], [["a", 1.1]]],
    "history": [5, ["abc"], [5], [None]],
}
WRONG["health"] += [[["a", float("nan")]], [["a", True]], [[0.5, 0.5]], [[None, 0.5]], [[["a"], 0.5]], [[True, 0.5]]]
OF_A_TASK = {
    "labels": [None, 5, [], ["a"], ["a", "a"], ["a", 0.5], ["a", None], ["a", True], ["a", ["b"]], ["a", {}], "abc"],
    "outputs": [None, 5, [], [0], [0, 0], [0, -1], [0, 2], [0, 1.0], [0, True], [0, "1"], [0, 10**400], "01"],
    "head": [None, -1, 1, 0.0, "0", False, [], HUGE[-1]],
    "width": [None, -1, 0, 1, 3, 2.0, "2", True, [], *HUGE],
    "samples": [5, "ab", [], [12], [12, -1], [12, 1.5], [12, "1"], [12, None], [12, True], {}],
    "when": [5, 2026.5, [], {}, True],
    "held_out": ["x", -0.1, 1.1, True, [], float("nan"), float("inf"), 10**400],
}


def refused(about, tensors):
    """The sentence with which values or tensors are refused."""
    with pytest.raises(UNREADABLE) as caught:
        plain.model_of(about, tensors)
    return str(caught.value)


@pytest.mark.parametrize(
    ("key", "value"), [(key, value) for key, values in WRONG.items() for value in values], ids=repr
)
def test_a_wrong_value_is_refused(known, key, value):
    about, tensors = known
    refused(about | {key: value}, tensors)


@pytest.mark.parametrize("key", ["learner", "settings", "seeds", "shape", "tasks"])
def test_a_missing_value_is_refused(known, key):
    about, tensors = known
    refused({name: value for name, value in about.items() if name != key}, tensors)


@pytest.mark.parametrize("key", plain.PLACE)
def test_a_missing_value_of_a_task_is_refused(known, key):
    about, tensors = known
    first, *others = about["tasks"]
    refused(about | {"tasks": [{name: v for name, v in first.items() if name != key}, *others]}, tensors)


@pytest.mark.parametrize(
    ("key", "value"), [(key, value) for key, values in OF_A_TASK.items() for value in values], ids=repr
)
def test_a_wrong_value_of_a_task_is_refused(known, key, value):
    about, tensors = known
    first, *others = about["tasks"]
    refused(about | {"tasks": [first | {key: value}, *others]}, tensors)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"labels": ["a"], "outputs": [0, 1]}, "task 1 has 1 labels and 2 outputs"),
        ({"labels": ["a", "a"]}, "task 1 has a label or an output twice"),
        ({"head": 1}, "task 1 has head 1, but there are 0 heads before"),
        ({"width": 3}, r"task 1 has width 3 and outputs (0, 1)"),
        ({"outputs": [0, 2]}, r"task 1 has width 2 and outputs (0, 2)"),
        ({"width": 2.0}, "2.0 is not a whole number of 0 or more"),
        ({"labels": ["a", 0.5]}, "0.5 is not a label"),
        ({"samples": [1]}, "a task of 2 labels has 1 counts of samples"),
        ({"when": 5}, "5 is not a time"),
        ({"held_out": 1.5}, "1.5 is not a share from 0 to 1"),
    ],
)
def test_what_is_wrong_is_said(known, change, sentence):
    about, tensors = known
    first, *others = about["tasks"]
    assert refused(about | {"tasks": [first | change, *others]}, tensors) == sentence


def test_a_head_that_does_not_grow_by_its_tasks_is_refused(known):
    about, tensors = known
    first, second = about["tasks"]
    assert second["outputs"] == [1, 2] and second["width"] == 3
    for change in ({"width": 2}, {"width": 4}, {"outputs": [0, 1]}, {"outputs": [1, 3]}, {"head": 2}):
        refused(about | {"tasks": [first, second | change]}, tensors)
    refused(about | {"tasks": [second, first]}, tensors)
    refused(about | {"tasks": [first]}, tensors)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf")])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.float16])
def test_tensors_that_are_not_finite_are_refused(known, value, dtype):
    about, tensors = known
    for name, tensor in tensors.items():
        spoilt = tensor.to(dtype, copy=True)
        spoilt.view(-1)[-1] = value
        assert refused(about, tensors | {name: spoilt}) == "it contains NaN or infinite values"


def test_tensors_that_do_not_fit_are_refused(known):
    about, tensors = known
    for name, tensor in tensors.items():
        refused(about, {other: t for other, t in tensors.items() if other != name})
        for spoilt in (tensor.half(), tensor.flatten()[:1], tensor[..., None], tensor[:1], tensor[:, :0]):
            refused(about, tensors | {name: spoilt})
    refused(about, tensors | {"one.more": torch.zeros(2)})
    refused(about, {})


DATA_WRONG = {
    "x": [lambda x: x[:-1], lambda x: x[:, :-1], lambda x: x[..., None], lambda x: x[:0], lambda x: x * float("nan")],
    "y": [lambda y: y[:-1], lambda y: y - 1, lambda y: y + 1, lambda y: y.float(), lambda y: y.int(), lambda y: y[:0]],
    "rows": [
        lambda r: r + 1,
        lambda r: r - 1,
        lambda r: r[0],
        lambda r: r[:0],
        lambda r: r[:, :0],
        lambda r: r.float(),
    ],
}
DATA_WRONG["y"].append(lambda y: y[:, None])
DATA_WRONG["rows"].append(lambda r: r.repeat(2, 1))


@pytest.mark.parametrize(("name", "number"), [(name, i) for name, of in DATA_WRONG.items() for i in range(len(of))])
def test_data_of_a_task_that_does_not_fit_is_refused(stored, name, number):
    about, tensors = stored
    key = f"{plain.DATA}1.{name}"
    refused(about, tensors | {key: DATA_WRONG[name][number](tensors[key])})


@pytest.mark.parametrize("name", ["1.x", "1.y", "1.rows", "0.y", "0.rows"])
def test_missing_data_of_a_task_is_refused(stored, name):
    about, tensors = stored
    refused(about, {key: tensor for key, tensor in tensors.items() if key != plain.DATA + name})


@pytest.mark.usefixtures("little_memory")
@pytest.mark.parametrize("method", ["naive", "prer"])
def test_networks_larger_than_their_tensors_are_refused_before_they_need_memory(method):
    about, tensors = parts(taught(classifier(method), lesson("ab", 1)).model_)
    outputs = list(range(10**5))
    wide = about["tasks"][0] | {"labels": outputs, "outputs": outputs, "width": 10**5, "samples": None}
    wide_layers = {"settings": about["settings"] | {"hidden": [60_000] * 3}}
    for change in (wide_layers, {"seeds": list(range(1000))}, {"tasks": [wide]}):
        assert refused(about | change, tensors) == "its settings or tasks describe larger networks than its tensors"


@pytest.mark.usefixtures("little_memory")
@pytest.mark.parametrize("method", ["slda", "ncm", "ranpac"])
def test_sums_larger_than_their_tensors_are_refused(method):
    about, tensors = parts(taught(classifier(method), lesson("ab", 1)).model_)
    outputs = list(range(10**4))
    wide = about["tasks"][0] | {"labels": outputs, "outputs": outputs, "width": 10**4, "samples": None}
    for change in ({"seeds": list(range(1000))}, {"tasks": [wide]}, {"shape": [5000]}):
        refused(about | change, tensors)


@pytest.mark.usefixtures("little_memory")
@pytest.mark.parametrize("make", [torch.empty, torch.zeros, torch.ones, torch.randn])
def test_new_tensors_are_counted_before_they_need_memory(make):
    for size in ((2**40,), ((2**40,),), (2**20, 2**20)):
        with plain.AtMost(10), pytest.raises(ValueError, match="describe larger networks than its tensors"):
            make(*size)
    with plain.AtMost(10):
        assert make(5, dtype=torch.float64).dtype == torch.float64
        assert torch.randn(5, generator=torch.Generator()).device.type == "cpu"


def test_new_tensors_are_counted_together():
    with plain.AtMost(10):
        torch.zeros(4)
        torch.ones(2, 3)
        with pytest.raises(ValueError, match="describe larger networks than its tensors"):
            torch.empty(1)
    torch.zeros(100)
