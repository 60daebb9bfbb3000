"""What a ContinualClassifier may be given, and what it says about anything else."""

import json

import numpy as np
import pandas
import pytest
import torch
from PIL import Image
from support.lessons import classifier, lesson, taught
from support.tables import FEATURES, table

import prer
from prer.errors import InputError
from prer.models import plain

NAMES = list("pqrst")  # of the features of a lesson


def model_of(*given, name="slda", **settings):
    return taught(classifier(name, **settings), *given)


def first():
    return lesson("ab", 1)


def numbered(y):
    """Labels as numbers from 0."""
    return np.array([ord(label) - ord("a") for label in y])


# -- the same samples in many forms ------------------------------------------------------------------------------------


def in_many_forms(x, y, label="label"):
    """Samples with their labels, as pairs of what `partial_fit` takes."""
    frame = pandas.DataFrame(x, columns=NAMES)
    whole = frame.assign(**{label: y})
    rows = whole.to_dict("records")
    return {
        "array": (x, y),
        "lists": (x.tolist(), y.tolist()),
        "tensors": (torch.from_numpy(x), list(y)),
        "frame and series": (frame, pandas.Series(y)),
        "frame and categories": (frame, pandas.Series(y).astype("category")),
        "frame": (whole, label),
        "pairs": (list(zip(torch.from_numpy(x), y, strict=True)), None),
        "rows": (rows, None),
        "rows and a name": (rows, label),
    }


FORMS = list(in_many_forms(*first()))


@pytest.mark.parametrize("form", FORMS)
def test_the_same_lessons_in_any_form_give_the_same_model(form):
    lessons = [lesson("ab", 1), lesson("ca", 2)]
    model = model_of(*(in_many_forms(*each)[form] for each in lessons))
    assert model.state_digest_ == model_of(*lessons).state_digest_
    assert model.classes_.tolist() == ["a", "b", "c"] and model.n_features_in_ == 5
    named = form.startswith(("frame", "rows"))
    assert list(getattr(model, "feature_names_in_", ())) == (NAMES if named else [])


@pytest.mark.parametrize("form", FORMS)
def test_a_model_is_asked_and_scored_in_any_form(form):
    x, y = lesson("ab", 3)
    model = model_of((pandas.DataFrame(first()[0], columns=NAMES).assign(label=first()[1]), "label"))
    given, labels = in_many_forms(x, y)[form]
    if form in ("array", "lists", "tensors"):
        with pytest.warns(UserWarning, match="does not have valid feature names.*in the order of the first lesson"):
            assert model.predict(given).tolist() == y.tolist()
    else:
        assert model.predict(given).tolist() == y.tolist()
        assert model.score(given, labels) == 1


def test_a_data_set_of_torch_has_numbers_as_labels():
    x, y = first()
    data = torch.utils.data.TensorDataset(torch.from_numpy(x), torch.from_numpy(numbered(y)))
    model = model_of((data, None))
    assert model.state_digest_ == model_of((x, numbered(y))).state_digest_
    assert model.predict(data).tolist() == numbered(y).tolist() and model.score(data) == 1


def test_columns_go_by_their_names_and_the_label_may_stay_in(tmp_path):
    frame, more = table(), table(seed=1)
    model = model_of((frame[frame["kind"] < "c"], "kind"), (frame[frame["kind"] > "c"][frame.columns[::-1]], "kind"))
    assert model.feature_names_in_.tolist() == FEATURES and model.n_features_in_ == 4
    expected = more["kind"].tolist()
    for asked in (more, more[FEATURES[::-1]], more[FEATURES]):
        assert model.predict(asked).tolist() == expected
    assert model.score(more[more.columns[::-1]], "kind") == model.score(more[FEATURES[::-1]], more["kind"]) == 1
    assert model.predict(more[FEATURES[::-1]].to_dict("records")).tolist() == expected
    rows = [more[more.columns[::step]].to_dict("records") for step in (1, -1)]  # to teach, in two orders of columns
    assert len({taught(prer.load(model.save(tmp_path)), (each, "kind")).state_digest_ for each in rows}) == 1


