"""The columns of a table: names, the label, and the errors that name a value by row and column."""

import pytest

from prer.data.columns import (
    FILES,
    NEITHER,
    PYTHON,
    Ways,
    as_text,
    check_header,
    check_names,
    find_column,
    is_number,
    label_column,
    no_number,
    number_of,
)
from prer.errors import InputError


def test_the_label_is_the_column_that_is_named_or_the_last():
    assert label_column(["a", "b", "c"], "a") == 0
    assert label_column(["a", "b", "c"], "") == 2
    assert find_column(("a", "b"), "") == 1


@pytest.mark.parametrize(
    ("names", "label", "said"),
    [
        ([], "", "^it has no columns; give a table with a header"),
        (["a", "", "c"], "", "^column 2 has no name; name it"),
        (["a", "b\ud800", "c"], "", "^the name of column 2 is not valid Unicode; rename it"),
        (["a", "b", "a"], "", "^two columns are called 'a'"),
        (["a"], "", "^it has only one column; a table needs features and a label"),
        (["1.5", "2", "x"], "", "^its first line contains numbers"),
        (["a", "b"], "c", "^no column 'c'; known: a, b$"),
        (["height", "label"], "lable", r"^no column 'lable', did you mean 'label'\?$"),
    ],
)
def test_names_that_will_not_do_are_refused(names, label, said):
    with pytest.raises(InputError, match=said):
        label_column(names, label)


@pytest.mark.parametrize("names", [["a", "b"], ["0", "1", "2"], ["0", "1", "label"], ["a", "b", "3"]])
def test_headers(names):
    check_names(names)
    check_header(names)


@pytest.mark.parametrize("names", [["1", "2", "3"], ["0.5", "1"], ["-1", "label"]])
def test_numbers_are_no_header(names):
    with pytest.raises(InputError, match="add a header with the names of the columns"):
        check_header(names)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        *((text, True) for text in ("1", "-2.5", "1e3", " 7 ", "3.4e38")),
        *((text, False) for text in ("", "x", "1_000", "1,5", "nan", "inf", "3.5e38")),
    ],
)
def test_numbers_that_32_bits_can_hold(text, expected):
    assert is_number(text) is expected


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (None, "row 3, column 'a': a value is missing; fill it or drop the row"),
        (" NaN ", "row 3, column 'a': a value is missing; fill it or drop the row"),
        ("1e39", "row 3, column 'a': 1e39 does not fit into a 32-bit float; rescale the column"),
        ("paris", "row 3, column 'a' holds text ('paris'); encode it as numbers, or name the label column with y"),
        ([1], "row 3, column 'a' holds list ('[1]'); encode it as numbers, or name the label column with y"),
    ],
)
def test_a_value_that_is_no_number_is_named_by_row_and_column(value, said):
    assert str(no_number(value, 3, "a", Ways(label="y"))) == said


def test_nothing_is_said_of_the_label_where_there_is_none():
    assert str(no_number("paris", 1, 0, NEITHER)) == "row 1, column '0' holds text ('paris'); encode it as numbers"


@pytest.mark.parametrize(
    ("ways", "said"),
    [
        (FILES, "fill it, drop the row, or set stream.missing=median"),
        (PYTHON, "fill it, drop the row, or set missing='median'"),
        (NEITHER, "fill it or drop the row"),
    ],
)
@pytest.mark.parametrize("value", [None, "", "NA", "n/a", "Null", "none", " nan "])
def test_the_way_out_of_a_missing_value_is_said(value, ways, said):
    assert str(no_number(value, 1, "a", ways)) == f"row 1, column 'a': a value is missing; {said}"


def test_a_text_is_a_number_missing_or_neither():
    assert [number_of(text) for text in ("1", " -2.5 ", "01234", "1e999")] == [1, -2.5, 1234, float("inf")]
    assert all(number_of(text) != number_of(text) for text in ("", " ", "NaN", "-nan", "NA", "N/A", "null", "None"))
    assert [number_of(text) for text in ("x", "1_0", "1,5", "?", "-")] == [None] * 5


def test_texts_become_valid_unicode():
    assert (as_text("a"), as_text("\u00e9"), as_text("a\udcff")) == ("a", "\u00e9", "a\\udcff")
