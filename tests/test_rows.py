"""What Python objects give: data sets of torch, rows with names, data frames."""

import subprocess
import sys

import numpy as np
import pandas
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image
from torch.utils.data import Dataset, IterableDataset, TensorDataset

from prer.data.rows import as_data
from prer.errors import InputError
from prer.streams.stream import Stream

few = settings(max_examples=40, deadline=None, database=None)
RNG = np.random.default_rng(0)
GREY = RNG.integers(0, 256, (6, 8, 9), dtype=np.uint8)
COLOUR = RNG.integers(0, 256, (6, 8, 9, 3), dtype=np.uint8)
FIRST = np.moveaxis(COLOUR, -1, 1)
Y = [3, 1, 2, 3, 1, 2]


class Mapped(Dataset):
    """By index, and as many real ones without an end of its own."""

    def __init__(self, items):
        self.items = items

    def __len__(self):
        return len(self.items)

    def __getitem__(self, index):
        return self.items[index % len(self.items)]


class Streamed(IterableDataset):
    def __init__(self, items):
        self.items = items

    def __iter__(self):
        return iter(self.items)


def same(data, x, y):
    assert np.array_equal(np.asarray(data.x), x)
    assert np.asarray(data.x).dtype == np.asarray(x).dtype
    assert data.y.tolist() == list(y)
    assert data.tests == 0
    return True


# -- pairs -----------------------------------------------------------------------------------------------------------

SAMPLES = {
    "tensors": (torch.from_numpy(FIRST.copy()), FIRST),
    "floats": (torch.from_numpy(FIRST / 255).float(), (FIRST / 255).astype(np.float32)),
    "half precision": (torch.ones(6, 3, dtype=torch.bfloat16), np.ones((6, 3), np.float32)),
    "arrays": (COLOUR, COLOUR),
    "coloured images": ([Image.fromarray(x) for x in COLOUR], FIRST),
    "grey images": ([Image.fromarray(x) for x in GREY], GREY[:, None]),
    "vectors": (FIRST.reshape(6, -1) / 2, FIRST.reshape(6, -1) / 2),
    "lists": (FIRST.reshape(6, -1).tolist(), FIRST.reshape(6, -1).astype(int)),
    "scalars": ([0.5, 1.5, 2.5, 3.5, 4.5, 5.5], np.arange(0.5, 6)[:, None]),
}
LABELS = {
    "ints": Y,
    "tensors": [torch.tensor(v) for v in Y],
    "strings": list("abcabc"),
    "numpy": [np.int64(v) for v in Y],
}


@pytest.mark.parametrize("kind", [Mapped, Streamed, list, iter], ids=["map-style", "iterable", "list", "iterator"])
@pytest.mark.parametrize("samples", SAMPLES)
@pytest.mark.parametrize("labels", LABELS)
def test_pairs_of_any_kind(kind, samples, labels):
    x, expected = SAMPLES[samples]
    y = LABELS[labels]
    assert same(as_data(kind(list(zip(x, y, strict=True)))), expected, [getattr(v, "item", lambda v=v: v)() for v in y])


def test_a_tensor_data_set_makes_a_stream():
    data = as_data(TensorDataset(torch.from_numpy(FIRST.copy()), torch.tensor(Y)))
    assert Stream.split(data.x, data.y, classes_per_task=3).shape == (3, 8, 9)


def test_grey_images_among_coloured_ones_get_three_channels():
    images = [Image.fromarray(GREY[0]), Image.fromarray(COLOUR[1])]
    assert same(
        as_data(list(zip(images, [0, 1], strict=True))), np.stack([np.repeat(GREY[:1], 3, 0), FIRST[1]]), [0, 1]
    )


def test_samples_with_labels_beside_them():
    assert same(as_data(list(GREY), Y), GREY, Y)
    assert same(as_data(GREY, np.array(Y)), GREY, Y)


