"""The paper's tables, from run folders with known numbers."""

import csv
import io
import platform
import re
from importlib.metadata import version

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import ttest_ind
from support.folders import pretended

from prer.paper import METHODS, document, plan, significance, table1, table2
from prer.paper import variants as ablation
from prer.paper.plan import Request
from prer.paper.reproduce import NEEDED, existing
from prer.paper.short import in_short, of_claims
from prer.paper.tables import Probability, Table, Value, csv_text, escaped, latex, markdown, save
from prer.runs import environment
from prer.runs.significance import compare
from prer.sweeps.engines.base import Outcome

MNIST = Request(only=("mnist",), variants=ablation.NAMES)
DIAGONALS, BWTS = np.array([99.0, 99.5, 99.25]), np.array([-0.5, -0.25, -0.75])
quickly = settings(derandomize=True, database=None, deadline=None, max_examples=60)


def cells(table):
    """The table's cells as text, by row and column."""
    return {row[0]: dict(zip(table.columns, map(str, row), strict=True)) for row in table.rows}


def in_markdown(text):
    """The rows of the first Markdown table in a text."""
    lines = [line for line in text.splitlines() if line.startswith("| ")]
    return [[c.strip().replace("\\|", "|") for c in re.split(r"(?<!\\)\|", line)[1:-1]] for line in lines]


@pytest.fixture
def mnist(tmp_path):
    """Runs of all methods on MNIST but GEM and the literal PRER; ER's failed."""
    experiments = plan.of_table1(MNIST)
    for i, method in enumerate(METHODS):
        if method not in ("gem", "er"):
            lost = 0 if method == "prer" else 1 + i
            pretended(tmp_path, experiments["mnist", method], DIAGONALS, BWTS - lost * np.array([1, 1.1, 0.9]))
    outcomes = existing(experiments, tmp_path)
    failed = outcomes["mnist", "er"]
    return outcomes | {("mnist", "er"): Outcome(failed.experiment, failed.folder, "the loss became nan_1 & 100 %")}


def test_table_1_cell_by_cell(mnist):
    table, check = table1.tables(MNIST, mnist)
    of = cells(table)
    assert table.columns == ["", "MNIST BWT", "MNIST Accuracy"] and "over 3 seeds" in table.caption
    assert of["PRER"] == {"": "PRER", "MNIST BWT": "-0.50 ± 0.25", "MNIST Accuracy": "98.92 ± 0.36"}
    assert of["PRER, the paper"]["MNIST BWT"] == "-0.14 ± 0.01"
    assert (of["PRER, difference"]["MNIST BWT"], of["PRER, difference"]["MNIST Accuracy"]) == ("-0.36", "-0.49")
    assert (of["PRER, verdict"]["MNIST BWT"], of["LWF, verdict"]["MNIST BWT"]) == ("no difference found", "above")
    assert of["EWC, the paper"]["MNIST BWT"] == "-7.89 ± 1.44*" and table.notes[1].startswith("* ")
    assert of["GEM"]["MNIST BWT"] == "not run" and of["GEM, difference"]["MNIST BWT"] == "-"
    assert of["ER"]["MNIST Accuracy"] == "failed: the loss became nan_1 & 100 %"
    assert table.notes[-1] == "Failed: ER on MNIST: the loss became nan_1 & 100 %"
    assert of["PRER, literal"]["MNIST BWT"] == "not run" and "PRER, literal, the paper" not in of
    assert cells(check)["EWC"] == {"": "EWC", "MNIST ours": "99.25 ± 0.25", "MNIST the paper": "100.10*"}


