"""One table in four forms: Markdown, LaTeX, CSV and on a console."""

import csv
import io
import re
from io import StringIO

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.console import Console
from support.paper import in_markdown

from prer.paper.tables import Probability, Table, Value, csv_text, escaped, latex, markdown, save, show
from prer.paper.tables import Table as Tabled

quickly = settings(derandomize=True, database=None, deadline=None, max_examples=60)
NASTY = Table(
    "nasty",
    "100 % of a_b & {c} ± $1",
    ["", "x|y", "k"],
    [["a|b\\", Value(-0.125, 0.5), Value(12345.678, digits=0)], ["#^~", "failed: 50 % & more", Value(-0.001)]],
    ["<&>"],
)


def test_markdown_is_well_formed():
    text = markdown(NASTY)
    rows = in_markdown(text)
    assert {len(row) for row in rows} == {3} and rows[1] == ["---", "---:", "---:"]
    assert rows[2] == ["a|b\\\\", "-0.12 ± 0.50", "12,346"] and rows[3][2] == "0.00"
    assert text.startswith("**100 %") and text.endswith("- <&>\n")


def test_latex_is_escaped():
    text = latex(NASTY)
    assert r"\caption{100 \% of a\_b \& \{c\} $\pm$ \$1}" in text and r"\begin{tabular}{lrr}" in text
    assert r"a$|$b\textbackslash{} & $-0.12 \pm 0.50$ & $12{,}346$ \\" in text
    assert r"\#\textasciicircum{}\textasciitilde{} & failed: 50 \% \& more & $0.00$ \\" in text
    body = text.split(r"\hline")[1].split(r"\end{tabular}")[0]
    assert all(len(re.findall(r"(?<!\\)&", line)) == 2 for line in body.splitlines() if line)


def test_no_probability_is_zero():
    table = Table("t", "", ["p"], [[Probability(p)] for p in (3e-7, 1e-4, 0.03, 1.0)])
    assert [row[0] for row in in_markdown(markdown(table))[2:]] == ["<0.0001", "0.0001", "0.0300", "1.0000"]
    assert "$<0.0001$" in latex(table) and "3e-07" in csv_text(table)


def test_long_texts_are_folded_in_latex():
    table = Table("t", "", ["a", "b", "c"], [["x" * 40, "x" * 41, Value(1)], ["", "", "failed: " + "x" * 40]])
    assert r"\begin{tabular}{lp{0.3\textwidth}r}" in latex(table)


@quickly
@given(st.text(st.sampled_from("&%$#_{}~^\\±−<>|ab 1")))
def test_no_character_is_special_after_escaping(text):
    plain = re.sub(
        r"\\(textbackslash|textasciitilde|textasciicircum)\{\}|\\[&%$#_{}]|\$(\\pm|-|<|>|\|)\$", "", escaped(text)
    )
    assert not set(plain) & set("&%$#_{}~^\\")


@quickly
@given(st.lists(st.tuples(st.floats(allow_nan=False), st.none() | st.floats(0, 1e9)), min_size=1, max_size=5))
def test_csv_has_every_digit(numbers):
    table = Table("t", "", ["name", "value"], [[f"row, {i}", Value(*number)] for i, number in enumerate(numbers)])
    rows = list(csv.reader(io.StringIO(csv_text(table))))
    spread = any(std is not None for _, std in numbers)
    assert rows[0] == ["name", "value", "value, sd"][: 2 + spread]
    for i, ((mean, std), row) in enumerate(zip(numbers, rows[1:], strict=True)):
        assert row[0] == f"row, {i}" and float(row[1]) == mean
        assert not spread or row[2] == ("" if std is None else repr(std))


def test_files_are_written_or_the_reason_is_said(tmp_path):
    paths = save("two", [NASTY, NASTY], tmp_path / "new")
    assert [path.name for path in paths] == ["two.md", "two.tex", "nasty.csv"] and all(p.stat().st_size for p in paths)
    (tmp_path / "file").write_text("")
    with pytest.raises(ValueError, match=r"cannot write .*file.*use another --out"):
        save("two", [NASTY], tmp_path / "file")


@pytest.mark.parametrize("live", [True, False])
def test_long_texts_of_a_table_are_folded_on_a_terminal_and_numbers_are_not(live):
    sentence, number = " ".join(["some words of a claim"] * 40), Value(1234567.891, 1234.567)
    console = Console(file=StringIO(), width=80, force_terminal=live, no_color=True)
    show(console, Tabled("x", "A caption", ["claim", "evidence", "BWT"], [[sentence, sentence, number]] * 2))
    lines = [line for line in console.file.getvalue().splitlines() if line.startswith("│")]
    assert sum(str(number) in line for line in lines) == 2 and (len(lines) > 2) == live
    assert (max(map(len, lines)) < 120) == live
    assert " ".join(line.split("│")[1].strip() for line in lines) == f"{sentence} {sentence}"
    assert console.file.getvalue().count("\n├") == live  # a line between the two rows
