"""Texts and missing values of tables, compared with what pandas makes of them, in every form that a table may have."""

import json
import re
import warnings

import numpy as np
import pandas
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from prer.data import tables
from prer.data.columns import FILES, NEITHER
from prer.data.files import read, read_new
from prer.data.frames import features_of, of_frame
from prer.data.reading import Reading
from prer.data.tables import Asked, Labels, Table, Words, as_floats, as_words, is_missing, of_table, texts_of
from prer.errors import InputError

few = settings(max_examples=40, deadline=None, database=None)
CITIES = pandas.DataFrame(
    {
        "age": [20.0, None, 40, 30],
        "city": ["Rome", "Oslo", None, "Rome"],
        "zip": ["A1", "B2", "01", "A1"],
        "kind": ["x", "y", "x", "y"],
    }
)
ENCODED = [[20, 0, 1, 0, 1, 0], [30, 1, 0, 0, 0, 1], [40, 0, 0, 1, 0, 0], [30, 0, 1, 0, 1, 0]]
NAMES = ("age", "city=Oslo", "city=Rome", "zip=01", "zip=A1", "zip=B2")
WRITERS = {"csv": lambda f, p: f.to_csv(p, index=False), "parquet": lambda f, p: f.to_parquet(p)}
FORMS = ["frame", *WRITERS]


def loaded(form, frame, folder, *, label="kind", **options):
    """A table in one of its forms, read to learn."""
    if form == "frame":
        return of_frame(frame, label or None, **options)
    WRITERS[form](frame, folder / f"table.{form}")
    return read(folder / f"table.{form}", label=label, **options)


def features(form, frame, folder, known):
    """The features of a table in one of its forms, read to predict."""
    if form == "frame":
        return features_of(frame, known)
    WRITERS[form](frame, folder / f"new.{form}")
    return read_new(folder / f"new.{form}", known).x


def same(one, two):
    return np.array_equal(one.x, two.x) and one.y.tolist() == two.y.tolist() and one.reading == two.reading


def expected(frame):
    """The features as pandas makes them: dummies in place of texts, medians in place of missing numbers."""
    parts = []
    for name in frame:
        number = frame[name].dtype.kind in "biuf"
        filled = frame[[name]].astype(float).fillna(frame[name].astype(float).median()) if number else None
        parts.append(pandas.get_dummies(frame[name]) if filled is None else filled)
    return np.concatenate([part.to_numpy(np.float32) for part in parts], axis=1)


# -- the first table ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", FORMS)
def test_texts_become_categories_and_missing_numbers_the_median(tmp_path, form):
    data = loaded(form, CITIES, tmp_path, missing="median")
    assert data.x.dtype == np.float32 and data.x.tolist() == ENCODED and data.y.tolist() == list("xyxy")
    assert data.reading.features == NAMES and data.reading.medians == (30, 0, 0)
    assert Reading.of(json.loads(json.dumps(data.reading.to_json())), [6]).features == NAMES


characters = st.characters(codec="utf-8", exclude_categories=("C", "Z"), exclude_characters=";")
texts = st.text(characters, min_size=1, max_size=4).filter(
    lambda text: tables.number_of(re.sub("[,_]", "", text)) is None and text.lower() not in ("true", "false")
)
numbers = st.floats(-1e6, 1e6, width=32)


@st.composite
def frames(draw):
    """Tables of numbers and texts, with missing values, and a label called \\0."""
    n = draw(st.integers(2, 12))
    columns = {}
    for i in range(draw(st.integers(1, 5))):
        values = draw(st.sampled_from([numbers, st.sampled_from(draw(st.lists(texts, min_size=1, max_size=4)))]))
        column = draw(st.lists(st.one_of(values, values, st.none()), min_size=n, max_size=n))
        assume(any(value is not None for value in column))
        columns[f"c{draw(texts)}{i}"] = column
    labels = draw(st.lists(st.sampled_from(["p", "q"]), min_size=n, max_size=n))
    return pandas.DataFrame(columns), labels


