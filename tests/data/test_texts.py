"""Texts as samples: the columns of a table, the rows of its parts, and what is no text."""

import csv

import numpy as np
import pandas
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from prer.data.columns import PYTHON
from prer.data.files import read, read_new
from prer.data.reading import Reading
from prer.data.tables import Asked
from prer.data.texts import ALL_DIFFERENT, LONGEST, Places, as_texts, is_texts, places
from prer.errors import InputError

few = settings(max_examples=60, deadline=None, database=None)
ROWS = [("pay my bill", "pay"), ("a lost card", "card"), ("where is it", "card")]
TAUGHT = Reading(text="text", label="label", inputs="texts")


@pytest.fixture
def table(tmp_path):
    """Write a CSV or Parquet table of these rows, and return its path."""

    def write(rows, names=("text", "label"), kind="csv", **form):
        path = tmp_path / f"table.{kind}"
        if kind == "csv":
            with path.open("w", encoding="utf-8", newline="") as file:
                writer = csv.writer(file, **form)
                writer.writerows([names, *rows])
        else:
            pandas.DataFrame(list(rows), columns=list(names)).to_parquet(path)
        return path

    return write


# -- what are texts ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("x", "expected"),
    [
        (["a"], True),
        (("a", "b"), True),
        (np.array(["a"]), True),
        (np.array(["a", 1.5], dtype=object), True),
        (["a", None], True),
        ([], False),
        ([None], False),
        ([1, 2], False),
        (np.array([["a"]]), False),
        (np.zeros(3), False),
        (np.zeros((2, 2)), False),
        ([("a", "b")], False),
        ([b"a"], False),
        ("a", False),
        (None, False),
    ],
)
def test_texts_are_a_sequence_of_strings(x, expected):
    assert is_texts(x) is expected


def test_texts_lose_the_spaces_around_them():
    assert as_texts([" a b \n", "\u3000c\t"]) == ["a b", "c"]
    assert as_texts(np.array(["a "])) == ["a"] and as_texts(["x" * LONGEST]) == ["x" * LONGEST]


@pytest.mark.parametrize(
    ("bad", "sentence"),
    [
        ("", "the text in row 7 is empty; fill it or drop the row"),
        (" \n\u3000", "the text in row 7 is empty"),
        (None, "the text in row 7 is empty"),
        (float("nan"), "the text in row 7 is empty"),
        (pandas.NA, "the text in row 7 is empty"),
        (3, "row 7 holds no text; write it as text, or drop the row"),
        (b"a", "row 7 holds no text"),
        (["a"], "row 7 holds no text"),
        ("x" * (LONGEST + 1), "the text in row 7 has 100,001 characters, the limit is 100,000; shorten it"),
    ],
)
def test_what_is_no_text_is_named_by_its_row(bad, sentence):
    with pytest.raises(InputError, match=sentence):
        as_texts(["a", bad], [5, 7])
    with pytest.raises(InputError, match=sentence.replace("row 7", "row 1")):
        as_texts([bad])


# -- columns -----------------------------------------------------------------------------------------------------------

