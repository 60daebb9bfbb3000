"""Known numbers for the paper's tables, and the cells of tables as text."""

import re

import numpy as np
from support.fake_runs import fake_run_of

from prer.paper import METHODS, plan
from prer.paper.plan import Request
from prer.paper.reproduce import existing
from prer.paper.variants import NAMES
from prer.sweeps.engines.base import Outcome

MNIST = Request(only=("mnist",), variants=NAMES)
DIAGONALS, BWTS = np.array([99.0, 99.5, 99.25]), np.array([-0.5, -0.25, -0.75])  # of three seeds


def outcomes_on_mnist(folder):
    """The outcomes of all methods on MNIST: GEM and the literal PRER did not run, ER failed."""
    experiments = plan.of_table1(MNIST)
    for i, method in enumerate(METHODS):
        if method not in ("gem", "er"):
            lost = 0 if method == "prer" else 1 + i
            fake_run_of(folder, experiments["mnist", method], DIAGONALS, BWTS - lost * np.array([1, 1.1, 0.9]))
    outcomes = existing(experiments, folder)
    failed = outcomes["mnist", "er"]
    return outcomes | {("mnist", "er"): Outcome(failed.experiment, failed.folder, "the loss became nan_1 & 100 %")}


def cells(table):
    """The table's cells as text, by row and column."""
    return {row[0]: dict(zip(table.columns, map(str, row), strict=True)) for row in table.rows}


def in_markdown(text):
    """The rows of the first Markdown table in a text."""
    lines = [line for line in text.splitlines() if line.startswith("| ")]
    return [[c.strip().replace("\\|", "|") for c in re.split(r"(?<!\\)\|", line)[1:-1]] for line in lines]
