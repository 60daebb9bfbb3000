"""What the README shows works as it stands."""

import re
import tomllib
from pathlib import Path

import click
import numpy as np
import pytest

from prer.cli import commands
from prer.experiment import Experiment
from prer.sweep import Sweep

README = (Path(__file__).parents[1] / "README.md").read_text("utf-8")


def blocks(language):
    return re.findall(rf"```{language}\n(.*?)```", README, re.DOTALL)


def test_its_experiment_is_one():
    block, _ = blocks("toml")
    experiment = Experiment.parse(tomllib.loads(block))
    assert experiment.learner.epochs_flow == 50


@pytest.mark.parametrize(("block", "shape"), list(zip(blocks("python"), [(5, 2, 2), (2, 3, 3)], strict=True)))
def test_its_python_runs(block, shape, capsys):
    rng = np.random.default_rng(0)
    names = {"x": rng.normal(size=(40, 3)), "y": np.repeat([0, 1, 2, 3], 10)}
    exec(block.replace("PRER()", "PRER(epochs=1, epochs_autoencoder=1, epochs_flow=1, blocks=1)"), names)
    assert names["result"].matrix.shape == shape


@pytest.mark.parametrize("line", re.findall(r"^    (prer .*?)(?:   .*)?$", README, re.MULTILINE))
def test_its_commands_are_understood(line):
    words = [word for word in line.split()[1:] if word != "..."]
    group = commands
    while isinstance(command := group.commands[words[0]], click.Group):
        group, words = command, words[1:]
    context = command.make_context(words[0], words[1:])
    settings = [word for word in context.params.get("settings", ()) if "=" in word]
    assert Experiment.parse({}, [s for s in settings if not s.startswith("stream.data")])


def test_its_sweep_is_one(tmp_path):
    experiment, sweep = blocks("toml")
    (tmp_path / "my-experiment.toml").write_text(experiment.replace("epochs_flow = 50", ""))
    (tmp_path / "sweep.toml").write_text(sweep)
    assert len(Sweep.read(tmp_path / "sweep.toml").points()) == 60


def test_its_file_list_is_the_files():
    listed = set(re.findall(r"^    (prer/\S+)", README, re.MULTILINE))
    package = Path(__file__).parents[1] / "prer"
    plumbing = {"__init__.py", "__main__.py", "errors.py", "version.py"}
    there = {f"prer/{p.name}" for p in package.glob("*.py") if p.name not in plumbing}
    assert listed == there | {f"prer/{p.parent.name}/" for p in package.glob("*/__init__.py")}


def test_the_run_it_names_is_the_built_in_one():
    names = set(re.findall(r"digits-prer-[0-9a-f]{8}", README))
    assert names == {Experiment.parse({}).folder}