@few
@given(frames(), st.randoms())
def test_all_forms_of_a_table_are_encoded_as_pandas_does(tmp_path_factory, table, random):
    frame, labels = table
    folder = tmp_path_factory.mktemp("table")
    whole = frame.assign(kind=labels)
    data = {form: loaded(form, whole, folder, missing="median") for form in FORMS}
    assert np.array_equal(data["frame"].x, expected(frame))
    assert data["frame"].reading.widths == tuple(1 if frame[c].dtype.kind == "f" else frame[c].nunique() for c in frame)
    assert same(data["frame"], data["csv"]) and same(data["frame"], data["parquet"])

    known = Reading.of(data["csv"].reading.to_json(), [len(data["csv"].reading.features)])
    names = list(whole)
    random.shuffle(names)
    some = whole[names].iloc[random.randrange(len(whole)) :]
    for form in FORMS:
        again = loaded(form, some, folder, label="", known=known)
        assert np.array_equal(again.x, data["csv"].x[-len(some) :]) and again.y.tolist() == labels[-len(some) :]
        assert again.reading == known
        assert np.array_equal(features(form, some.drop(columns="kind"), folder, known), again.x)


DTYPES = {
    "object": lambda f: f.astype({"city": object, "zip": object}),
    "string": lambda f: f.astype({"city": "string", "zip": "string"}),
    "category": lambda f: f.astype({"city": "category", "zip": "category", "kind": "category"}),
    "unused categories": lambda f: f.assign(city=pandas.Categorical(f["city"], ["Rome", "Paris", "Oslo"])),
    "pandas' missing value": lambda f: f.assign(city=f["city"].astype(object).fillna(pandas.NA)),
    "nullable numbers": lambda f: f.astype({"age": "Int64"}),
    "numbers as objects": lambda f: f.assign(age=[20, pandas.NA, 40.0, np.float32(30)]),
    "numbers as texts": lambda f: f.assign(age=["20", " NA", "4e1", "30.0 "]),
    "spaces": lambda f: f.assign(city=[" Rome", "Oslo\t", "", "Rome"]),
}


@pytest.mark.parametrize("kind", DTYPES)
def test_any_type_of_pandas_holds_the_same_texts(tmp_path, kind):
    frame = DTYPES[kind](CITIES)
    data = of_frame(frame, "kind", missing="median")
    assert data.x.tolist() == ENCODED and data.reading.features == NAMES
    if kind not in ("numbers as objects", "pandas' missing value"):  # pyarrow refuses mixed objects
        assert same(loaded("parquet", frame, tmp_path, missing="median"), data)
    assert same(loaded("csv", frame, tmp_path, missing="median"), data)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("values", [[True, False, True], [True, None, True]])
def test_truth_values_are_numbers_in_every_form(tmp_path, form, values):
    frame = pandas.DataFrame({"a": values, "kind": list("xyx")})
    data = loaded(form, frame, tmp_path, missing="median")
    assert data.x[:, 0].tolist() == [float(value is not False) for value in values]
    assert data.reading == Reading(columns=("a",), label="kind", missing="median", medians=(1.0,))
    later = loaded(form, frame[:1], tmp_path, label="", known=data.reading)  # of one value only
    assert later.x.tolist() == [[1]]


def test_true_and_false_among_other_texts_are_texts(tmp_path):
    frame = pandas.DataFrame({"a": ["True", "False", "maybe"], "kind": list("xyx")})
    data = loaded("csv", frame, tmp_path)
    assert data.reading.categories == (("False", "True", "maybe"),)
    assert features_of(pandas.DataFrame({"a": [True, False]}), data.reading).tolist() == [[0, 1, 0], [1, 0, 0]]


@pytest.mark.parametrize("form", FORMS)
def test_half_of_the_values_decide_what_a_column_is(tmp_path, form):
    mixed = pandas.DataFrame({"a": ["1", "x", "2", "y", None], "kind": list("pqpqp")})
    with pytest.raises(InputError, match=r"row 2, column 'a' holds text \('x'\)"):
        loaded(form, mixed, tmp_path, missing="median")
    data = loaded(form, mixed[1:], tmp_path, missing="median")
    assert data.reading.categories == (("2", "x", "y"),)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("column", ["age", "city"])
