"""The options that choose an engine reach it."""

import pytest
from support.commands import refused
from support.sweeps import GRID, InThisProcess, sweep

from prer.cli.main import main

pytestmark = pytest.mark.usefixtures("no_terminal")


@pytest.mark.parametrize(
    ("options", "wanted"),
    [
        ([], (None, [], 1)),
        (["--workers", "3"], (3, [], 1)),
        (["--engine", "local", "--per-gpu", "2"], (None, [], 2)),
    ],
)
def test_the_options_reach_the_engine(capsys, monkeypatch, options, wanted):
    made = []
    monkeypatch.setattr("prer.sweeps.engines.Local", lambda *about: made.append(about) or InThisProcess())
    sweep(GRID)
    main(["sweep", "sweep.toml", "learner.lr=0.1", "learner.batch=64", *options])
    assert made == [wanted]


@pytest.mark.parametrize(("options", "workers"), [([], 1), (["--workers", "3"], 3), (["--per-gpu", "2"], None)])
def test_a_table_has_one_run_at_a_time_unless_more_are_asked_for(monkeypatch, options, workers):
    found = []
    monkeypatch.setattr("prer.paper.reproduce.reproduce", lambda *about: found.append(about[-2:]))
    main(["reproduce", "table1", *options])
    assert found[0][0] == workers


def test_two_ways_to_say_how_many_runs_there_are_are_refused(capsys):
    sweep(GRID)
    for command in (["sweep", "sweep.toml"], ["reproduce", "table1", "--fast"]):
        assert "give one of them" in refused(capsys, *command, "--workers", "2", "--per-gpu", "2")
