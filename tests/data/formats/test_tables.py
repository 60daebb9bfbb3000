"""CSV and Parquet alike: an error names the row and the column, or the label that was meant."""

import pandas
import pytest
from support.data_files import ROWS, parquet_with

from prer.data.files import read
from prer.errors import InputError

FRACTIONS = r"column 'price' holds fractions \(0.0005 in row 2\); labels are classes: .*, or name another column with "


def test_labels_with_fractions_are_refused_by_row_and_column(tmp_path):
    frame = pandas.DataFrame({"a": [1.0, 2, 3], "price": [1, 0.0005, 3.25]})
    frame.to_csv(tmp_path / "a.csv", index=False)
    frame.to_parquet(tmp_path / "a.parquet")
    for name in ("a.csv", "a.parquet"):
        with pytest.raises(InputError, match=FRACTIONS + "stream.label"):
            read(tmp_path / name)


def test_a_typo_in_a_feature_is_refused_by_row_and_column(tmp_path):
    frame = pandas.DataFrame({"a": [1.0, 2, 3], "age": ["20", "30", "old"], "label": [0, 1, 0]})
    frame.to_csv(tmp_path / "a.csv", index=False)
    frame.to_parquet(tmp_path / "a.parquet")
    said = r"row 3, column 'age' holds text \('old'\); encode it as numbers, or name the label column with "
    for name in ("a.csv", "a.parquet"):
        with pytest.raises(InputError, match=said + "stream.label"):
            read(tmp_path / name)


@pytest.mark.parametrize(
    ("label", "said"),
    [("lable", "no column 'lable', did you mean 'label'"), ("zzzz", "no column 'zzzz'; known: a, b, label")],
)
def test_an_unknown_label_column_is_refused_with_a_guess(tmp_path, label, said):
    (tmp_path / "a.csv").write_text(ROWS)
    parquet_with(tmp_path / "a.parquet")
    for name in ("a.csv", "a.parquet"):
        with pytest.raises(InputError, match=f"{name}: {said}"):
            read(tmp_path / name, label=label)