def test_a_missing_value_is_an_error_that_says_the_way_out(tmp_path, form, column):
    frame = CITIES[[column, "zip", "kind"]]
    way = "missing='median'" if form == "frame" else "stream.missing=median"
    row = int(frame[column].isna().argmax()) + 1
    with pytest.raises(InputError, match=f"row {row}, column '{column}': a value is missing; .* or set {way}$"):
        loaded(form, frame, tmp_path)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("hole", [None, "", "nan"])
def test_a_column_without_a_value_is_an_error(tmp_path, form, hole):
    frame = CITIES.assign(age=[hole] * 4)
    with pytest.raises(InputError, match=r"column 'age' has no value; drop it$"):
        loaded(form, frame, tmp_path, missing="median")


@pytest.mark.parametrize("form", FORMS)
def test_an_infinite_value_is_an_error_even_where_missing_ones_are_filled(tmp_path, form):
    with pytest.raises(InputError, match="row 4, column 'age': inf does not fit"):
        loaded(form, CITIES.assign(age=[1, None, 2, np.inf]), tmp_path, missing="median")


@pytest.mark.parametrize("form", FORMS)
def test_a_column_has_a_limited_number_of_texts(tmp_path, form):
    frame = pandas.DataFrame({"id": [f"t{i:03}" for i in range(101)] * 2, "kind": ["x"] * 202})
    said = "column 'id' holds 101 different texts, more than the limit of 100; drop the column, or name the label"
    with pytest.raises(InputError, match=said):
        loaded(form, frame, tmp_path)
    known = frame[frame.id != "t000"].reset_index(drop=True)
    assert loaded(form, known, tmp_path).x.tolist() == np.eye(100).tolist() * 2
    with pytest.raises(InputError, match="holds a text of 1001 characters, more than the limit of 1000; drop"):
        loaded(form, frame[:1].assign(id="x" * 1001), tmp_path)


@pytest.mark.parametrize("form", FORMS)
def test_texts_that_almost_all_differ_are_no_categories(tmp_path, form):
    frame = pandas.DataFrame({"note": [f"t{i}" for i in range(20)], "kind": ["x", "y"] * 10})
    for different in (20, 19):
        frame.loc[different:, "note"] = "t0"
        said = f"column 'note' holds {different} different texts, one for almost each of its 20 rows; drop the column"
        with pytest.raises(InputError, match=f"{said}, .* or classify its texts"):
            loaded(form, frame, tmp_path)
    frame.loc[18:, "note"] = "t0"
    assert loaded(form, frame, tmp_path).x.shape == (20, 18)
    assert loaded(form, frame[:9], tmp_path).x.shape == (9, 9)  # too few to tell


def test_encoded_texts_must_fit_into_memory(tmp_path, monkeypatch):
    monkeypatch.setattr(tables, "room", lambda: 90)
    with pytest.raises(InputError, match=r"table\.csv: with its texts encoded it has 6 features, too many for the mem"):
        loaded("csv", CITIES, tmp_path, missing="median")


# -- the label ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("last", [[1, 2, 1], [1.5, 2.5, 3], ["1", "2", "3"]])
def test_a_label_that_is_probably_another_column_must_be_named(tmp_path, form, last):
    frame = pandas.DataFrame({"city": ["a", "b", "c"], "kind": ["x", "y", "x"], "n": [1, 2, 3], "last": last})
    said = "column 'kind' holds text, and the last column 'last' numbers; name the label column with "
    ways = ("y='{}'" if form == "frame" else "stream.label={}").format
    with pytest.raises(InputError, match=f"{said}{ways('kind')} or {ways('last')}$"):
        loaded(form, frame, tmp_path, label="")
    assert loaded(form, frame, tmp_path).x.shape == (3, 5)
    if last == [1, 2, 1]:
        assert loaded(form, frame, tmp_path, label="last").y.tolist() == last


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("last", [["p", "q", "p"], ["1", "2", "x"], [True, False, True]])
def test_a_last_column_with_names_is_the_label(tmp_path, form, last):
    frame = pandas.DataFrame({"city": ["a", "b", "c"], "last": last})
    data = loaded(form, frame, tmp_path, label="")
    assert data.reading.label == "last" and data.reading.features == ("city=a", "city=b", "city=c")


