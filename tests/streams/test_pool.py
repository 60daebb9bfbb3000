"""All samples in one place: labels of any kind, a test part beside them, one copy, and what is refused."""

import gc
import weakref

import numpy as np
import pytest
import torch
from support.arrays import FOUR, IMAGES, NAMES, X, Y, images, parts, vectors
from support.tables import COLUMNS, table
from torch.utils.data import TensorDataset

from prer.data.arrays import Data
from prer.errors import InputError
from prer.streams.pool import as_pool, check_parts
from prer.streams.stream import Stream


@pytest.mark.parametrize(
    ("y", "expected"),
    [
        (FOUR.tolist(), (0, 1, 2, 3)),
        (FOUR.astype(np.uint8), (0, 1, 2, 3)),
        (FOUR.astype(">i2"), (0, 1, 2, 3)),
        (FOUR.astype(float), (0, 1, 2, 3)),
        (FOUR > 1, (0, 1)),
        (FOUR * 100 + 5, (5, 105, 205, 305)),
        (torch.tensor(FOUR), (0, 1, 2, 3)),
        (torch.tensor(FOUR).float(), (0, 1, 2, 3)),
        (torch.tensor(FOUR > 1), (0, 1)),
        ([np.int64(v) for v in FOUR], (0, 1, 2, 3)),
        ([torch.tensor(v) for v in FOUR], (0, 1, 2, 3)),
        ([np.array(v) for v in FOUR], (0, 1, 2, 3)),
        (FOUR + 2**60, (2**60, 2**60 + 1, 2**60 + 2, 2**60 + 3)),
        (NAMES[FOUR], ("ant", "bee", "cat", "dog")),
        (NAMES[FOUR].tolist(), ("ant", "bee", "cat", "dog")),
        (NAMES[FOUR].astype(object), ("ant", "bee", "cat", "dog")),
        (NAMES[FOUR].astype(bytes), ("ant", "bee", "cat", "dog")),
        (NAMES[FOUR].astype(bytes).astype(object), ("ant", "bee", "cat", "dog")),
        ((FOUR * 7).astype(str), ("0", "14", "21", "7")),
        ((FOUR * 7).astype(object), (0, 7, 14, 21)),
        (NAMES[FOUR].astype(np.dtypes.StringDType()), ("ant", "bee", "cat", "dog")),
    ],
)
def test_labels_of_any_kind_become_classes_in_their_order(y, expected):
    stream = Stream.split(vectors(12), y, classes_per_task=2)
    labels = [label for task in stream for label in task.labels]
    assert tuple(labels) == expected
    assert {type(label) for label in labels} == {type(expected[0])}  # plain ones, which JSON and TOML can hold
    back = [None] * len(y)
    for task in stream:
        for rows in parts(task):
            for row in rows:
                back[row] = task.labels[task.y[row]]  # from the place of each sample's class to its label
    assert back == [v.decode() if isinstance(v, bytes) else v for v in np.asarray(y).tolist()]


def test_bytes_that_are_no_utf8_stay_different_classes():
    stream = Stream.split(vectors(12), np.array([b"\xfc", b"\xfd", b"\xfe", b"\xff"])[FOUR])
    assert len({label for task in stream for label in task.labels}) == 4


def test_a_data_set_may_be_the_test_part_of_another():
    pairs = [(x, int(y)) for x, y in zip(X, Y, strict=True)]
    stream = Stream.split(pairs, test=pairs[2:6])
    assert [len(part) for part in parts(stream[0])] == [8, 4]


def test_a_tensor_data_set_makes_a_stream():
    data = TensorDataset(torch.from_numpy(IMAGES.copy()), torch.from_numpy(Y))
    assert Stream.split(data).shape == (1, 8, 8)


def test_a_dark_test_part_is_welcome_beside_bright_images():
    dark = np.full((2, 8, 8), 40, np.uint8)
    assert Stream.split(IMAGES, Y, test=(dark, [0, 1]))[0].x.dtype == torch.uint8


