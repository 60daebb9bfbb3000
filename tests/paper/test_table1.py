"""Table 1 from run folders with known numbers."""

import numpy as np
import pytest
from scipy.stats import ttest_ind
from support.fake_runs import fake_run_of, forge_result
from support.paper import BWTS, DIAGONALS, MNIST, cells

from prer.paper import plan, table1
from prer.paper.plan import Request
from prer.paper.reproduce import existing
from prer.sweeps.engines.base import Outcome


def test_table_1_cell_by_cell(mnist):
    table, check = table1.tables(MNIST, mnist)
    of = cells(table)
    assert table.columns == ["", "MNIST BWT", "MNIST Accuracy"] and "over 3 seeds" in table.caption
    assert of["PRER + anchor"] == {"": "PRER + anchor", "MNIST BWT": "-0.50 ± 0.25", "MNIST Accuracy": "98.92 ± 0.36"}
    assert of["PRER, the paper"]["MNIST BWT"] == "-0.14 ± 0.01"
    assert (of["PRER + anchor, difference"]["MNIST BWT"], of["PRER + anchor, difference"]["MNIST Accuracy"]) == (
        "-0.36",
        "-0.49",
    )
    assert (of["PRER + anchor, Welch's t-test"]["MNIST BWT"], of["LWF, Welch's t-test"]["MNIST BWT"]) == (
        "no difference found",
        "above",
    )
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
    fake_run_of(tmp_path, experiment, values, np.zeros(5))
    table, _ = table1.tables(MNIST, existing({("mnist", "prer"): experiment}, tmp_path))
    theirs = 99.41 + 0.10 * np.array([-1.5, -0.5, 0.0, 0.5, 1.5]) / np.std([-1.5, -0.5, 0.0, 0.5, 1.5], ddof=1)
    test = ttest_ind(values, theirs, equal_var=False)  # on five numbers with the paper's mean and deviation
    word = "no difference found" if test.pvalue >= 0.05 else "above" if test.statistic > 0 else "below"
    assert cells(table)["PRER + anchor, Welch's t-test"]["MNIST Accuracy"] == word


def test_prer_as_the_paper_states_it_is_a_row(tmp_path):
    experiments = plan.of_table1(Request(only=("mnist", "naive", "prer", "prer-literal"), seeds="3"))
    for i, experiment in enumerate(experiments.values()):
        fake_run_of(tmp_path, experiment, DIAGONALS - i, BWTS)
    outcomes = existing(experiments, tmp_path)
    of = cells(table1.tables(MNIST, outcomes)[0])
    assert of["PRER, literal"]["MNIST Accuracy"] == "96.92 ± 0.36"
    assert of["PRER, literal, difference"]["MNIST Accuracy"] == "-2.49"  # to the paper's PRER


def test_two_runs_are_paired_by_their_seeds(tmp_path):
    first, second, other = (
        Request(only=("mnist",), seeds=seeds).experiment("mnist", "er") for seeds in ("3", "2,1,7", "1,5")
    )
    results = {"0,1,2": [10.0, 11.0, 12.0], "2,1,7": [92.0, 91.0, 97.0], "1,5": [51.0, 55.0]}
    outcomes = []
    for experiment, values in zip((first, second, other), results.values(), strict=True):
        folder = fake_run_of(tmp_path, experiment, values, [0.0] * len(values))
        forge_result(folder.path, seeds=list(experiment.seeds))
        outcomes.append(Outcome(experiment, folder))
    assert table1.paired(outcomes[0], outcomes[1], "accuracy") == ([11.0, 12.0], [91.0, 92.0])
    assert table1.paired(outcomes[0], outcomes[2], "accuracy") == ([], [])  # one seed in common
    assert table1.paired(outcomes[0], None, "accuracy") == ([], [])