KNOWN = Reading(text="body", label="kind", inputs="texts")
COLUMNS = {  # what is asked of which columns, and the places that are found
    "the usual name": (["id", "text", "label"], Asked(), Places(1, 2, None)),
    "the usual name at the end": (["label", "text"], Asked(), Places(1, 0, None)),
    "the only one besides the label": (["body", "kind"], Asked(), Places(0, 1, None)),
    "named": (["body", "reply", "kind"], Asked(text="reply"), Places(1, 2, None)),
    "a named label": (["kind", "body"], Asked("kind"), Places(1, 0, None)),
    "both named": (["kind", "id", "body"], Asked("kind", text="body"), Places(2, 0, None)),
    "a part": (["body", "kind", "split"], Asked(part="split"), Places(0, 1, 2)),
    "a part and names": (["split", "text", "id", "kind"], Asked("kind", text="id", part="split"), Places(2, 3, 0)),
    "a label in the middle": (["text", "label", "split"], Asked(), Places(0, 1, None)),
    "a label called text": (["body", "text"], Asked("text"), Places(0, 1, None)),
    "as before": (["id", "kind", "body", "text"], Asked(known=KNOWN), Places(2, 1, None)),
    "as before, without labels": (["body", "text"], Asked(known=KNOWN, learning=False), Places(0, None, None)),
    "as before, alone": (["body"], Asked(known=KNOWN, learning=False), Places(0, None, None)),
    "nothing known": (["anything"], Asked(known=Reading(), learning=False), Places(0, None, None)),
    "nothing known but the name": (["a", "text", "b"], Asked(known=Reading(), learning=False), Places(1, None, None)),
}
WRONG = {
    "several": (["a", "b", "kind"], Asked(), r"in several columns \('a', 'b'\); name it with stream.text"),
    "several, in Python": (["a", "b", "c"], Asked(ways=PYTHON), "; call it 'text', or give only that one and y"),
    "several, later": (["a", "b"], Asked(known=Reading(), learning=False), r"\('a', 'b'\); leave out the others"),
    "no label": (["text"], Asked(), "it has no column of labels; texts need a label each to be learned"),
    "no label besides": (["body"], Asked(), "it has no column of labels"),
    "only a label": (["kind"], Asked("kind"), "it has no column of texts besides the label; add it"),
    "an unknown text": (["body", "kind"], Asked(text="bdy"), "no column 'bdy', did you mean 'body'"),
    "an unknown label": (["body", "kind"], Asked("knd"), "no column 'knd', did you mean 'kind'"),
    "an unknown part": (["body", "kind"], Asked(part="x"), "no column 'x'; known: body, kind"),
    "another table": (["text", "label"], Asked(known=KNOWN), "no column 'body'"),
    "without its label": (["body", "label"], Asked(known=KNOWN), "no column 'kind'"),
    "text and label": (["a", "b"], Asked("a", text="a"), "column 'a' cannot be two of text, label and part; name diff"),
    "text and part": (["a", "b"], Asked(text="a", part="a"), "column 'a' cannot be two"),
    "label and part": (["a", "b", "c"], Asked("b", text="a", part="b"), "column 'b' cannot be two"),
    "twice": (["a", "a"], Asked(), "two columns are called 'a'"),
    "no name": (["a", ""], Asked(), "column 2 has no name"),
    "none": ([], Asked(), "it has no columns"),
}


@pytest.mark.parametrize("case", COLUMNS)
def test_the_columns_of_texts_labels_and_parts_are_found(case):
    names, asked, expected = COLUMNS[case]
    assert places(names, asked) == expected


@pytest.mark.parametrize("case", WRONG)
def test_columns_that_cannot_be_told_apart_are_refused(case):
    names, asked, sentence = WRONG[case]
    with pytest.raises(InputError, match=sentence):
        places(names, asked)


# -- tables ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_a_table_of_texts_is_read(table, kind):
    data = read(table(ROWS, kind=kind), text="")
    assert data.x.tolist() == [text for text, _ in ROWS] and data.y.tolist() == [label for _, label in ROWS]
    assert (data.reading, data.tests) == (TAUGHT, 0)
    later = read(table([("new", "card", 1)], ["text", "label", "id"], kind), known=TAUGHT)
    assert (later.x.tolist(), later.y.tolist(), later.reading) == (["new"], ["card"], TAUGHT)
    asked = read_new(table([("new",)], ["text"], kind), TAUGHT)
    assert (asked.x.tolist(), len(asked.y), asked.reading) == (["new"], 0, TAUGHT)


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_labels_may_be_numbers_and_bad_ones_do_not_matter_to_predict(table, kind):
    numbers = read(table([("a", 3), ("b", 4), ("a", 3)], kind=kind), text="")
    assert numbers.y.tolist() == [3, 4, 3] and numbers.y.dtype == np.int64
    asked = read_new(table([("a", 0.5), ("b", 1.5)], kind=kind), TAUGHT)
    assert asked.x.tolist() == ["a", "b"] and not len(asked.y)


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_a_column_tells_training_rows_from_test_rows_and_others_are_left_out(table, kind):
    parts = ["test", "train", "val", "Train ", "TESTING", "", "other", "training"]
    rows = [(f"t{i}", "ab"[i % 2], part) for i, part in enumerate(parts)]
    data = read(table(rows, ["text", "label", "split"], kind), text="text", part="split")
    assert data.x.tolist() == ["t1", "t3", "t7", "t0", "t4"] and data.tests == 2
    assert data.y.tolist() == ["b", "b", "b", "a", "a"]