def test_a_file_that_is_mapped_is_not_copied(tmp_path):
    np.save(tmp_path / "x.npy", images(40, 8, 8))
    x = np.load(tmp_path / "x.npy", mmap_mode="r")
    stream = Stream.split(x, np.arange(40) % 4)
    assert stream[0].x.data_ptr() == x.ctypes.data
    assert stream.to("cpu")[1].x.data_ptr() == x.ctypes.data


def test_all_parts_of_a_stream_have_the_order_of_the_first():
    frame = table()
    other = frame[COLUMNS[::-1]]
    expected = Stream.split(frame, "kind", test=frame)[0].x
    assert np.array_equal(Stream.split(frame, "kind", test=other)[0].x, expected)
    tasks = Stream.of([(frame, "kind"), (other, "kind")])
    assert np.array_equal(tasks[0].x, tasks[1].x)
    with pytest.raises(InputError, match="missing: 'age'"):
        Stream.of([(frame, "kind"), (frame.drop(columns="age"), "kind")])


def test_an_arrow_table_is_no_frame():
    pa = pytest.importorskip("pyarrow")
    x = np.random.default_rng(0).normal(size=(40, 3))
    arrow = pa.table({name: x[:, i] for i, name in enumerate("abc")})
    assert Stream.split(arrow, np.repeat([0, 1], 20)).shape == (3,)


def test_a_refusal_keeps_nothing_of_the_data_alive():
    x, gone = vectors(8), []
    with pytest.raises(InputError) as caught:
        Stream.split(x, [None] * 8)
    weakref.finalize(x, gone.append, True)
    del x, caught
    gc.collect()
    assert gone  # an error that is made once, and raised again and again, would hold every x by its traceback


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"y": None}, "give pairs"),
        ({"y": [None] * 8}, "some labels are missing"),
        ({"x": None}, "give numbers as images"),
        ({"x": X * np.nan}, "8 of 8 samples contain NaN or infinite"),
    ],
)
def test_samples_and_labels_are_checked_where_they_enter(given, said):
    with pytest.raises(InputError, match=said) as caught:
        Stream.split(**{"x": X, "y": Y} | given)
    assert "\n" not in str(caught.value)


def test_every_label_has_its_rows_and_the_source_has_an_order():
    pool = as_pool(Data(vectors(6), np.array(list("bacabc")), order=("c", "d", "a", "b")), None, None, None)
    assert {label: rows.tolist() for label, rows in pool.rows.items()} == {"a": [1, 3], "b": [0, 4], "c": [2, 5]}
    assert (pool.order, pool.held, pool.share) == (["c", "a", "b"], None, 0.2)


def test_a_given_test_part_is_held_unless_the_data_is_split_anew():
    held = as_pool(X, Y, (X[:2], Y[:2]), None).held
    assert held.tolist() == [False] * 8 + [True] * 2
    assert as_pool(Data(X, Y, tests=3), None, None, None).held.tolist() == [False] * 5 + [True] * 3
    pool = as_pool(X, Y, (X[:2], Y[:2]), 0.3)
    assert (pool.held, pool.share, len(pool.x)) == (None, 0.3, 10)


def test_a_class_must_be_in_both_parts():
    pool = as_pool(X, Y, (X[:1], Y[:1]), None)
    check_parts(pool, [0])
    with pytest.raises(InputError, match="class 1 has no sample in the test part"):
        check_parts(pool, [0, 1])


def test_missing_values_of_vectors_are_filled_if_asked():
    x = vectors(6).astype(np.float32)
    x[0, 0] = np.nan
    with pytest.raises(InputError, match="NaN"):
        as_pool(x, list("ababab"), None, None)
    pool = as_pool(x, list("ababab"), (x[:2], list("ab")), None, "median")
    middle = float(np.float32(np.nanmedian(x[:, 0])))
    assert pool.reading.medians[0] == middle == float(pool.x[0, 0]) == float(pool.x[6, 0])
    later = as_pool(x + 5, list("ababab"), None, None, known=pool.reading)
    assert float(later.x[0, 0]) == middle and later.reading.medians == pool.reading.medians
