"""CSV tables, compared with what pandas wrote: separators, labels, and rows by number."""

import numpy as np
import pandas
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.data_files import RNG, same

from prer.data import files
from prer.data.files import read
from prer.errors import InputError

few = settings(max_examples=40, deadline=None, database=None)


names = st.text(st.characters(codec="utf-8", exclude_categories=("C", "Z")), min_size=1, max_size=8).filter(
    lambda name: name.lower() != "nan" and not name.replace(".", "").isnumeric()
)


@few
@given(
    st.lists(names, min_size=2, max_size=5, unique=True),
    st.integers(1, 20),
    st.sampled_from([",", ";", "\t"]),
    st.sampled_from(["utf-8", "utf-8-sig"]),
    st.data(),
)
def test_a_csv_gives_what_pandas_wrote(tmp_path_factory, columns, n, comma, encoding, data):
    if sum(name.count(other) for name in columns for other in ",;\t") > 0:
        columns = [f"c{i}" for i in range(len(columns))]
    label = data.draw(st.sampled_from(columns))
    kind = data.draw(st.sampled_from(["ints", "floats", "strings"]))
    labels = {
        "ints": np.arange(n) * 7,
        "floats": np.arange(n) * 1.0,
        "strings": [f'a "{comma}\n{i % 2}' for i in range(n)],
    }
    frame = pandas.DataFrame(RNG.normal(size=(n, len(columns))).astype(np.float32), columns=columns)
    frame[label] = labels[kind]
    path = tmp_path_factory.mktemp("csv") / "a"
    frame.to_csv(path, index=False, sep=comma, encoding=encoding)
    expected = frame.drop(columns=label).to_numpy(np.float32)
    assert same(read(path, label=label), expected, frame[label])
    if label == columns[-1]:
        assert same(read(path), expected, frame[label])


def test_labels_of_a_csv_are_numbers_only_if_all_are_whole(tmp_path):
    for labels, expected in (
        (["1", "2.0", "+3"], [1, 2, 3]),
        (["1", "b", "3"], ["1", "b", "3"]),
        (["0.5", "b", "3"], ["0.5", "b", "3"]),
        (["1_0", "2", "3"], ["1_0", "2", "3"]),
        (["9007199254740993", "2", "3"], [9007199254740993, 2, 3]),
        (["1e30", "2", "3"], ["1e30", "2", "3"]),
    ):
        (tmp_path / "a.csv").write_text("x,label\n" + "\n\n".join(f"{i},{v}" for i, v in enumerate(labels)))
        assert same(read(tmp_path / "a.csv"), np.arange(3, dtype=np.float32)[:, None], expected)


def test_empty_lines_before_the_header_are_stepped_over(tmp_path):
    (tmp_path / "a.csv").write_text("\n\na;label\n1;x\n")
    assert same(read(tmp_path / "a.csv"), np.array([[1]], np.float32), ["x"])


def test_separators_in_quotes_do_not_count(tmp_path):
    (tmp_path / "a.csv").write_text('"a,b,c";"d,e";label\n1;2;x\n')
    assert same(read(tmp_path / "a.csv"), np.array([[1, 2]], np.float32), ["x"])


def test_a_csv_of_more_rows_than_are_read_at_once(tmp_path, monkeypatch):
    monkeypatch.setattr("prer.data.formats.csvs.ROWS_READ", 3)
    (tmp_path / "a.csv").write_text("x,label\n" + "".join(f"{i},{i % 2}\n" for i in range(10)))
    assert same(read(tmp_path / "a.csv"), np.arange(10, dtype=np.float32)[:, None], np.arange(10) % 2)
    (tmp_path / "a.csv").write_text("x,y,label\n" + "".join(f"{i},{'?' if i == 7 else 1},0\n" for i in range(10)))
    with pytest.raises(InputError, match="row 8, column 'y' holds text \\('\\?'\\)"):
        read(tmp_path / "a.csv")


def test_a_target_with_fractions_is_refused_where_some_of_it_is_missing(tmp_path):
    file = tmp_path / "prices.csv"
    file.write_text("a,b,price\n" + "".join(f"1,{i},{i / 7:.5f}\n" for i in range(1, 40)) + "1,1,NA\n1,2,inf\n")
    with pytest.raises(InputError, match=r"column 'price' holds fractions \(0.14286 in row 1\)"):
        files.read(file)
