"""In every recorded result, Accuracy follows from the matrix."""

import json

import numpy as np
import pytest
from support.benchmarks import RECORDS, packed_runs

from prer.paper.published import implied_diagonal
from prer.runs.discovery import discover
from prer.runs.folder import RunFolder
from prer.runs.metrics import diagonal


def results(value):
    """Every result of a run in what a record says."""
    if isinstance(value, dict) and {"matrix", "bwt", "accuracy"} <= value.keys():
        yield value
    elif isinstance(value, (dict, list)):
        for part in value.values() if isinstance(value, dict) else value:
            yield from results(part)


@pytest.mark.parametrize(
    "path",
    sorted(p for p in RECORDS.rglob("*.json") if '"matrix"' in p.read_text()),
    ids=lambda p: p.parent.name + p.stem,
)
def test_accuracy_is_the_diagonal_and_bwt_in_every_record(path):
    found = list(results(json.loads(path.read_text())))
    assert found
    for result in found:
        check_metrics(result)


def test_accuracy_is_the_diagonal_and_bwt_in_every_run_of_the_paper(runs):
    found = [RunFolder(path).result for path in discover([runs], ["result.json"])[0]]
    assert len(found) == len(packed_runs()) - 1  # one run failed
    for result in found:
        check_metrics(result)


def check_metrics(result):
    """Accuracy of each seed is what its diagonal and BWT imply, and no more than 100 % was learned."""
    values = result["matrix"], result["bwt"]["values"], result["accuracy"]["values"]
    for matrix, bwt, accuracy in zip(*values, strict=True):
        implied = implied_diagonal(bwt, accuracy, len(matrix))
        assert implied == pytest.approx(diagonal(np.array(matrix, float))) and implied <= 100