def test_labels_are_numbers_of_any_kind_or_texts():
    x, y = first()
    whole = model_of((x, numbered(y) - 1))
    assert whole.classes_.tolist() == [-1, 0] and whole.predict(x).tolist() == (numbered(y) - 1).tolist()
    for kind in (np.int8, np.float64, object):
        assert model_of((x, (numbered(y) - 1).astype(kind))).state_digest_ == whole.state_digest_
    assert model_of((x, y == "b")).classes_.tolist() == [0, 1]
    assert model_of((x, y.astype(object))).classes_.tolist() == ["a", "b"]


@pytest.mark.parametrize("channels", [0, 1, 3])
def test_images_come_with_channels_or_without(channels, tmp_path):
    x, y = lesson("ab", 1, "images")
    x = np.stack([x] * channels, -1) if channels else x
    model = model_of((x, y))
    assert model.model_.reading.shape == (channels or 1, 8, 8) and not hasattr(model, "n_features_in_")
    pictures = [Image.fromarray(each.squeeze()) for each in x]
    rows = [{"image": picture, "label": label} for picture, label in zip(pictures, y, strict=True)]
    for given in ((list(zip(pictures, y, strict=True)), None), (rows, None), (torch.from_numpy(x), y)):
        assert model_of(given).state_digest_ == model.state_digest_
    assert model.predict(rows).tolist() == model.predict(pictures).tolist() == model.predict(x).tolist() == y.tolist()
    assert model.predict(x[:1] // 8).shape == (1,)  # a dark image alone


def test_missing_numbers_are_filled_by_the_first_lesson():
    x, y = first()
    x[::5, 2] = np.nan
    model = model_of((x, y), missing="median")
    filled = np.where(np.isnan(x), np.nanmedian(x, 0), x)
    assert model.predict_proba(x).tolist() == model.predict_proba(filled).tolist()
    assert model.state_digest_ == model_of((filled, y)).state_digest_


# -- what is refused ---------------------------------------------------------------------------------------------------


def put(array, value):
    """A copy of an array that has this value somewhere."""
    array = array.astype(object if isinstance(value, str) or value is None else float)
    array.flat[7] = value
    return array


FRAME = pandas.DataFrame(first()[0], columns=NAMES)
LABELS = first()[1]
BAD_LESSONS = {  # given x and y of a lesson
    "narrower": (lambda x, y: (x[:, :3], y), "X has 3 features, but .* expecting 5 features .*; give the features of"),
    "images": (lambda x, y: (np.full((2, 8, 8), 200, np.uint8), y[:2]), "shape 5, but these have shape 1x8x8; convert"),
    "a row": (lambda x, y: (x[0], y[:1]), "Expected 2D array, got 1D array instead; Reshape your data"),
    "five axes": (lambda x, y: (np.zeros((2, 8, 8, 3, 2)), y[:2]), "give numbers as images"),
    "empty": (lambda x, y: (x[:0], y[:0]), r"Found array with 0 sample\(s\) .*; give numbers as vectors"),
    "an empty list": (lambda x, y: ([], []), "Expected 2D array"),
    "an empty frame": (lambda x, y: (FRAME[:0], y[:0]), r"has shape \(0, 5\); give features and a label"),
    "an empty data set": (lambda x, y: ((each for each in ()), None), "the data is empty; give pairs"),
    "NaN": (lambda x, y: (put(x, np.nan), y), "1 of 25 samples contain NaN or infinite values .*; fill them or drop"),
    "infinite": (lambda x, y: (put(x, np.inf), y), "1 of 25 samples contain NaN or infinite values"),
    "texts": (lambda x, y: (x.astype(str), y), "Convert your data to numeric values .*; give numbers as vectors"),
    "complex": (lambda x, y: (x * 1j, y), "^Complex data not supported; give numbers as vectors"),
    "rows of other lengths": (lambda x, y: ([[1, 2], [3]], y[:2]), "inhomogeneous .*; give numbers as vectors"),
    "nothing": (lambda x, y: (None, y), "NoneType is not a data source; give pairs"),
    "other columns": (
        lambda x, y: (FRAME.rename(columns={"p": "z"}), y),
        "missing: 'p'; unknown: 'z'.*; add the",
    ),
    "a column less": (lambda x, y: (FRAME.drop(columns="q"), y), "missing: 'q'.*; add the missing columns"),
    "no labels": (lambda x, y: (x, None), "requires y to be passed, .* None; give a label for each sample"),
    "the name of a label": (
        lambda x, y: (x, "kind"),
        "requires y to be passed, .* 'kind'; give a label for each",
    ),
    "more labels": (lambda x, y: (x, [*y, "a"]), r"numbers of samples: \[25, 26\]; give one label for each sample"),
    "fewer labels": (
        lambda x, y: (FRAME, y[1:]),
        "x has 25 samples and y has 24 labels; give one label for",
    ),
    "a missing label": (lambda x, y: (x, put(y, None)), "some labels are missing; drop those samples or label them"),
    "a label of NaN": (lambda x, y: (x, [*y[1:], np.nan]), "some labels are missing; drop those samples or label them"),
    "no number as label": (lambda x, y: (x, put(numbered(y), np.nan)), "y contains NaN; give a whole number or a text"),
    "a missing text": (lambda x, y: (x, pandas.Series([*y[1:], pandas.NA], dtype="string")), "some labels are missing"),
    "fractions": (lambda x, y: (x, np.linspace(0, 1, 25)), "label type: continuous; give a whole number or a text for"),
    "fractions in a list": (lambda x, y: (x, [0.5] * 25), "labels have fractions .*: give whole numbers or names"),
    "labels of two axes": (
        lambda x, y: (x, np.ones((25, 2))),
        r"an array of shape \(25, 2\) instead; give a",
    ),
    "numbers among texts": (lambda x, y: (x, [*y[1:], 1]), "labels must be all whole numbers of 0 or more, or all str"),
    "numbers after texts": (
        lambda x, y: (x, numbered(y)),
        "label 0 follows label 'a' of an earlier task; use",
    ),
}
OF_A_FRAME = {"other columns", "a column less"}
FIT_LATER = {*OF_A_FRAME, "narrower", "images", "numbers after texts"}  # a first lesson may be like these


@pytest.mark.parametrize("case", BAD_LESSONS)
def test_a_lesson_that_cannot_be_read_is_refused_in_a_sentence_and_changes_nothing(case):
    x, y = first()
    model = model_of((FRAME if case in OF_A_FRAME else x, y))
    bad, sentence = BAD_LESSONS[case]
    before = model.state_digest_, model.classes_.tolist(), len(model.model_.lessons), model.model_.dtype
    proba = model.predict_proba(FRAME)
    for teach in [model.partial_fit] if case in FIT_LATER else [model.partial_fit, model.fit]:
        with pytest.raises(InputError, match=sentence) as caught:
            teach(*bad(*lesson("ab", 2)))
        assert "\n" not in str(caught.value)
        assert (model.state_digest_, model.classes_.tolist(), len(model.model_.lessons), model.model_.dtype) == before
        assert np.array_equal(model.predict_proba(FRAME), proba)


@pytest.mark.parametrize(
    ("then", "sentence"), [(["0", "1"], "label '0' was 0 in an earlier task"), (["x"], "label 'x' follows label 0 of")]
)
def test_a_label_is_a_number_or_a_text_in_all_lessons(then, sentence):
    x, y = first()
    model = model_of((x, numbered(y)))
    with pytest.raises(InputError, match=f"{sentence}.*; use numbers or text in all tasks"):
        model.partial_fit(x, np.resize(then, len(y)))
    assert model.classes_.tolist() == [0, 1] and model.score(x, numbered(y)) == 1


def test_other_classes_than_those_of_an_argument_are_refused():
    model = model_of(first())
    with pytest.raises(InputError, match="class 'b' is in y, but not in classes; add it, or leave classes out"):
        model.partial_fit(*lesson("ab", 2), classes=["a", "c"])
    assert model.partial_fit(*lesson("ab", 2), classes=list("abcd")).classes_.tolist() == ["a", "b"]


def test_what_is_asked_of_a_class_that_was_never_taught_is_refused():
    x, y = lesson("ab", 1)
    model = model_of((x[y == "a"], y[y == "a"]))  # a first lesson of one class
    assert model.predict(x).tolist() == ["a"] * len(y) and model.score(x[y == "a"], y[y == "a"]) == 1
    with pytest.raises(InputError, match="has not learned class 'b'; teach it first, or leave out these samples"):
        model.score(x, y)
    with pytest.raises(InputError, match="slda cannot generate samples; PRER and DGR can"):
        model.sample("a")
    with pytest.raises(InputError, match="unknown class 'z'; known: a, b"):
        model_of((x, y), name="prer").sample("z")


@pytest.mark.parametrize(
    ("asked", "sentence"),
    [
        (np.zeros((2, 3)), "X has 3 features, .* expecting 5 features"),
        (np.zeros((2, 8, 8), np.uint8), "shape 5, but these have shape 1x8x8; convert them first"),
        (
            FRAME.drop(columns="p"),
            "the model was trained on 5 features, but the table has 4 columns; give",
        ),
        (np.full((2, 5), np.nan), "2 of 2 samples contain NaN"),
        (np.zeros((0, 5)), r"0 sample\(s\) .*; give numbers as vectors"),
        (np.zeros(5), "Reshape your data"),
    ],
)
def test_samples_that_cannot_be_predicted_are_refused(asked, sentence):
    model = model_of(first())
    for ask in (model.predict, model.predict_proba, model.decision_function):
        with pytest.raises(InputError, match=sentence):
            ask(asked)
    with pytest.raises(InputError, match="X has 25 samples and y has 26 labels; give one label for each sample"):
        model.score(first()[0], [*LABELS, "a"])
    with pytest.raises(InputError, match=r"requires y to be passed, .*; give a label for each sample"):
        model.score(first()[0])


BAD_SETTINGS = [
    ({"method": "prrer"}, "unknown learner 'prrer', did you mean 'prer'"),
    ({"method": 3}, "method=3: give the name of a learner, its class, or a learner"),
    ({"scenario": "task-free"}, "scenario='task-free': choose one of task, class, domain"),
    ({"ensemble": 0}, "ensemble=0: give a whole number from 1 to"),
    ({"ensemble": 1.5}, "ensemble=1.5: give a whole number from 1 to"),
    ({"random_state": -1}, "random_state=-1: give a number of 0 or more, a RandomState, or None"),
    ({"random_state": "one"}, "random_state='one': give a number of 0 or more"),
    ({"device": "tpu"}, "device 'tpu' is not available; this machine has cpu"),
    ({"validation": 1.0}, "validation=1: the share to hold out must be at least 0 and less than 1"),
    ({"validation": "0.1"}, "validation='0.1': give a share, such as 0.1, or 0"),
    ({"balance": "no"}, "balance='no': give True or False"),
    ({"missing": "mean"}, "missing='mean': choose one of error, median"),
]


@pytest.mark.parametrize(("settings", "sentence"), BAD_SETTINGS, ids=lambda value: str(value)[:30])
def test_wrong_arguments_of_the_constructor_are_named_when_it_learns(settings, sentence):
    model = prer.ContinualClassifier(**{"method": "slda", "device": "cpu"} | settings)
    with pytest.raises(InputError, match=sentence):
        model.fit(*first())
    assert not hasattr(model, "model_")


@pytest.mark.parametrize("state", [None, np.random.RandomState(4)])
def test_a_random_state_may_be_none_or_that_of_numpy(state):
    assert 0 <= model_of(first(), random_state=state).model_.seeds[0] < 2**31


def test_a_folder_of_a_newer_format_is_refused(tmp_path):
    folder = model_of(first()).save(tmp_path / "model")
    about = json.loads((folder / "model.json").read_text())
    (folder / "model.json").write_text(json.dumps(about | {"format": plain.FORMAT + 1}))
    with pytest.raises(InputError, match="of a newer version of prer; update prer: pip install -U prer"):
        prer.load(folder)
    with pytest.raises(InputError, match="contains no model; give the folder of a model or of a finished run"):
        prer.load(tmp_path / "nothing")
