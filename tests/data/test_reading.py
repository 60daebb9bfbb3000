"""How the data of a model was read: checked where it is read back, and applied to new data."""

import json

import numpy as np
import pytest
import torch

from prer.data.reading import OF_FEATURES, Reading, listed, medians
from prer.errors import InputError

TABLE = Reading(columns=("a", "b"), label="kind", shape=(2,))
TEXTS = Reading(
    columns=("a", "city", "b"),
    label="kind",
    shape=(4,),
    categories=((), ("Oslo", "Rome"), ()),
    missing="median",
    medians=(1.5, 0.0, -2.0),
)
FILLED = Reading(missing="median", medians=(1.0, 2.0), shape=(2,))
OF_TEXTS = Reading(extractor="minilm", weights="a" * 64, inputs="texts", text="message", label="intent", shape=(26,))
OF_IMAGES = Reading(extractor="Sequential", weights="b" * 64, inputs="images", size=32, fit="pad", shape=(16,))
OF_VECTORS = Reading(extractor="function", inputs="vectors", shape=(16,))


def test_what_a_model_says_is_read_back():
    for reading in (Reading(shape=(4,)), TABLE, TEXTS, FILLED, Reading(size=8, fit="pad", shape=(3, 8, 8))):
        assert Reading.of(json.loads(json.dumps(reading.to_json())), reading.shape) == reading
    assert "shape" not in TABLE.to_json()


@pytest.mark.parametrize("reading", [OF_TEXTS, OF_IMAGES, OF_VECTORS])
def test_what_a_model_of_features_says_is_read_back(reading):
    assert Reading.of(json.loads(json.dumps(reading.to_json())), reading.shape) == reading
    assert not set(OF_FEATURES) & set(TABLE.to_json())  # older versions read other models as before
    before = reading.before
    assert (before.extractor, before.weights, before.shape) == ("", "", ()) and before.inputs == reading.inputs
    assert (before.text, before.label, before.size, before.fit) == (
        reading.text,
        reading.label,
        reading.size,
        reading.fit,
    )
    assert TABLE.before is TABLE


@pytest.mark.parametrize(
    ("table", "shape", "said"),
    [
        ({"columns": ["a", "b"]}, (3,), "reading.columns names 2 features"),
        ({"columns": ["a", "b"], "label": "a"}, (2,), "reading.columns names 2 features"),
        ({"size": 8}, (1, 9, 8), "reading.size is 8"),
        ({"size": -1}, (3,), "reading.size=-1: take from 0 to 4096"),
        ({"fit": "crop"}, (3,), "choose one of resize, pad"),
        ({"colour": 1}, (3,), "unknown key 'reading.colour'"),
        ({"columns": "ab"}, (2,), "reading.columns='ab': expected a list"),
        ({}, (3, -1), "reading.shape=-1: take 0 or more"),
        ({"columns": ["a", "b"], "categories": [["x", "y"], []]}, (2,), "reading.columns names 3 features"),
        ({"columns": ["a", "b"], "categories": [["x", "y"]]}, (2,), "reading.categories has 1 entries for 2 columns"),
        ({"columns": ["a", "b"], "categories": [[], []]}, (2,), "reading.categories has 2 entries"),
        ({"categories": [["x"]]}, (1,), "reading.categories has 1 entries for 0 columns"),
        ({"columns": ["a"], "categories": [["y", "x"]]}, (2,), "must be sorted and different"),
        ({"columns": ["a"], "categories": [["x", "x"]]}, (2,), "must be sorted and different"),
        ({"columns": ["a"], "categories": [[1]]}, (1,), "expected a string"),
        ({"columns": ["a"], "categories": ["x"]}, (1,), "expected a list"),
        ({"columns": ["a"], "categories": [["\ud800"]]}, (1,), "not text in UTF-8"),
        ({"missing": "mean"}, (1,), "choose one of error, median"),
        ({"missing": "median"}, (1,), "reading.medians has 0 entries"),
        ({"medians": [1.0]}, (1,), "reading.medians has 1 entries"),
        ({"missing": "median", "medians": [1.0]}, (2,), "reading.medians has 1 entries"),
        ({"missing": "median", "medians": [1.0]}, (1, 8, 8), "reading.medians has 1 entries"),
        ({"missing": "median", "medians": []}, (1, 8, 8), "reading.medians has 0 entries"),
        ({"missing": "median", "medians": [float("nan")]}, (1,), "expected a finite number"),
        ({"missing": "median", "medians": [1e39]}, (1,), "must fit into 32-bit floats"),
        ({"missing": "median", "medians": ["1"]}, (1,), "expected a number"),
        ({"extractor": "minilm"}, (26,), "reading.extractor, reading.inputs and the shape .* do not belong together"),
        ({"inputs": "texts"}, (26,), "do not belong together"),
        ({"weights": "a"}, (26,), "do not belong together"),
        ({"extractor": "minilm", "inputs": "texts"}, (1, 8, 8), "do not belong together"),
        ({"extractor": "minilm", "inputs": "texts", "columns": ["a"]}, (1,), "do not belong together"),
        (
            {"extractor": "x", "inputs": "vectors", "missing": "median", "medians": [1.0]},
            (1,),
            "do not belong together",
        ),
        ({"extractor": "minilm", "inputs": "sounds"}, (26,), "choose one of '', texts, images"),
        ({"extractor": 5, "inputs": "texts"}, (26,), "expected a string"),
        ({"extractor": "x", "inputs": "images", "text": "t"}, (26,), "reading.text and reading.size do not belong"),
        ({"text": "t"}, (26,), "reading.text and reading.size do not belong"),
        ({"extractor": "x", "inputs": "texts", "size": 8}, (26,), "reading.text and reading.size do not belong"),
        ({"extractor": "x", "inputs": "vectors", "size": 8}, (26,), "reading.text and reading.size do not belong"),
    ],
)
def test_a_forged_reading_is_refused(table, shape, said):
    with pytest.raises(ValueError, match=said):
        Reading.of(table, shape)