@pytest.mark.parametrize("mean", [98.9, 99.2, 99.41, 99.7, 99.9])
def test_a_verdict_is_that_of_welchs_test(tmp_path, mean):
    experiment = plan.of_table1(Request(only=("mnist", "prer")))["mnist", "prer"]
    values = mean + np.array([-0.3, -0.1, 0.0, 0.1, 0.3])
    pretended(tmp_path, experiment, values, np.zeros(5))
    table, _ = table1.tables(MNIST, existing({("mnist", "prer"): experiment}, tmp_path))
    theirs = 99.41 + 0.10 * np.array([-1.5, -0.5, 0.0, 0.5, 1.5]) / np.std([-1.5, -0.5, 0.0, 0.5, 1.5], ddof=1)
    test = ttest_ind(values, theirs, equal_var=False)  # on five numbers with the paper's mean and deviation
    word = "no difference found" if test.pvalue >= 0.05 else "above" if test.statistic > 0 else "below"
    assert cells(table)["PRER, verdict"]["MNIST Accuracy"] == word


def test_significance_has_every_method_and_every_comparison(mnist):
    of_methods = {key: outcome for key, outcome in mnist.items() if key[1] != "prer-literal"}
    values, compared = significance.tables(MNIST, of_methods)
    assert cells(values)["PRER"] == {"": "PRER", "MNIST BWT": "-0.50 ± 0.25", "MNIST Accuracy": "98.92 ± 0.36"}
    assert cells(values)["GEM"]["MNIST BWT"] == "not run" and "over 3 seeds" in values.caption
    assert [(row[0], row[1], row[-1]) for row in compared.rows if row[0] == "MNIST BWT"] == [
        ("MNIST BWT", f"PRER - {other}", "better") for other in ("Naive", "LWF", "EWC")
    ]
    assert len(compared.rows) == 6


def test_significance_takes_twenty_seeds_unless_told_otherwise():
    twenty, table = plan.of_significance(MNIST), plan.of_table1(MNIST)
    assert [m for _, m in twenty] == list(METHODS) and {e.seeds for e in twenty.values()} == {tuple(range(20))}
    assert all(e.tables() | {"seeds": 5} == table[key].tables() | {"seeds": 5} for key, e in twenty.items())
    three = Request(only=("mnist",), seeds="3")
    assert plan.of_significance(three) == {k: e for k, e in plan.of_table1(three).items() if k[1] != "prer-literal"}
    fast = Request(fast=True)
    assert plan.of_significance(fast) == plan.of_table1(fast)  # the same runs: nothing more to wait for


def test_comparisons_are_those_of_seeds_with_holms_correction(mnist):
    of_bwt = significance.comparisons(mnist, "mnist", "bwt")
    assert list(of_bwt) == ["naive", "lwf", "ewc"]
    naive = of_bwt["naive"]
    assert naive.difference == pytest.approx(1.0)
    alone = compare(np.array([1, 1.1, 0.9]), np.zeros(3))
    assert (naive.low, naive.p) == (pytest.approx(alone.low), pytest.approx(alone.p))
    assert naive.adjusted == pytest.approx(3 * alone.p)  # all three have the same p
    assert naive.verdict == "better"
    assert of_bwt["ewc"].difference == pytest.approx(3.0)


def test_prer_as_the_paper_states_it_is_a_row(tmp_path):
    experiments = plan.of_table1(Request(only=("mnist", "naive", "prer", "prer-literal"), seeds="3"))
    for i, experiment in enumerate(experiments.values()):
        pretended(tmp_path, experiment, DIAGONALS - i, BWTS)
    outcomes = existing(experiments, tmp_path)
    of = cells(table1.tables(MNIST, outcomes)[0])
    assert of["PRER, literal"]["MNIST Accuracy"] == "96.92 ± 0.36"
    assert of["PRER, literal, difference"]["MNIST Accuracy"] == "-2.49"  # to the paper's PRER


def test_one_seed_is_shown_and_decides_nothing(tmp_path):
    experiments = plan.of_table1(Request(only=("mnist", "naive", "prer"), seeds="1"))
    for experiment in experiments.values():
        pretended(tmp_path, experiment, [99.0], [-1.0])
    outcomes = existing(experiments, tmp_path)
    table, _ = table1.tables(MNIST, outcomes)
    assert cells(table)["PRER"]["MNIST BWT"] == "-1.00" and table.caption.endswith("over 1 seed")
    assert [table.name for table in significance.tables(MNIST, outcomes)] == ["significance-values"]


