"""What Python objects give: data sets of torch, and rows with names."""

import subprocess
import sys

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image
from support.data_files import same
from torch.utils.data import Dataset, IterableDataset, TensorDataset

from prer.data.rows import as_data
from prer.errors import InputError

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


# -- pairs ------------------------------------------------------------------------------------------------------------


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


def test_grey_images_among_coloured_ones_get_three_channels():
    images = [Image.fromarray(GREY[0]), Image.fromarray(COLOUR[1])]
    assert same(
        as_data(list(zip(images, [0, 1], strict=True))), np.stack([np.repeat(GREY[:1], 3, 0), FIRST[1]]), [0, 1]
    )


def test_a_tensor_data_set_is_a_data_set_of_pairs():
    assert same(as_data(TensorDataset(torch.from_numpy(FIRST.copy()), torch.tensor(Y))), FIRST, Y)


def test_samples_with_labels_beside_them():
    assert same(as_data(list(GREY), Y), GREY, Y)
    assert same(as_data(GREY, np.array(Y)), GREY, Y)


# -- rows with names --------------------------------------------------------------------------------------------------


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


# -- bad input --------------------------------------------------------------------------------------------------------


ROWS = [{"height": 1.0, "label": 0}, {"height": 2.0, "label": 1}]


BAD = {
    "nothing": (([],), "the data is empty"),
    "a number": ((3,), "an object of type int"),
    "a string": (("mnist",), "an object of type str"),
    "a mapping": (({"x": GREY},), "an object of type dict"),
    "triples": (([(1, 2, 3)],), "give pairs"),
    "pairs that end": (([(1, 2), 3],), "give pairs"),
    "mixed shapes": (([(GREY[0], 0), (GREY[1, :5], 1)],), r"shapes, \(8, 9\) and \(5, 9\)"),
    "images of mixed sizes": (
        ([(Image.new("L", (8, 8)), 0), (Image.new("L", (9, 8)), 1)],),
        r"shapes, \(1, 8, 8\) and",
    ),
    "images among arrays": (([(Image.new("L", (8, 8)), 0), ([], 1)],), r"shapes, \(1, 8, 8\) and \(0,\)"),
    "ragged lists": (([([[1], [1, 2]], 0), ([[1], [1, 2]], 1)],), "not numbers"),
    "NaN in pairs": (([(np.array([1.0, np.nan]), 0)],), "NaN"),
    "missing label": (([(GREY[0], 0), (GREY[1], None)],), "labels are missing"),
    "too few labels": ((list(GREY), [1, 2]), "6 samples and y has 2 labels"),
    "rows without a label": (([{"a": 1, "b": 2}],), "the label could be any of a, b"),
    "rows with an unknown label": ((ROWS, "lable"), "no column 'lable', did you mean 'label'"),
    "rows of text": (([{"text": "hello", "label": 1}],), "rows with only text, label contain no samples"),
    "rows with a hole": (([*ROWS, {"height": None, "label": 1}],), "row 3 has no 'height'"),
    "rows that begin with a hole": (([{"height": None, "label": 1}, *ROWS],), "row 1 has no 'height'"),
    "rows with NaN": (([*ROWS, {"height": float("nan"), "label": 1}],), "NaN"),
    "rows without the key": (([*ROWS, {"label": 1}],), "row 3 has no 'height'"),
    "rows with text later": (([*ROWS, {"height": "tall", "label": 1}],), "row 3: 'height' is not a number"),
    "rows and then none": (([*ROWS, 3],), "row 3 has no"),
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