def test_columns_are_found_in_any_order_with_the_label_or_without():
    assert TABLE.label_in(["b", "kind", "a"]) == 1
    assert TABLE.label_in(["b", "a"]) is None
    assert TABLE.order(["b", "a"]) == [1, 0]
    x = np.arange(6).reshape(3, 2)
    other = Reading(columns=("b", "a"))
    assert np.array_equal(TABLE.arranged(x, other), x[:, ::-1])
    assert TABLE.arranged(x, TABLE) is TABLE.arranged(x, Reading()) is Reading().arranged(x, other) is x


@pytest.mark.parametrize(
    ("names", "said"),
    [
        (["a"], r"\(missing: 'b'\); add the missing columns; their order"),
        (["a", "b", "c"], r"\(unknown: 'c'\); remove the unknown columns; their order"),
        (["a", "c"], r"\(missing: 'b'; unknown: 'c'\); add the missing columns and remove the unknown columns; their"),
        (["a", "a", "b"], "two columns are called 'a'"),
        (["1", "2"], "its first line contains numbers"),
    ],
)
def test_other_columns_are_refused(names, said):
    with pytest.raises(InputError, match=said):
        TABLE.label_in(names)


def test_a_table_in_python_has_its_header():
    with pytest.raises(InputError, match="missing: 'a', 'b'; unknown: '1', '2'"):
        TABLE.label_in(["1", "2"], in_file=False)


def test_without_names_the_label_is_the_one_column_too_many():
    known = Reading(shape=(3,))
    assert known.label_in(["p", "q", "r", "s"]) == 3
    assert known.label_in(["p", "q", "r"]) is None
    with pytest.raises(InputError, match="trained on 3 features, but the table has 5 columns"):
        known.label_in(["p", "q", "r", "s", "t"])
    with pytest.raises(InputError, match="the model was trained on images, but this is a table"):
        Reading(shape=(1, 8, 8)).label_in(["p", "q"])


@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("wanted", [1, 3])
def test_images_get_the_size_and_the_channels_of_the_model(channels, wanted):
    known = Reading(size=8, shape=(wanted, 8, 8))
    x = torch.randint(0, 256, (2, channels, 10, 12), dtype=torch.uint8)
    assert (known.fitted(x).shape, known.fitted(x).dtype) == ((2, *known.shape), torch.uint8)


def test_what_is_not_to_be_changed_stays():
    images, vectors = torch.zeros(2, 3, 10, 12), torch.zeros(2, 5)
    assert Reading(shape=(3, 10, 12)).fitted(images) is images
    assert Reading(shape=(4, 8, 8)).fitted(images) is images
    assert Reading(shape=(5,)).fitted(vectors) is vectors


# -- texts and missing values -----------------------------------------------------------------------------------------


def test_features_are_named_by_column_and_category():
    assert TEXTS.features == ("a", "city=Oslo", "city=Rome", "b") and TEXTS.widths == (1, 2, 1)
    assert TABLE.features == ("a", "b") and TABLE.widths == (1, 1)
    assert Reading(shape=(3,)).features == Reading(shape=(3,)).widths == ()


def test_holes_are_filled_by_the_median_of_their_place():
    nan = np.nan
    x = np.array([[nan, 5], [3, nan]])
    assert FILLED.filled(x).tolist() == [[1, 5], [3, 2]] and np.isnan(x).sum() == 2
    assert FILLED.filled(x.astype(np.float16)).dtype == np.float16
    encoded = np.full((1, 4), nan, np.float32)
    assert TEXTS.filled(encoded).tolist() == [[1.5, 0, 0, -2]]
    for same in (np.ones((2, 2)), np.full((2, 3), nan), np.full(2, nan), np.ones((2, 2), int), np.array([["a", "b"]])):
        assert FILLED.filled(same) is same
    assert Reading().filled(x) is TABLE.filled(x) is x


def test_infinite_values_are_not_filled():
    assert np.isinf(FILLED.filled(np.array([[np.inf, np.nan]]))).tolist() == [[True, False]]


def test_medians_leave_out_what_is_missing():
    nan = np.nan
    assert medians(np.array([[1, nan], [nan, 4], [2, 8], [9, 1]])) == (2.0, 4.0)
    big = np.finfo(np.float32).max
    assert medians(np.array([[big], [big]], np.float32)) == (float(big),)
    with pytest.raises(InputError, match=r"^column 2 has no value; drop it$"):
        medians(np.array([[1, nan]]))
    with pytest.raises(InputError, match=r"^column 'b' has no value; drop it$"):
        medians(np.array([[1, nan]]), ["a", "b"])


def test_encoded_columns_are_reordered_with_all_their_categories():
    other = Reading(columns=("city", "b", "a"), categories=(("Oslo", "Rome"), (), ()))
    assert TEXTS.arranged(np.array([[1, 0, 7, 8]]), other).tolist() == [[8, 1, 0, 7]]
    for texts in (("Oslo",), ("Oslo", "Bern"), ()):
        other = Reading(columns=("city", "b", "a"), categories=(texts, (), ()) if texts else ())
        with pytest.raises(InputError, match="the texts in column 'city' differ from those of the training data"):
            TEXTS.arranged(np.ones((1, 4)), other)


def test_long_lists_are_cut():
    assert listed("ab") == "'a', 'b'" and listed("abcdefg") == "'a', 'b', 'c', 'd', 'e' and 2 more"