def test_labels_beside_a_frame_leave_no_doubt():
    data = of_frame(CITIES.drop(columns="kind"), [0, 1, 0, 1], missing="median")
    assert data.x.tolist() == ENCODED and data.y.tolist() == [0, 1, 0, 1] and data.reading.label == ""


# -- later tables ------------------------------------------------------------------------------------------------------


@pytest.fixture
def known():
    return of_frame(CITIES, "kind", missing="median").reading


@pytest.mark.parametrize("form", FORMS)
def test_an_unknown_text_is_told_once_and_counts_as_none(tmp_path, form, known):
    new = pandas.DataFrame({"zip": ["A1", "C3", "01"], "city": ["Bern", "Paris", "Bern"], "age": [1.0, 2, None]})
    with pytest.warns(UserWarning) as told:
        x = features(form, new, tmp_path, known)
    assert x.tolist() == [[1, 0, 0, 0, 1, 0], [2, 0, 0, 0, 0, 0], [30, 0, 0, 1, 0, 0]]
    (said,) = (str(warning.message) for warning in told)
    assert said == (
        "column 'city' holds unknown texts ('Bern', 'Paris'); column 'zip' holds unknown texts ('C3'): "
        "each counts as none of the known categories"
    )


def test_few_unknown_texts_and_columns_are_told():
    frame = pandas.DataFrame({name: ["x", "y"] for name in "abcdefg"})
    known = of_frame(frame, ["p", "q"]).reading
    new = frame.assign(**{name: ["x\x1b", "z" * 99] for name in "abcdefg"})
    with pytest.warns(UserWarning, match=r"column 'e' holds .*; so do 2 more columns: each counts") as told:
        features_of(new, known)
    assert "'x\\\\x1b'" in str(told[0].message) and "z" * 40 not in str(told[0].message)


@pytest.mark.parametrize("form", FORMS)
def test_a_column_of_texts_stays_text(tmp_path, form):
    first = pandas.DataFrame({"zip": ["01234", "A5", "7", "A5", "A5"], "kind": list("xyxyx")})
    known = loaded(form, first, tmp_path).reading
    x = features(form, pandas.DataFrame({"zip": ["01234", "7"]}), tmp_path, known)
    assert x.tolist() == [[1, 0, 0], [0, 1, 0]]
    for numbers in ([7, 7], [7.0, 7.0]):  # as pandas reads them
        assert features_of(pandas.DataFrame({"zip": numbers}), known).tolist() == [[0, 1, 0]] * 2


def test_dates_in_a_column_of_texts_are_refused():
    known = of_frame(pandas.DataFrame({"a": ["x", "y"]}), ["p", "q"]).reading
    with pytest.raises(InputError, match="row 1, column 'a' holds datetime64"):
        features_of(pandas.DataFrame({"a": pandas.to_datetime(["2020-01-01"] * 2)}), known)


@pytest.mark.parametrize("form", FORMS)
def test_a_column_of_numbers_stays_one(tmp_path, form, known):
    with pytest.raises(InputError, match=r"row 2, column 'age' holds text \('old'\); encode it as numbers$"):
        features(form, CITIES.assign(age=["1", "old", "older", "old"]), tmp_path, known)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("column", ["age", "city"])
def test_a_later_missing_value_is_an_error_if_the_first_one_would_have_been(tmp_path, form, column):
    known = loaded(form, CITIES.dropna(), tmp_path).reading
    said = f"row {2 if column == 'age' else 3}, column '{column}': a value is missing; fill it or drop the row$"
    frame = CITIES.ffill().assign(**{column: CITIES[column]})
    with pytest.raises(InputError, match=said):
        features(form, frame, tmp_path, known)


@pytest.mark.parametrize("form", FORMS)
def test_a_later_column_may_have_no_value(tmp_path, form, known):
    frame = CITIES.assign(age=[None] * 4, city=[None] * 4)
    assert features(form, frame, tmp_path, known)[:, :3].tolist() == [[30, 0, 0]] * 4


