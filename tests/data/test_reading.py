"""How the data of a model was read: checked where it is read back, and applied to new data."""

import numpy as np
import pytest
import torch

from prer.data.reading import Reading
from prer.errors import InputError

TABLE = Reading(columns=("a", "b"), label="kind", shape=(2,))


def test_what_a_model_says_is_read_back():
    for reading in (Reading(shape=(4,)), TABLE, Reading(size=8, fit="pad", shape=(3, 8, 8))):
        assert Reading.of(reading.to_json(), reading.shape) == reading
    assert "shape" not in TABLE.to_json()


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
    assert np.array_equal(TABLE.arranged(x, ["b", "a"]), x[:, ::-1])
    assert TABLE.arranged(x, ["a", "b"]) is TABLE.arranged(x, []) is Reading().arranged(x, ["b", "a"]) is x


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