def test_methods_with_the_same_numbers_are_no_division_by_zero(tmp_path):
    experiments = plan.of_table1(Request(only=("mnist", "naive", "prer"), seeds="3"))
    for experiment in experiments.values():
        pretended(tmp_path, experiment, DIAGONALS, BWTS)
    *_, compared = significance.tables(MNIST, existing(experiments, tmp_path))
    assert [str(cell) for cell in compared.rows[0][2:]] == [
        "+0.00",
        "+0.000",
        "+0.000",
        "1.0000",
        "1.0000",
        "not worse",
    ]


def test_data_from_elsewhere_has_another_name(tmp_path):
    for name in ("kmnist10k", "mnist", "other.d"):
        (tmp_path / name).mkdir()
        np.savez(tmp_path / name / "x.npz", x=np.zeros((4, 2)), y=np.arange(4))
    request = Request(paths={"kmnist": str(tmp_path / "kmnist10k"), "mnist": str(tmp_path / "mnist")})
    assert [request.title(name) for name in ("mnist", "kmnist", "svhn")] == ["MNIST", "KMNIST-10k", "SVHN"]
    assert request.remarks(["mnist", "kmnist", "svhn"]) == [
        "MNIST is read from mnist, a copy that was given.",
        "KMNIST-10k is read from kmnist10k, which is not the paper's data, KMNIST.",
    ]
    assert request.experiment("kmnist", "prer").stream.data == str(tmp_path / "kmnist10k")
    assert Request(paths={"svhn": str(tmp_path / "other.d")}).title("svhn") == "other"


def test_table_2_counts_and_times(tmp_path):
    experiments = plan.of_table2(MNIST)
    assert {e.seeds for e in experiments.values()} == {(0,)} and len(experiments) == 6
    pretended(tmp_path, experiments["mnist", "er"], [99.0], [-1.0], memory_floats=[1, 2, 3, 4, 834_000])
    table, ratios = table2.tables(MNIST, existing(experiments, tmp_path))
    of = cells(table)
    assert [list(map(str, row)) for row in ratios.rows] == [["ER on MNIST", "1.00", "72"]]  # 15 min over 12.5 s
    ours, formula, paper, samples, seconds, minutes = list(of["ER"].values())[2:]
    assert (ours, formula, paper, samples, seconds, minutes) == ("834,000", "834,000", "834,000", "0", "12.5", "15")
    assert list(of["EWC"].values())[2:] == ["not run", "308,830", "310,000", "-", "-", "12"]
    assert of["Naive"]["MNIST floats, the paper"] == "-" and "1 thread" in table.notes[1]


def test_the_ablation_has_every_variant_beside_ours(tmp_path):
    of = {variant: experiment for (_, variant), experiment in ablation.experiments(MNIST).items()}
    health = [{"event": "health", "task": 4, "class": c, "agreement": [0.99, 0.98, 1.0]} for c in (0, 1)]
    pretended(tmp_path, of["ours"], DIAGONALS, BWTS, health)
    pretended(tmp_path, of["joint"], DIAGONALS - np.array([1, 1.1, 0.9]), BWTS)
    pretended(tmp_path, of["literal"], DIAGONALS, BWTS, [event | {"agreement": [0.5, 0.52, 0.49]} for event in health])
    (variants,) = ablation.tables(MNIST, existing(ablation.experiments(MNIST), tmp_path))
    rows = {row[1]: list(map(str, row)) for row in variants.rows}
    assert rows["joint"][6:8] == ["97.92 ± 0.29", "-1.00"] and rows["gaussian"][3] == "not run"
    assert (rows["ours"][-1], rows["literal"][-1], rows["joint"][-1]) == ("99.0 ± 1.0", "50.3 ± 1.5", "-")
    literal = table1.tables(MNIST, existing({("mnist", "prer-literal"): of["literal"]}, tmp_path))
    assert cells(literal[0])["PRER, literal"]["MNIST BWT"] == "-0.50 ± 0.25"  # the same run


