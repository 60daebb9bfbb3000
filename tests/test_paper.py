"""The paper's experiments and tables."""

import tomllib

import pytest

from prer.experiment import Experiment
from prer.paper import DATA, METHODS, file_of, settings


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("data", DATA)
def test_a_file_says_every_setting_and_is_what_runs(data, method):
    tables = tomllib.loads(file_of(data, method).read_text())
    experiment = Experiment.read(file_of(data, method))
    assert experiment.tables() == tables  # nothing is left to a default that may change
    assert (experiment.learner.name, experiment.stream.data, experiment.seeds) == (method, data, (0, 1, 2, 3, 4))
    assert experiment.stream.validation == 0.0
    by_name = Experiment.parse({"stream": {"data": data}, "learner": {"name": method}})
    assert by_name.hash == experiment.hash  # `prer run stream.data=mnist` is the paper's experiment


def test_what_the_paper_has_no_experiment_of():
    assert settings("digits", "prer") is None and settings("mnist", "si") is None
    assert settings("../mnist", "prer") is None