# -- rows with names -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("x_name", ["image", "img", "pixel_values", "x", "features"])
@pytest.mark.parametrize("y_name", ["label", "labels", "fine_label", "y", "target"])
@pytest.mark.parametrize("kind", [list, Mapped, iter])
def test_rows_with_known_names(x_name, y_name, kind):
    rows = [
        {"id": i, y_name: y, x_name: Image.fromarray(x), "note": "?"}
        for i, (x, y) in enumerate(zip(COLOUR, Y, strict=True))
    ]
    assert same(as_data(kind(rows)), FIRST, Y)


def test_the_label_can_be_named():
    rows = [{"img": x, "fine_label": i, "coarse_label": y} for i, (x, y) in enumerate(zip(GREY, Y, strict=True))]
    assert same(as_data(rows), GREY, range(6))
    assert same(as_data(rows, y="coarse_label"), GREY, Y)


@few
@given(
    st.lists(st.text(min_size=1, max_size=5), min_size=2, max_size=5, unique=True).filter(
        lambda names: not {"image", "img", "pixel_values", "x", "features"} & set(names)
    ),
    st.integers(1, 6),
    st.data(),
)
def test_all_other_numbers_are_features(names, n, data):
    label = data.draw(st.sampled_from(names))
    table = RNG.normal(size=(n, len(names))).astype(np.float32)
    rows = [
        dict(zip(names, row.tolist(), strict=True)) | {label: i, "a long name of a text": "text"}
        for i, row in enumerate(table)
    ]
    expected = table[:, [name != label for name in names]]
    assert same(as_data(rows, y=label), expected, range(n))


# -- data frames -----------------------------------------------------------------------------------------------------

FRAME = pandas.DataFrame(
    {"a": [1.5, 2, 3], "kind": ["x", "y", "x"], "b": [1, 2, 3], "c": [True, False, True], "last": [7, 8, 9]}
)


def test_a_data_frame_by_its_columns():
    assert same(
        as_data(FRAME.drop(columns="kind")), np.array([[1.5, 1, 1], [2, 2, 0], [3, 3, 1]], np.float32), [7, 8, 9]
    )
    expected = np.array([[1.5, 1, 1, 7], [2, 2, 0, 8], [3, 3, 1, 9]], np.float32)
    assert same(as_data(FRAME, y="kind"), expected, ["x", "y", "x"])
    assert same(as_data(FRAME.drop(columns="kind"), y=FRAME["kind"]), expected, ["x", "y", "x"])
    assert same(as_data(FRAME.drop(columns="kind"), y=["p", "q", "r"]), expected, ["p", "q", "r"])
    assert same(
        as_data(FRAME.astype({"kind": "category", "b": "Int64", "a": "Float32"}), y="kind"), expected, ["x", "y", "x"]
    )


def test_columns_that_are_numbers():
    frame = pandas.DataFrame(np.arange(6).reshape(2, 3))
    assert same(as_data(frame), np.array([[0, 1], [3, 4]], np.float32), [2, 5])
    assert same(as_data(frame, y=0), np.array([[1, 2], [4, 5]], np.float32), [0, 3])


# -- bad input -------------------------------------------------------------------------------------------------------

