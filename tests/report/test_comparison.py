"""Runs beside each other: paired tests."""

import json

import pytest
from scipy.stats import ttest_rel
from support.fake_runs import fake_run

from prer.report import comparison
from prer.report.run import runs_in


def test_paired_tests_are_those_of_scipy_with_holms_correction(tmp_path):
    seeds = {"prer": (0, 1, 2, 3), "ewc": (3, 1, 0, 7), "si": (0, 1, 2, 3), "er": (9, 10)}
    for draw, (name, of) in enumerate(seeds.items()):
        fake_run(tmp_path / "runs" / name, learner=name, seeds=of, rng_seed=draw, level=95 - draw)
    runs, _ = runs_in([tmp_path / "runs"])
    (found,) = comparison.tests(runs)
    assert found.reference == "prer"
    values = {run.name: dict(zip(run.result["seeds"], run.result["accuracy"]["values"], strict=True)) for run in runs}
    p = {
        name: ttest_rel(*([values[of][seed] for seed in common] for of in (name, "prer"))).pvalue
        for name, common in (("ewc", (0, 1, 3)), ("si", (0, 1, 2, 3)))
    }
    least, most = sorted(p, key=p.get)
    expected = {least: min(2 * p[least], 1), most: max(min(2 * p[least], 1), p[most])}
    rows = {name: (count, test) for name, count, test in found.rows}
    assert rows["er"] == (0, None)
    for name, adjusted in expected.items():
        assert rows[name][1].adjusted == pytest.approx(adjusted)


def test_runs_on_other_data_are_not_tested_against_each_other(tmp_path):
    fake_run(tmp_path / "a"), fake_run(tmp_path / "b")
    (tmp_path / "b/environment.json").write_text(json.dumps({"data_sha256": "1" * 64}))
    assert comparison.tests(runs_in([tmp_path])[0]) == []
