"""The options that choose an engine reach it."""

from pathlib import Path

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


def test_options_of_slurm_reach_it_and_no_other_engine(monkeypatch, capsys):
    pytest.importorskip("submitit")
    made = []
    monkeypatch.setattr(
        "prer.sweeps.engines.slurm.Slurm", lambda *about, **own: made.append((about, own)) or InThisProcess()
    )
    sweep(GRID)
    main(
        [
            "sweep",
            "sweep.toml",
            "learner.lr=0.1",
            "learner.batch=64",
            "--engine",
            "slurm",
            "--per-job",
            "2",
            "--sbatch",
            "time=5",
        ]
    )
    assert made == [((None, [], 1), {"sbatch": {"time": "5"}, "per_job": 2})]
    capsys.readouterr()
    assert "--per-job applies only to --engine slurm" in refused(capsys, "sweep", "sweep.toml", "--per-job", "2")
    assert "give KEY=VALUE" in refused(capsys, "sweep", "sweep.toml", "--engine", "slurm", "--sbatch", "gpu")


def test_options_of_ray_reach_it_and_amounts_are_numbers(monkeypatch, capsys):
    pytest.importorskip("ray")
    made = []
    monkeypatch.setattr("prer.sweeps.engines.ray.Ray", lambda *about, **own: made.append(own) or InThisProcess())
    sweep(GRID)
    words = ["sweep", "sweep.toml", "learner.lr=0.1", "learner.batch=64", "--engine", "ray"]
    main([*words, "--address", "head:1", "--resource", "CPU=2", "--resource", "GPU=0.5", "--apart"])
    assert made == [{"address": "head:1", "resources": {"CPU": 2, "GPU": 0.5}, "apart": True}]
    capsys.readouterr()
    assert "give a number, such as CPU=2" in refused(capsys, *words, "--resource", "CPU=two")


def test_a_dry_run_prints_the_batch_script_and_sends_nothing(capsys):
    pytest.importorskip("submitit")
    sweep(GRID)
    main(["sweep", "sweep.toml", "--engine", "slurm", "--dry-run"])
    assert "#SBATCH --array=0-3%4\n" in capsys.readouterr().out and not Path("runs").exists()
    with pytest.raises(SystemExit):
        main(["sweep", "sweep.toml", "--dry-run"])
    assert "--dry-run applies only to --engine slurm" in capsys.readouterr().err


def test_two_ways_to_say_how_many_runs_there_are_are_refused(capsys):
    sweep(GRID)
    for command in (["sweep", "sweep.toml"], ["reproduce", "table1", "--fast"]):
        assert "give one of them" in refused(capsys, *command, "--workers", "2", "--per-gpu", "2")
