"""The built-in experiment as a user runs it, held to what it promises."""

import json

import numpy as np
import pytest

from prer.cli.main import main
from prer.runs.metrics import accuracy, bwt


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    out = tmp_path_factory.mktemp("runs")
    main(["run", "--quiet", "--device", "cpu", "--out", str(out)])
    found = [json.loads(file.read_text("utf-8")) for file in out.glob("*/result.json")]
    return {result["learner"]: result for result in found}


def test_prer_remembers_and_naive_forgets(results):
    prer, naive = results["prer"], results["naive"]
    assert prer["seeds"] == naive["seeds"] == [0, 1, 2, 3, 4]
    assert prer["accuracy"]["mean"] >= 96.5
    assert prer["bwt"]["mean"] >= -1.5
    assert naive["bwt"]["mean"] <= prer["bwt"]["mean"] - 10
    # A reference that had not learned its tasks would be none.
    assert np.array(naive["matrix"], float).diagonal(0, 1, 2).mean(0).min() >= 95


def test_not_one_sample_is_kept(results):
    assert results["prer"]["memory_samples"] == [0] * 5
    growth = np.diff(results["prer"]["memory_floats"])
    assert growth.tolist() == [2 * (16 + 1)] * 4  # a vector and a count for each of two classes


def test_the_metrics_are_those_of_the_matrix(results):
    for result in results.values():
        matrix = np.array(result["matrix"], float)
        np.testing.assert_allclose(result["accuracy"]["values"], [accuracy(R) for R in matrix])
        np.testing.assert_allclose(result["bwt"]["values"], [bwt(R) for R in matrix])


@pytest.mark.slow
@pytest.mark.parametrize("settings", [["learner.density=gaussian"], ["--seeds", "10,11,12,13,14"]], ids=" ".join)
def test_other_seeds_and_the_other_density_remember_too(tmp_path, settings):
    main(["run", "learner.name=prer", *settings, "--quiet", "--device", "cpu", "--out", str(tmp_path)])
    (file,) = tmp_path.glob("*/result.json")
    result = json.loads(file.read_text("utf-8"))
    assert result["accuracy"]["mean"] >= 95
    assert result["bwt"]["mean"] >= -4  # naive loses 23 to 35
