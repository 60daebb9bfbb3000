"""What a run proposes to try next."""

import shlex
from pathlib import Path

import pytest
from support.commands import TINY_PRER, said

from prer.runs.experiment import Experiment

pytestmark = pytest.mark.usefixtures("no_terminal")


def proposed(out):
    """The experiments that are proposed after a run, as the words of their commands."""
    lines = out.split("What to try next")[1].splitlines()
    return [
        words for words in map(shlex.split, lines) if words[:2] == ["prer", "run"] and "PATH" not in " ".join(words)
    ]


def test_proposals_are_new_experiments_that_are_shown_beside_this_one(capsys, arrays):
    same, options = ("learner.epochs=1", arrays), ("--seeds", "2", "--device", "cpu", "--out", "my runs")
    closed = ["prer", "run", arrays, "stream.scenario=class", "learner.name=ranpac", *options]
    first = proposed(said(capsys, "run", *same, "learner.name=naive", *options))
    assert first == [*(["prer", "run", *same, f"learner.name={name}", *options] for name in ("prer", "joint")), closed]
    of_prer = TINY_PRER[1:]
    second = proposed(said(capsys, "run", *same, *of_prer, *options))  # naive is beside it
    assert second == [
        ["prer", "run", *same, "learner.name=joint", *options],
        ["prer", "run", *same, *of_prer, "learner.density=gaussian", *options],
        closed,
    ]
    out = said(capsys, *second[0][1:])
    assert "naive ┃" in out
    assert proposed(out) == [first[0], closed]
    assert proposed(said(capsys, *second[1][1:])) == [closed]
    assert "final accuracy" in said(capsys, *closed[1:]).lower()


def test_an_experiment_file_with_all_settings_is_not_proposed_with_another_learner(capsys, arrays):
    Path("e.toml").write_text(Experiment.parse({}, [*TINY_PRER, arrays]).to_toml())
    assert proposed(said(capsys, "run", "e.toml", "--seeds", "1")) == [
        ["prer", "run", "e.toml", "learner.density=gaussian", "--seeds", "1"]
    ]