def test_the_rows_of_errors_are_those_of_the_file(table):
    names, rows = ["text", "label", "split"], [("a", "x", "test"), ("b", "", "val"), ("c", "y", "train")]
    assert len(read(table(rows, names), text="", part="split").x) == 2  # what is left out may be bad
    for bad, sentence in {
        ("", "y", "train"): "table.csv: the text in row 4 is empty; fill it or drop the row",
        ("d", " ", "test"): "table.csv: row 4 has no label; drop the row or label it",
        ("d", "NaN", "train"): "row 4 has no label",
        ("x" * (LONGEST + 1), "y", "test"): "the text in row 4 has 100,001 characters",
    }.items():
        with pytest.raises(InputError, match=sentence):
            read(table([*rows, bad], names), text="", part="split")
    with pytest.raises(InputError, match="it has no row with 'train' in column 'split'; give one row for each sample"):
        read(table(rows[:1], names), text="", part="split")
    with pytest.raises(InputError, match="it has no row; give one row for each sample"):
        read(table([]), text="")


@pytest.mark.parametrize("missing", [None, float("nan")])
def test_missing_values_of_parquet_are_named_by_their_row(table, missing):
    with pytest.raises(InputError, match="the text in row 2 is empty"):
        read(table([("a", "x"), (missing, "y")], kind="parquet"), text="")
    with pytest.raises(InputError, match="row 2 has no label"):
        read(table([("a", "x"), ("b", missing)], kind="parquet"), text="")
    with pytest.raises(InputError, match="row 1 holds no text"):
        read(table([(1.5, "x"), (2.5, "y")], kind="parquet"), text="")


def test_a_guess_that_takes_the_texts_for_labels_is_refused(table):
    sentence = "the last column '{}' would be the label, but it holds {} different values in {} rows; name the label"
    with pytest.raises(InputError, match=sentence.format("body", 3, 3)):
        read(table([("x", "a b"), ("y", "c d"), ("y", "e f")], ["kind", "body"]), text="")
    rows = [(f"text {i}", "ab"[i % 2], i) for i in range(ALL_DIFFERENT)]
    with pytest.raises(InputError, match=sentence.format("id", 10, 10)):
        read(table(rows, ["text", "kind", "id"]), text="")
    assert set(read(table(rows, ["text", "kind", "id"]), text="", label="kind").y) == {"a", "b"}
    assert read(table(rows, ["text", "kind", "id"]), text="", label="id").y.tolist() == list(range(10))  # if it is said
    parts = [(f"text {i}", "kind", ("train", "Test")[i % 2]) for i in range(6)]
    with pytest.raises(
        InputError, match="the last column 'split' would be the label, but it says which rows are for te"
    ):
        read(table(parts, ["text", "kind", "split"]), text="")
    assert len(read(table(parts, ["text", "kind", "split"]), text="", part="split").x) == 6
    one_each = [(f"text {i}", i) for i in range(ALL_DIFFERENT - 1)]
    assert read(table(one_each), text="").y.tolist() == list(range(9))


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_a_table_may_have_any_separator_and_a_mark_of_its_encoding(tmp_path, delimiter, mark):
    path = tmp_path / "t.csv"
    line = f'"one, two; three\t""four"""{delimiter}pay'
    path.write_text(f"{mark}text{delimiter}label\n{line}\n\n{line}\n", "utf-8")
    data = read(path, text="")
    assert data.x.tolist() == ['one, two; three\t"four"'] * 2 and data.y.tolist() == ["pay"] * 2


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ("text,label\nhello, you,pay\n", "row 1 has 3 values, but the header has 2; fix the row"),
        ('text,label\n"hello,pay\nmore,card\n', "row 1 has 1 values, but the header has 2"),
        ("text,label\nh\xe9,pay\n".encode("latin-1"), "it is not UTF-8 text"),
        ("text,label\na\0b,pay\n", "texts are read from a table, and this is not one; give CSV or Parquet"),
        ("text,label\n" + "a,pay\n" * 200 + "a\0b,pay\n", "line 202 contains a NUL byte"),
        (f"text,label\n{'x' * 200_000},pay\n", "it cannot be read as CSV: field larger than field limit"),
        ("hello\n", "it has no column of labels"),
    ],
)
def test_a_file_that_is_no_such_table_is_refused(tmp_path, content, sentence):
    path = tmp_path / "t.csv"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(InputError, match=rf"t\.csv: .*{sentence}"):
        read(path, text="")