def test_a_p_does_not_depend_on_what_is_asked_for(mnist, tmp_path):
    (*_, few), (*_, every) = (significance.tables(MNIST, mnist, asked) for asked in ([("mnist", "ewc")], []))
    assert len(few.rows) == 2 and all(row in every.rows for row in few.rows)
    of = {variant: experiment for (_, variant), experiment in ablation.experiments(MNIST).items()}
    for i, variant in enumerate(("ours", "joint", "gaussian")):
        pretended(tmp_path / "other", of[variant], DIAGONALS - i * np.array([1, 1.1, 0.9]), BWTS)
    outcomes = existing(ablation.experiments(MNIST), tmp_path / "other")
    (few,), (every,) = (ablation.tables(MNIST, outcomes, asked) for asked in ([("mnist", "joint")], []))
    assert len(few.rows) == 1 and few.rows[0] in every.rows and few.rows[0][8].mean < 1


SEVERAL = ("augment-only", "anchor-only", "neither", "condition-first", "slow-flow")  # what is asked is not had by one
BESIDES = {"one-level": "blocks", "sparse-layers": "sparsity", "joint": "epochs_autoencoder"}  # so that it is but one


def test_variants_change_one_thing():
    experiments = ablation.experiments(MNIST)
    of = {variant: experiment.tables()["learner"] for (_, variant), experiment in experiments.items()}
    ours = of["ours"]
    for variant in ablation.VARIANTS:
        if variant.overrides:
            named = {override.partition("=")[0].removeprefix("learner.") for override in variant.overrides}
            than = of["literal"] if variant.name == "literal-no-r" else ours
            changed = {key for key in than if of[variant.name][key] != than[key]}
            besides = {BESIDES[variant.name]} if variant.name in BESIDES else set()
            assert changed == named | besides
            assert len(named) == 1 or variant.name in SEVERAL
    assert of["one-level"]["blocks"] == 2 * ours["blocks"]
    assert of["sparse-layers"]["sparsity"] == ours["sparsity"] * ours["embedding"]
    assert of["joint"]["epochs_autoencoder"] == max(ours["epochs"], ours["epochs_autoencoder"], ours["epochs_flow"])
    pixels = experiments["mnist", "pixels"].tables()["learner"]
    assert pixels["name"] == "dgr" and all(pixels[key] == ours[key] for key in ("channels", "embedding", "batch", "lr"))
    assert experiments["mnist", "pixels"].stream == experiments["mnist", "ours"].stream
    temperatures = {experiments["mnist", v].tables()["learner"]["temperature"] for v in ("ours", "temperature")}
    assert temperatures == {ours["temperature"], 0.8 if ours["temperature"] == 1.0 else 1.0}
    assert experiments["mnist", "literal"].name == "mnist-prer-literal"
    digits = ablation.experiments(Request(fast=True))["digits", "literal"].tables()["learner"]
    assert (digits["norm"], digits["permutation"], digits["condition_size"]) == ("running", "random", 10)


def test_the_document_says_what_has_run_and_what_has_not(tmp_path, mnist):
    request = Request(variants=ablation.NAMES)
    outcomes = {name: existing(NEEDED[name](request), tmp_path) for name in document.TABLES}
    of_claims = [outcome.folder.path.name for outcome in outcomes["claims"].values()]
    clocks = {"claims": document.Clock([*of_claims[:9], "other"], 12, 312.4), "table2": document.Clock(["x"], 1, 9.0)}
    text = document.text(request, outcomes, clocks)
    assert f"9 of these {len(of_claims)} runs were made by one command, which took 312 s for 10 runs, 12 at a" in text
    assert text.count("by one command, which") == 1  # none of those of table 2 is a row
    assert "| PRER | -0.50 ± 0.25 | 98.92 ± 0.36 | not run |" in text
    assert "`prer reproduce table1 --only mnist,prer`" in text and "| 0 to 2 | 12.5 | CPU" in text
    assert (
        "`prer reproduce table2 --only cifar10,gem`" in text and "`prer reproduce claims --only mnist,pixels`" in text
    )
    assert "## In short\n\n- PRER, ours beside the paper's: no difference found (MNIST BWT, MNIST Accuracy).\n" in text
    assert "task-incremental" in text and "(docs/figure2.png), made by `prer reproduce figure2`" in text
    assert f"| {platform.python_version()}, {version('torch')} |" in text
    assert "a diagonal of 100.10 %" in text and "EWC on CIFAR10" in text and "2,004,400" in text
    assert str(tmp_path) not in text
    for rows in TABLES_OF_THE_PAPER:
        assert rows in text
    for block in re.findall(r"(?:^\|.*\n)+", text, re.MULTILINE):
        assert len({len(row) for row in in_markdown(block)}) == 1


