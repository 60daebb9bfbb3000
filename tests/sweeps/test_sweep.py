"""Sweeps: which experiments they mean."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.sweeps import BASE, DRAWN, GRID, chosen, sweep

from prer.runs.experiment import Experiment
from prer.sweeps.distributions import Choice, Range
from prer.sweeps.sweep import Sweep

pytestmark = pytest.mark.usefixtures("no_terminal")


quickly = settings(derandomize=True, database=None, deadline=None, max_examples=60)


def test_the_grid_is_every_combination_in_order():
    points = sweep(GRID).points()
    assert [(p.learner.lr, p.learner.batch) for p in points] == [(0.01, 32), (0.01, 64), (0.1, 32), (0.1, 64)]
    assert all(isinstance(p, Experiment) and p.seeds == (0,) and p.learner.epochs == 1 for p in points)


def test_a_sweep_of_nothing_is_its_one_experiment():
    assert sweep(BASE).points() == [Experiment.read(Path("sweep.toml"))]


def test_random_settings_never_change():
    text = "budget = 4\n[draws]\n" + "\n".join(
        [
            '"learner.lr" = {low = 1e-4, high = 1e-1, log = true}',
            '"learner.epochs" = {low = 5, high = 50}',
            '"learner.batch" = [32, 64, 128]',
            '"learner.embedding" = {low = 2, high = 512, log = true}',
            '"learner.dropout" = {low = 0, high = 0.5}',
        ]
    )
    points = sweep(text).points()
    assert chosen(points, "lr") == [0.000946883, 0.0102693, 0.000116433, 0.0615989]
    assert chosen(points, "epochs") == [45, 14, 24, 8]
    assert chosen(points, "batch") == [128, 128, 32, 32]
    assert chosen(points, "embedding") == [13, 54, 71, 32]
    assert chosen(points, "dropout") == [0.23029, 0.38785, 0.216815, 0.248805]
    assert chosen(sweep("draw = 1\n" + text).points(), "epochs") != [45, 14, 24, 8]


def test_another_axis_or_random_setting_leaves_the_others_unchanged():
    text = "budget = 5\n" + DRAWN
    lrs = chosen(sweep(text).points(), "lr")
    more = sweep(text + '"learner.batch" = [32, 64]\n[axes]\n"learner.epochs" = [1, 2]\n').points()
    assert chosen(more, "lr") == lrs * 2
    assert chosen(more, "batch")[:5] == chosen(more, "batch")[5:]
    assert len(set(chosen(more, "batch"))) == 2
    assert chosen(sweep(text, "budget=3").points(), "lr") == lrs[:3]


@given(budget=st.integers(1, 40), draw=st.integers(0, 10**9), values=st.integers(1, 12), high=st.integers(1, 9))
@quickly
def test_the_budget_or_every_combination_is_sampled_and_no_point_twice(budget, draw, values, high):
    draws = {"learner.batch": Choice([2 + v for v in range(values)]), "learner.epochs": Range(1, high)}
    points = Sweep(
        shared=[{"learner": {"name": "naive"}}], axes={}, draws=draws, budget=budget, random_seed=draw
    ).points()
    assert len(points) == len({p.hash for p in points}) == min(budget, values * high)


def test_points_with_the_same_hash_are_one():
    assert len(sweep('[axes]\nseeds = [2, [0, 1], 3]\n[learner]\nname = "naive"').points()) == 2


def test_logarithms_are_uniform_and_so_are_choices():
    points = sweep("budget = 600\n" + DRAWN + '"learner.batch" = [32, 64, 128]\n').points()
    share = np.sort((np.log10(chosen(points, "lr")) + 4) / 3)
    assert np.abs(share - (np.arange(600) + 0.5) / 600).max() < 1.6 / 600**0.5  # Kolmogorov and Smirnov, 1 in 80
    assert all(abs(chosen(points, "batch").count(batch) - 200) < 50 for batch in (32, 64, 128))


def test_the_base_lies_beside_the_sweep_which_overrides_it(tmp_path):
    Path("deep").mkdir()
    Path("deep/base.toml").write_text(BASE)
    Path("deep/s.toml").write_text('base = "base.toml"\nseeds = 2\n[learner]\nepochs = 3\n[axes]\nseeds = [4, 5]')
    points = Sweep.read(Path("deep/s.toml"), ["device=auto"]).points()
    assert [(p.seeds, p.device, p.learner.epochs, p.learner.optimiser) for p in points] == [
        (tuple(range(n)), "auto", 3, "sgd") for n in (4, 5)
    ]


def test_an_override_replaces_an_axis_or_random_setting_in_all_points():
    assert chosen(sweep(GRID, "learner.epochs=7").points(), "epochs") == [7] * 4
    assert [(p.learner.lr, p.learner.batch) for p in sweep(GRID, "learner.lr=0.5").points()] == [(0.5, 32), (0.5, 64)]
    assert chosen(sweep("budget = 9\n" + DRAWN, "learner.lr=0.5").points(), "lr") == [0.5]
