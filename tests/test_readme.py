"""What the README shows works as it stands."""

import re
import tomllib
from pathlib import Path

import click
import pytest

from prer.cli.main import commands
from prer.learners import LEARNERS
from prer.runs.experiment import Experiment
from prer.sweeps.sweep import Sweep

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text("utf-8")
TINY = "PRER(epochs=1, epochs_autoencoder=1, density={'epochs': 1, 'blocks': 1})"


def blocks(language):
    return re.findall(rf"```{language}\n(.*?)```", README, re.DOTALL)


def test_its_experiment_is_one():
    block, _ = blocks("toml")
    experiment = Experiment.parse(tomllib.loads(block))
    assert experiment.learner.density.epochs == 50


def test_its_python_runs_from_the_first_line_to_the_last(capsys, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    names, shapes = {}, []
    for block in blocks("python"):
        exec(re.sub(r'PRER\((?:)\)|PRER\.like\("digits"\)', TINY, block), names)
        shapes.append(names["result"].matrix.shape)
    assert shapes == [(5, 5, 5), (2, 3, 3), (5, 5, 5)]
    assert not Path("checkpoint").exists()


@pytest.mark.slow
def test_its_python_gives_the_numbers_it_says(capsys):
    (said,) = re.findall(r"prints an Accuracy of ([\d.]+) and a BWT of (−?[\d.]+)", README)
    names = {}
    exec(blocks("python")[0], names)
    metrics = names["result"].metrics
    found = [metrics[key]["mean"] for key in ("accuracy", "bwt")]
    assert found == pytest.approx([float(text.replace("−", "-")) for text in said], abs=1)  # processors round otherwise


@pytest.mark.parametrize("line", re.findall(r"^    ((?:prer|scripts/run) .*?)(?:   .*)?$", README, re.MULTILINE))
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
    (tmp_path / "my-experiment.toml").write_text(experiment)
    (tmp_path / "sweep.toml").write_text(sweep)
    assert len(Sweep.read(tmp_path / "sweep.toml").points()) == 60


def test_its_learners_are_all_there_are():
    assert set(re.findall(r"^\| `(\w+)` \| ", README.split("## The eight concepts")[1], re.MULTILINE)) == set(LEARNERS)


def test_the_file_list_is_the_files():
    text, package = (ROOT / "CONTRIBUTING.md").read_text("utf-8"), ROOT / "prer"
    listed = set(re.findall(r"^    (prer/\S+)", text, re.MULTILINE))
    plumbing = {"__init__.py", "__main__.py", "errors.py", "version.py"}
    there = {f"prer/{p.name}" for p in package.glob("*.py") if p.name not in plumbing}
    assert listed == there | {f"prer/{p.parent.name}/" for p in package.glob("*/__init__.py")}


@pytest.mark.parametrize("file", ["README.md", "docs/trackers.md", "prer/cli/run.py"])
def test_the_run_it_names_is_the_built_in_one(file):
    names = set(re.findall(r"digits-prer-[0-9a-f]{8}", (ROOT / file).read_text("utf-8")))
    assert names == {Experiment.parse({}).folder}