def test_a_model_of_texts_is_asked_with_a_table(tmp_path):
    np.save(tmp_path / "x.npy", np.zeros((3, 8)))
    (tmp_path / "photos").mkdir()
    for name in ("x.npy", "photos"):
        with pytest.raises(InputError, match=f"{name}: texts are read from a table, and this is not one"):
            read_new(tmp_path / name, TAUGHT)
        with pytest.raises(InputError, match=f"{name}: texts are read from a table, and this is not one"):
            read(tmp_path / name, known=TAUGHT)


# -- any text ----------------------------------------------------------------------------------------------------------

ANY = st.text(st.characters(codec="utf-8", exclude_categories=["Cc"]), min_size=1, max_size=40).filter(str.strip)
AWKWARD = st.text(st.sampled_from(",;\t\"'\r\n\v\f \\aé\u3000\u2028\ufeff"), min_size=1, max_size=12).filter(str.strip)
LABELS = st.sampled_from(["a", "b b", "c,d", 'e"f', "ü"])


@few
@given(
    st.lists(st.tuples(ANY | AWKWARD, LABELS), min_size=1, max_size=12),
    st.sampled_from([",", ";", "\t"]),
    st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_ALL]),
    st.sampled_from(["\r\n", "\n"]),
)
def test_every_text_that_a_csv_writer_writes_is_read_back(tmp_path_factory, rows, delimiter, quoting, end):
    bare = end == "\n" and quoting == csv.QUOTE_MINIMAL  # Python before 3.13 then leaves \r unquoted, which ends a row
    assume(not (bare and any("\r" in text for text, _ in rows)))
    path = tmp_path_factory.mktemp("texts") / "table.csv"
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, delimiter=delimiter, quoting=quoting, lineterminator=end)
        writer.writerows([("text", "label"), *rows])
    data = read(path, text="text", label="label")
    assert data.x.tolist() == [text.strip() for text, _ in rows]
    assert data.y.tolist() == [label for _, label in rows]
    frame = pandas.read_csv(path, sep=delimiter, keep_default_na=False, dtype=str)  # another reader
    expected = [text.replace("\r\n", "\n").replace("\r", "\n").strip() for text in frame["text"]]
    assert [text.replace("\r\n", "\n").replace("\r", "\n") for text in data.x] == expected


@few
@given(st.lists(st.sampled_from(["a", "b c", "", " ", "\n"]), min_size=1, max_size=8))
def test_the_first_empty_text_is_named(tmp_path_factory, rows):
    path = tmp_path_factory.mktemp("texts") / "table.csv"
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file, quoting=csv.QUOTE_ALL).writerows([("text", "label"), *((text, "x") for text in rows)])
    empty = next((row for row, text in enumerate(rows, 1) if not text.strip()), None)
    if empty is None:
        assert read(path, text="", label="label").x.tolist() == rows
    else:
        with pytest.raises(InputError, match=rf"the text in row {empty} is empty"):
            read(path, text="", label="label")


@few
@given(st.lists(st.tuples(ANY | AWKWARD, LABELS), min_size=1, max_size=12))
def test_every_text_in_parquet_is_read_back(tmp_path_factory, rows):
    path = tmp_path_factory.mktemp("texts") / "table.parquet"
    pandas.DataFrame(rows, columns=["text", "label"]).to_parquet(path)
    data = read(path, text="", label="label")
    assert data.x.tolist() == [text.strip() for text, _ in rows] and data.y.tolist() == [label for _, label in rows]