@pytest.mark.parametrize(("commit", "said"), [("0123456789ab", 0), ("0123456789ab-dirty", 1)])
def test_a_commit_with_changes_is_explained(tmp_path, monkeypatch, commit, said):
    monkeypatch.setattr(environment, "_commit", lambda: commit)
    request = Request(only=("mnist", "prer"))
    pretended(tmp_path, plan.of_table1(request)["mnist", "prer"], DIAGONALS, BWTS)
    outcomes = {name: existing(NEEDED[name](request), tmp_path) for name in document.TABLES}
    assert document.text(request, outcomes, {}).count("A commit that ends in -dirty") == said


def test_verdicts_in_short():
    main = Table("table1", "", ["", "A BWT", "A Accuracy", "B BWT"], [["PRER", "1", "2", "3"]])
    main.rows.append(["PRER, verdict", "above", "below", "above"])
    main.rows.append(["PRER, literal, verdict", "-", "-", "-"])
    compared = Table("significance", "", ["", "compared", "PRER is"], [])
    compared.rows.extend([["A BWT", "PRER - ER", "better"], ["A BWT", "PRER - LWF", "worse"]])
    compared.rows.extend([["A BWT", "PRER - GEM", "better"], ["A Accuracy", "PRER - ER", "not decided"]])
    judged = [["it works (section 1)", "A", "", "holds"], ["it is fast (section 2)", "A", "", "does not hold"]]
    judged += [["it works (section 1)", "B", "", "not run"], ["it is old", "B", "", "not decided"]]
    assert in_short([main, compared]) == [
        "PRER, ours beside the paper's: above (A BWT, B BWT); below (A Accuracy).",
        "PRER against the others on A: BWT better (ER, GEM), worse (LWF); Accuracy not decided (ER).",
    ]
    assert in_short([]) == []
    short = of_claims(Table("claims", "", ["claim", "data", "evidence", "verdict"], judged))
    assert short.columns == ["claim", "A", "B"] and short.rows == [
        ["it works (section 1)", "holds", "not run"],
        ["it is fast (section 2)", "does not hold", "-"],
        ["it is old", "-", "not decided"],
    ]


def test_a_command_in_the_document_has_no_path_of_ours(tmp_path):
    (tmp_path / "mnist7k").mkdir()
    request = Request(only=("mnist", "prer"), paths={"mnist": str(tmp_path / "mnist7k")}, seeds="0,7")
    table = document.runs(request, existing(plan.of_table1(request), tmp_path), "table1")
    assert table.rows[0][0] == "PRER on MNIST-7k" and "mnist7k, which is not the paper's data, MNIST" in table.notes[0]
    command = "`prer reproduce table1 --only mnist,prer --data mnist=PATH/mnist7k --seeds 0,7`"
    assert table.rows[0][1] == "not run" and table.rows[0][-1] == command


TABLES_OF_THE_PAPER = ("-10.09 ± 2.46", "82.67 ± 0.94", "-0.46 ± 0.17", "98.68 ± 0.29", "1,279,000", "8,180,000")

# -- one structure, four forms ---------------------------------------------------------------------------------------

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
    with pytest.raises(ValueError, match=r"cannot write .*file.*give another --out"):
        save("two", [NASTY], tmp_path / "file")