ROWS = [{"height": 1.0, "label": 0}, {"height": 2.0, "label": 1}]
BAD = {
    "nothing": (([],), "there are no samples"),
    "a number": ((3,), "no data in a int"),
    "a string": (("mnist",), "no data in a str"),
    "a mapping": (({"x": GREY},), "no data in a dict"),
    "triples": (([(1, 2, 3)],), "give pairs"),
    "pairs that end": (([(1, 2), 3],), "give pairs"),
    "mixed shapes": (([(GREY[0], 0), (GREY[1, :5], 1)],), r"shapes \(8, 9\) and \(5, 9\)"),
    "images of mixed sizes": (([(Image.new("L", (8, 8)), 0), (Image.new("L", (9, 8)), 1)],), r"shapes \(1, 8, 8\) and"),
    "images among arrays": (([(Image.new("L", (8, 8)), 0), ([], 1)],), r"shapes \(1, 8, 8\) and \(0,\)"),
    "text as samples": (([("a", 0), ("b", 1)],), "no numbers"),
    "ragged lists": (([([[1], [1, 2]], 0), ([[1], [1, 2]], 1)],), "no numbers"),
    "NaN in pairs": (([(np.array([1.0, np.nan]), 0)],), "NaN"),
    "missing label": (([(GREY[0], 0), (GREY[1], None)],), "labels are missing"),
    "too few labels": ((list(GREY), [1, 2]), "6 samples and y has 2 labels"),
    "rows without a label": (([{"a": 1, "b": 2}],), "which of a, b is the label"),
    "rows with an unknown label": ((ROWS, "lable"), "no column 'lable', did you mean 'label'"),
    "rows of text": (([{"text": "hello", "label": 1}],), "no samples in a row with text, label"),
    "rows with a hole": (([*ROWS, {"height": None, "label": 1}],), "row 3 has no 'height'"),
    "rows that begin with a hole": (([{"height": None, "label": 1}, *ROWS],), "row 1 has no 'height'"),
    "rows with NaN": (([*ROWS, {"height": float("nan"), "label": 1}],), "NaN"),
    "rows without the key": (([*ROWS, {"label": 1}],), "row 3 has no 'height'"),
    "rows with text later": (([*ROWS, {"height": "tall", "label": 1}],), "row 3: 'height' is no number"),
    "rows and then none": (([*ROWS, 3],), "row 3 has no"),
    "a frame with a hole": ((FRAME.assign(a=[1, None, 3]), "kind"), "column 'a': a value is missing"),
    "a frame with text": ((FRAME,), r"row 1, column 'kind' holds text \('x'\)"),
    "a frame with numerals": ((FRAME.assign(kind=["1", "2", "3"]),), "column 'kind' holds text"),
    "a frame with dates": (
        (FRAME.assign(kind=pandas.to_datetime(["2020-01-01"] * 3)),),
        "column 'kind' holds datetime64",
    ),
    "a label with fractions": ((FRAME[["b", "a"]],), r"column 'a' holds fractions \(1.5 in row 1\)"),
    "a frame with a missing label": ((FRAME.assign(kind=["x", None, "y"]), "kind"), "labels are missing"),
    "a frame with a hole in whole numbers": (
        (FRAME.assign(a=pandas.array([1, None, 3], "Int64")), "kind"),
        "is missing",
    ),
    "a frame with a hole in text": ((FRAME.assign(a=["x", None, "z"]), "kind"), "is missing"),
    "a frame with two features of one name": ((pandas.concat([FRAME[["a", "a"]], FRAME[["b"]]], axis=1),), "one name"),
    "a frame without rows": ((FRAME[:0], "kind"), "shape"),
    "a frame of one column": ((FRAME[["last"]],), "shape"),
    "a frame without columns": ((FRAME[[]],), "column|shape"),
    "a frame with an unknown label": ((FRAME, "kin"), "no column 'kin', did you mean 'kind'"),
    "a frame with two labels": ((pandas.concat([FRAME[["b"]]] * 2, axis=1), "b"), "two columns are called 'b'"),
    "labels of another length": ((FRAME[["a", "b"]], [1, 2]), "3 samples and y has 2 labels"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_objects_are_refused_in_one_sentence(case):
    given_, said = BAD[case]
    with pytest.raises(InputError, match=said) as caught:
        as_data(*given_)
    assert str(caught.value).isprintable()
    assert len(str(caught.value)) < 200


def test_no_library_is_imported_that_is_not_needed():
    names = ("pandas", "datasets", "PIL", "pyarrow", "scipy")
    code = f"import sys, prer.data.rows, prer.data.files; print([m for m in {names} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