@pytest.mark.parametrize("form", FORMS)
def test_more_to_learn_needs_labels(tmp_path, form, known):
    more = CITIES[["zip", "kind", "age", "city"]]
    data = loaded(form, more, tmp_path, label="", known=known)
    assert data.x.tolist() == ENCODED and data.y.tolist() == list("xyxy") and data.reading == known
    with pytest.raises(InputError, match="it has no label column 'kind'; add it, since labels are needed to learn"):
        loaded(form, more.drop(columns="kind"), tmp_path, label="", known=known)
    with pytest.raises(InputError, match=r"labels? .*missing|has no label; drop the row"):
        loaded(form, more.assign(kind=["x", None, "y", "x"]), tmp_path, label="", known=known)
    with pytest.raises(InputError, match=r"the columns differ .*\(missing: 'zip'; unknown: 'ZIP'\); add"):
        loaded(form, more.rename(columns={"zip": "ZIP"}), tmp_path, label="", known=known)


@pytest.mark.parametrize("form", FORMS)
def test_the_label_of_later_data_can_be_named_where_the_first_had_none(tmp_path, form):
    known = of_frame(CITIES.drop(columns="kind"), list("xyxy"), missing="median").reading
    data = loaded(form, CITIES, tmp_path, known=known)
    assert data.x.tolist() == ENCODED and data.y.tolist() == list("xyxy")
    way = "y='...'" if form == "frame" else "stream.label"
    with pytest.raises(InputError, match=f"it has no labels; name the label column with {way}, since"):
        loaded(form, CITIES.drop(columns="kind"), tmp_path, label="", known=known)


@pytest.mark.parametrize("form", FORMS)
def test_a_table_for_a_model_of_arrays_is_read_by_position(tmp_path, form):
    known = Reading(shape=(2,), missing="median", medians=(5.0, 6.0))
    frame = pandas.DataFrame({"a": [1, None], "b": [None, 2.0], "kind": list("xy")})
    assert loaded(form, frame, tmp_path, label="", known=known).x.tolist() == [[1, 6], [5, 2]]
    assert features(form, frame[["a", "b"]], tmp_path, known).tolist() == [[1, 6], [5, 2]]


# -- names and texts of hostile tables ---------------------------------------------------------------------------------


@pytest.mark.parametrize("form", FORMS)
def test_names_and_texts_may_look_like_each_other(tmp_path, form):
    frame = pandas.DataFrame({"a": ["b=c", "x", "x"], "a=b": ["c", "y", "c"], "{}": ["{0}", "%s", "</b>"], "kind": 1})
    data = loaded(form, frame, tmp_path)
    assert data.reading.features[:4] == ("a=b=c", "a=x", "a=b=c", "a=b=y")
    assert data.x[:, :4].tolist() == [[1, 0, 1, 0], [0, 1, 0, 1], [0, 1, 1, 0]] and data.x.shape == (3, 7)
    with pytest.raises(InputError, match=r"or stream\.label=kind|or y='kind'") as caught:
        loaded(form, frame.rename(columns={"{}": "\x1b[31m{0}" if form != "csv" else "{0}"}), tmp_path, label="")
    assert str(caught.value).isprintable()


def test_lone_surrogates_in_texts_do_not_reach_a_model_file():
    frame = pandas.DataFrame({"a": ["x\ud800", "y"]}, dtype=object)
    known = of_frame(frame, ["p", "q"]).reading
    assert known.categories == (("x\\ud800", "y"),)
    assert Reading.of(json.loads(json.dumps(known.to_json())), [2]).categories == known.categories
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert features_of(frame, known).tolist() == [[1, 0], [0, 1]]


