"""PRER against every other method, from run folders with known numbers."""

import numpy as np
import pytest
from support.fake_runs import fake_run_of
from support.paper import BWTS, DIAGONALS, MNIST, cells

from prer.paper import plan, significance, table1, variants
from prer.paper.plan import Request
from prer.paper.reproduce import existing
from prer.runs.significance import compare, holm

WITHOUT_ANCHOR = {("mnist", plan.PLAIN): Request().experiment("mnist", "prer", ["seeds=3", "learner.anchor=0"])}


def test_significance_has_every_method_and_every_comparison(mnist):
    of_methods = {key: outcome for key, outcome in mnist.items() if key[1] != "prer-literal"}
    values, compared = significance.tables(MNIST, of_methods)
    assert cells(values)["PRER + anchor"]["MNIST BWT"] == "-0.50 ± 0.25"
    assert cells(values)["GEM"]["MNIST BWT"] == "not run" and "over 3 seeds" in values.caption
    assert [(row[0], row[1], row[-1]) for row in compared.rows if row[0] == "MNIST BWT"] == [
        ("MNIST BWT", f"PRER + anchor - {other}", "better") for other in ("Naive", "LWF", "EWC")
    ]
    assert len(compared.rows) == 6


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


def test_both_tests_are_shown_and_the_verdict_is_the_corrected_one(tmp_path):
    experiments = plan.of_table1(Request(only=("mnist", "naive", "prer"), seeds="3"))
    for method, ahead in (("naive", 0.0), ("prer", np.array([0.8, 1.0, 1.2]))):
        fake_run_of(tmp_path, experiments["mnist", method], DIAGONALS, BWTS + ahead)
    outcomes = existing(experiments, tmp_path)
    assert table1.overlap_of(outcomes) == pytest.approx(0.25)
    *_, compared = significance.tables(MNIST, outcomes)
    row = dict(zip(compared.columns, compared.rows[0], strict=True))
    differences = [0.8, 1.0, 1.2]
    for test, overlap in (("plain", 0.0), ("corrected", 0.25)):
        expected = compare(differences, [0.0] * 3, overlap)
        found = [row[f"{part}, {test}"].mean for part in ("from", "to", "p Holm")]
        assert found == pytest.approx([expected.low, expected.high, expected.p])
    assert (row["verdict, plain"], row["verdict, corrected"]) == ("better", "better")
    assert "s sqrt(1/n + n_test/n_train)" in compared.notes[0]


def test_one_seed_is_shown_and_decides_nothing(tmp_path):
    experiments = plan.of_table1(Request(only=("mnist", "naive", "prer"), seeds="1"))
    for experiment in experiments.values():
        fake_run_of(tmp_path, experiment, [99.0], [-1.0])
    outcomes = existing(experiments, tmp_path)
    table, _ = table1.tables(MNIST, outcomes)
    assert cells(table)["PRER + anchor"]["MNIST BWT"] == "-1.00" and table.caption.endswith("over 1 seed")
    assert [table.name for table in significance.tables(MNIST, outcomes)] == ["significance-values"]


def test_methods_with_the_same_numbers_are_no_division_by_zero(tmp_path):
    experiments = plan.of_table1(Request(only=("mnist", "naive", "prer"), seeds="3"))
    for experiment in experiments.values():
        fake_run_of(tmp_path, experiment, DIAGONALS, BWTS)
    *_, compared = significance.tables(MNIST, existing(experiments, tmp_path))
    tested = ["+0.000", "+0.000", "1.0000", "not worse"]
    assert [str(cell) for cell in compared.rows[0][2:]] == ["+0.00", *tested, *tested]


def test_a_p_does_not_depend_on_what_is_asked_for(mnist, tmp_path):
    (*_, few), (*_, every) = (significance.tables(MNIST, mnist, asked) for asked in ([("mnist", "ewc")], []))
    assert len(few.rows) == 2 and all(row in every.rows for row in few.rows)
    of = {variant: experiment for (_, variant), experiment in variants.experiments(MNIST).items()}
    for i, variant in enumerate(("ours", "one-phase", "gaussian")):
        fake_run_of(tmp_path / "other", of[variant], DIAGONALS - i * np.array([1, 1.1, 0.9]), BWTS)
    outcomes = existing(variants.experiments(MNIST), tmp_path / "other")
    (few,), (every,) = (variants.tables(MNIST, outcomes, asked) for asked in ([("mnist", "one-phase")], []))
    assert len(few.rows) == 1 and few.rows[0] in every.rows and few.rows[0][9].mean < 1


def test_prer_without_the_anchor_is_a_row_when_it_has_run(tmp_path):
    experiments = plan.of_significance(Request(only=("mnist",), seeds="3")) | WITHOUT_ANCHOR
    for method in ("naive", "prer"):
        fake_run_of(tmp_path, experiments["mnist", method], DIAGONALS, BWTS)
    values, compared = significance.tables(MNIST, existing(experiments, tmp_path))
    assert "PRER" not in cells(values) and {row[1] for row in compared.rows} == {"PRER + anchor - Naive"}
    fake_run_of(tmp_path, experiments["mnist", plan.PLAIN], DIAGONALS, BWTS + np.array([0.8, 1.0, 1.2]))
    values, compared, own = significance.tables(MNIST, existing(experiments, tmp_path))
    assert cells(values)["PRER"]["MNIST BWT"] == "0.50 ± 0.23"
    of_bwt = [row[1] for row in compared.rows if row[0] == "MNIST BWT"]
    assert of_bwt == ["PRER + anchor - Naive", "PRER - Naive"]
    assert [row[1] for row in own.rows] == ["PRER + anchor - PRER"] * 2


def test_each_row_of_prer_is_a_family_against_the_others_and_its_own_rows_are_another(tmp_path):
    experiments = plan.of_significance(Request(only=("mnist", "naive", "er", "prer"), seeds="3")) | WITHOUT_ANCHOR
    distilled = ["seeds=3", "learner.labels=distilled"]
    experiments["mnist", significance.DISTILLED] = Request().experiment("mnist", "prer", distilled)
    noise = np.random.default_rng(0).normal(size=(5, 3))
    for i, experiment in enumerate(experiments.values()):
        fake_run_of(tmp_path, experiment, DIAGONALS + noise[i], BWTS + noise[::-1][i])
    outcomes = existing(experiments, tmp_path)
    values = {m: outcome.folder.result["bwt"]["values"] for (_, m), outcome in outcomes.items()}
    for own in significance.OWN:
        found = significance.comparisons(outcomes, "mnist", "bwt", own=own)
        ps = [compare(values[own], values[other]).p for other in ("naive", "er")]
        assert list(found) == ["naive", "er"] and [c.adjusted for c in found.values()] == holm(ps)
    found = significance.among(outcomes, "mnist", "bwt")
    pairs = [(significance.DISTILLED, "prer"), ("prer", plan.PLAIN)]
    assert list(found) == pairs
    assert [c.adjusted for c in found.values()] == holm([compare(values[a], values[b]).p for a, b in pairs])
    _, against, own = significance.tables(MNIST, outcomes)
    of_bwt = [row[1] for row in against.rows if row[0] == "MNIST BWT"]
    titles = ("PRER + anchor", "PRER", "PRER, distilled")
    assert of_bwt == [f"{title} - {other}" for title in titles for other in ("Naive", "ER")]
    assert [row[1] for row in own.rows[:2]] == ["PRER, distilled - PRER + anchor", "PRER + anchor - PRER"]
    assert "over 3 seeds" in against.caption and "corrected" in own.caption
