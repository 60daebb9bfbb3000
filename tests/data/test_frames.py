"""What data frames give: columns by name, and the errors that name them."""

import numpy as np
import pandas
import pytest
from support.data_files import same

from prer.data.frames import features_of
from prer.data.reading import Reading
from prer.data.rows import as_data
from prer.errors import InputError

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


def test_the_columns_of_a_frame_may_be_numbers():
    frame = pandas.DataFrame(np.zeros((2, 3)), columns=range(1, 4))
    assert features_of(frame, Reading(shape=(3,))).shape == (2, 3)


BAD = {
    "a frame with a hole": ((FRAME.assign(a=[1, None, 3]), "kind"), "column 'a': a value is missing"),
    "a frame with a typo": ((FRAME.assign(a=[1, "two", 3]), "kind"), r"row 2, column 'a' holds text \('two'\)"),
    "a frame with a typo in numerals": ((FRAME.assign(a=["1", "2", "3?"]), "kind"), r"row 3, column 'a' holds text"),
    "a frame with decimal commas": ((FRAME.assign(a=["1,5", "2,5", "3"]), "kind"), r"row 1, column 'a' holds text"),
    "a frame with bytes": ((FRAME.assign(a=[b"x", b"y", b"z"]), "kind"), "row 1, column 'a' holds bytes"),
    "a frame with lists": ((FRAME.assign(a=[1, [2], 3]), "kind"), "row 2, column 'a' holds list"),
    "a frame with complex numbers": ((FRAME.assign(a=[1j, 2, 3]), "kind"), "row 1, column 'a' holds complex"),
    "a frame with a missing date": ((FRAME.assign(a=pandas.to_datetime(["2020-01-01", None, None])), "kind"), "row 2"),
    "a frame with an infinite number": (
        (FRAME.assign(a=[1, 2, np.inf]), "kind"),
        "row 3, column 'a': inf does not fit",
    ),
    "a frame with a label that is unclear": (
        (FRAME,),
        "column 'kind' holds text, and the last column 'last' numbers; name .* with y='kind' or y='last'",
    ),
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
    "a frame with two features of one name": (
        (pandas.concat([FRAME[["a", "a"]], FRAME[["b"]]], axis=1),),
        "two columns are called 'a'",
    ),
    "a frame without rows": ((FRAME[:0], "kind"), "shape"),
    "a frame of one column": ((FRAME[["last"]],), "shape"),
    "a frame without columns": ((FRAME[[]],), "column|shape"),
    "a frame with an unknown label": ((FRAME, "kin"), "no column 'kin', did you mean 'kind'"),
    "a frame with two labels": ((pandas.concat([FRAME[["b"]]] * 2, axis=1), "b"), "two columns are called 'b'"),
    "labels of another length": ((FRAME[["a", "b"]], [1, 2]), "3 samples and y has 2 labels"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_frames_are_refused_in_one_sentence(case):
    given, said = BAD[case]
    with pytest.raises(InputError, match=said) as caught:
        as_data(*given)
    assert str(caught.value).isprintable()
    assert len(str(caught.value)) < 200


FRACTIONS = r"column 'price' holds fractions \(0.0005 in row 2\); .*, or name another column with y="


def test_an_error_says_how_to_name_another_column():
    with pytest.raises(InputError, match=FRACTIONS):
        as_data(pandas.DataFrame({"a": [1.0, 2, 3], "price": [1, 0.0005, 3.25]}))
    with pytest.raises(InputError, match=r"101 different texts, .*; drop the column, or name the label column with y="):
        as_data(pandas.DataFrame({"a": map(str, range(101)), "label": "x"}).assign(a=[f"t{i}" for i in range(101)]))
