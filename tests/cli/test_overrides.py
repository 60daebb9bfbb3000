"""Arguments that commands share: an experiment, its options, plug-ins."""

from pathlib import Path

import click
import pytest
from click.testing import CliRunner
from support.experiments import parsed
from support.fake_runs import fake_run_of
from support.plugins import write_plugin

from prer.cli.overrides import experiment_of, is_new, overrides, plugin_options, with_plugins
from prer.errors import InputError, Interrupted
from prer.learners import registry


@pytest.mark.parametrize(
    ("seeds", "device", "expected"),
    [
        (None, None, []),
        ("5", None, ["seeds=5"]),
        ("0,1,7", "cpu", ["seeds=[0,1,7]", "device=cpu"]),
        ("", "", ["seeds=", "device="]),
    ],
)
def test_options_are_settings_that_come_last(seeds, device, expected):
    given = ("learner.epochs=1", "seeds=9")
    assert overrides(given, seeds, device) == [*given, *expected]


def test_an_experiment_is_a_file_and_settings(tmp_path):
    file = tmp_path / "e.toml"
    file.write_text('seeds = 3\n[learner]\nname = "naive"\nepochs = 7\n')
    assert experiment_of((), None, None) == parsed()
    assert experiment_of(("learner.epochs=3",), "2", "cpu") == parsed("learner.epochs=3", "seeds=2", "device=cpu")
    found = experiment_of((str(file), "learner.epochs=8"), "0,4", None)
    assert (found.learner.name, found.learner.epochs, found.seeds) == ("naive", 8, (0, 4))
    with pytest.raises(InputError, match=r"'e.toml' is not of the form key=value"):
        experiment_of(("learner.epochs=8", "e.toml"), None, None)


def test_an_experiment_is_new_until_it_has_a_result(tmp_path):
    settings = ("learner.name=naive",)
    assert is_new(settings, "2", "cpu", tmp_path)
    assert not is_new(("learner.nane=naive",), "2", "cpu", tmp_path)  # it cannot be run
    fake_run_of(tmp_path, parsed(*settings, "seeds=2", "device=cpu"), [90.0, 91.0], [0.0, 0.0])
    assert not is_new(settings, "2", "cpu", tmp_path)
    assert is_new(settings, "3", "cpu", tmp_path)


@pytest.fixture
def command(monkeypatch):
    """A command with plug-ins that shows the names of learners and the options for another command."""
    monkeypatch.setattr(registry, "_registered", {})
    monkeypatch.setattr(registry, "_sources", {})

    @click.command()
    @click.option("--stop", is_flag=True)
    @with_plugins
    def show(stop):
        click.echo("pulled" in registry.names())
        click.echo(plugin_options())
        if stop:
            raise Interrupted(2)

    return show


def test_plugins_are_loaded_before_the_command_starts(command, tmp_path):
    file = write_plugin(tmp_path)
    assert CliRunner().invoke(command, []).output.splitlines() == ["False", "[]"]
    done = CliRunner().invoke(command, ["--plugin", str(file)])
    assert done.output.splitlines() == ["True", str(["--plugin", str(file)])]


def test_an_interrupted_command_says_its_plugins(command, tmp_path):
    file = write_plugin(tmp_path)
    with pytest.raises(Interrupted) as caught:
        CliRunner().invoke(command, ["--stop", "--plugin", str(file)])
    assert caught.value.options == ["--plugin", str(file)]


def test_options_of_given_files():
    assert plugin_options([Path("a.py"), Path("b c.py")]) == ["--plugin", "a.py", "--plugin", "b c.py"]