def test_a_csv_is_read_again_where_a_column_turns_out_late_to_be_text(tmp_path, monkeypatch):
    monkeypatch.setattr("prer.data.formats.csvs.ROWS_READ", 2)
    column = ["01", "2", "", "x", "01", "y", "z", "z"]
    (tmp_path / "a.csv").write_text("a,b,kind\n" + "".join(f"{v},{i},k{i % 2}\n" for i, v in enumerate(column)))
    data = read(tmp_path / "a.csv", missing="median")
    assert data.reading.categories == (("01", "2", "x", "y", "z"), ())
    assert data.x[:, :5].argmax(1).tolist() == [0, 1, 0, 2, 0, 3, 4, 4] and data.x[2, :5].tolist() == [0] * 5
    assert data.x[:, 5].tolist() == list(range(8)) and data.y.tolist() == ["k0", "k1"] * 4


# -- parts -------------------------------------------------------------------------------------------------------------


def words(*texts):
    made = Words()
    made.add(texts[:2])
    made.add(texts[2:])
    return made


def test_equal_words_are_stored_once():
    made = words("x", "1", "x", "", "1")
    assert (made.texts, made.codes.tolist()) == (["x", "1", ""], [0, 1, 0, 2, 1])
    assert made.row(np.array([False, True, False])) == 2 and made.row(np.array([False, False, True])) == 4
    assert made.values()[:2] == [None, 1] and np.isnan(made.values()[2])
    assert not made.is_text() and words("x", "1", "y").is_text()


def test_words_of_truth_have_values_only_among_themselves():
    assert words("TRUE", "false", "True").values() == [1, 0, 1]
    assert words("True", "1").values() == [None, 1] and words("True", "x").values() == [None, None]


def test_labels_that_are_none_are_no_error_where_a_model_predicts():
    def missing():
        raise InputError("some labels are missing")

    table = lambda: Table(["a"], np.zeros((2, 1), np.float32), {})  # noqa: E731
    predicting = Asked(known=Reading(columns=("a",), shape=(1,)), learning=False)
    for name in ("kind", ""):
        assert of_table(table(), Labels(name, set, missing), predicting).y.tolist() == []
    for asked in (Asked(), predicting._replace(learning=True)):
        with pytest.raises(InputError, match="missing"):
            of_table(table(), Labels("kind", set, missing), asked)


def test_what_is_asked_of_a_table():
    known = Reading(columns=("a", "b"), label="kind", categories=((), ("x",)), shape=(2,))
    assert Asked(known=known).texts == {"b"} and Asked().texts == set()
    assert (Asked(known=known).by, Asked().by) == (NEITHER, FILES)
    assert Asked("b").place(["a", "b", "c"]) == 1 and Asked().place(["a", "b"]) == 1
    assert Asked(known=known).place(["b", "kind", "a"]) == 1
    assert Asked(known=known, learning=False).place(["b", "a"]) is None
    assert Asked("type", known=known).reading.label == "type"


def test_values_become_words_or_floats():
    values = ["x ", None, pandas.NA, float("nan"), 7.0, 7.5, True, np.float32(0.5), 2**60]
    said = ["x", "", "", "", "7", "7.5", "True", "0.5", str(2**60)]
    assert as_words(values, 1, "a", NEITHER) == said
    mixed = np.array([1, None, True, pandas.NA], object)
    assert np.array_equal(as_floats(mixed, 1, "a", NEITHER), [1, np.nan, 1, np.nan], equal_nan=True)
    for bad in ([1, "x"], [1, [2]]):
        with pytest.raises(InputError, match="row 6, column 'a' holds"):
            as_floats(np.array(bad, dtype=object), 5, "a", NEITHER)
    with pytest.raises(InputError, match=r"row 6, column 'a': 1e\+39 does not fit"):
        as_floats(np.array([1, 1e39]), 5, "a", NEITHER)


def test_missing_values_of_every_library():
    assert all(map(is_missing, (None, float("nan"), np.float32("nan"), pandas.NA, pandas.NaT)))
    assert not any(map(is_missing, (0, "", "nan", False, 1.5)))


def test_labels_as_texts():
    assert texts_of(np.array([1, 2, 1])) == {"1", "2"} and texts_of(np.array(["a", "b"])) == {"a", "b"}
    assert texts_of(np.array([True, False])) == {"True", "False"}
    assert texts_of(np.array([[1], [2, 3]], dtype=object)) == texts_of(np.array([{}], dtype=object)) == {"?"}
