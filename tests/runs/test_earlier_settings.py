"""Runs, sweeps and checkpoints in which a setting has the name of version 0.1.0, mixed with those of now."""

import json

import pytest
from support.fake_runs import fake_run

from prer.errors import InputError
from prer.report.comparison import tests as paired_tests
from prer.report.run import runs_in
from prer.runs.discovery import counterpart, discover
from prer.runs.experiment import Experiment, modernised
from prer.runs.folder import RunFolder
from prer.sweeps.sweep import Sweep
from prer.version import __version__

TINY = ["seeds=2", "learner.epochs=1", "device=cpu"]


def rename(folder, new="shuffle_seed", old="draw"):
    """Write the setting of a run folder under its old name."""
    file = folder / "experiment.toml"
    text = file.read_text()
    assert f"\n{new} = " in text
    file.write_text(text.replace(f"\n{new} = ", f"\n{old} = "))


@pytest.fixture
def runs(tmp_path):
    """A naive run with the old name beside a PRER run with the new one."""
    for name in ("naive", "prer"):
        experiment = Experiment.parse({}, [*TINY, f"learner.name={name}"])
        folder = fake_run(tmp_path / name, learner=name, seeds=(0, 1))
        (folder / "experiment.toml").write_text(experiment.to_toml())
    rename(tmp_path / "naive")
    return tmp_path


def test_an_old_naive_run_is_shown_beside_a_new_one(runs):
    assert counterpart(RunFolder(runs / "prer"), "naive").path == (runs / "naive").resolve()
    assert RunFolder(runs / "naive").setting("stream.draw") == RunFolder(runs / "prer").setting("stream.shuffle_seed")


def test_they_are_compared_by_paired_tests(runs):
    found, _ = runs_in([runs])
    assert len(paired_tests(found)) == 1


def test_a_run_with_both_names_is_shown_and_not_run(runs):
    file = runs / "prer" / "experiment.toml"
    file.write_text(file.read_text().replace("\nshuffle_seed = 0", "\ndraw = 0\nshuffle_seed = 0"))
    assert RunFolder(runs / "prer").setting("stream.shuffle_seed") == "0"
    with pytest.raises(InputError, match=r"stream.draw is called stream.shuffle_seed now, and both are given"):
        Experiment.parse_run(RunFolder(runs / "prer").experiment)


@pytest.mark.parametrize("axis", ["stream.draw", "stream.shuffle_seed"])
@pytest.mark.parametrize("base", ["naive", "prer"])
def test_a_sweep_may_mix_the_names(runs, axis, base):
    file = runs / "sweep.toml"
    file.write_text(f'base = "{base}/experiment.toml"\nstream.shuffle = true\n[axes]\n"{axis}" = [1, 2]\n')
    assert [point.stream.shuffle_seed for point in Sweep.read(file).points()] == [1, 2]
    for override in ("stream.draw=5", "stream.shuffle_seed=5"):  # it replaces the axis
        assert [point.stream.shuffle_seed for point in Sweep.read(file, [override]).points()] == [5]


def test_a_context_that_is_not_understood_stays_as_it_is():
    context = {"prer": "0.1.0", "experiment": {"stream": {"zoom": 1}}}
    assert modernised(context) == {"prer": __version__, "experiment": {"stream": {"zoom": 1}}}
    assert modernised({"prer": "9", "experiment": 3}) == {"prer": "9", "experiment": 3}


def test_a_folder_that_may_not_be_read_hides_no_run(runs, monkeypatch):
    from pathlib import Path

    is_file = Path.is_file

    def refusing(self, *more):
        if "closed" in self.parts:
            raise PermissionError(13, "not allowed")
        return is_file(self, *more)

    (runs / "closed").mkdir()
    monkeypatch.setattr(Path, "is_file", refusing)
    assert [path.name for path in discover([runs])[0]] == ["naive", "prer"]
    assert counterpart(RunFolder(runs / "prer"), "naive") is not None


def test_a_version_of_any_length_is_cut(runs):
    (runs / "prer" / "environment.json").write_text(json.dumps({"prer": "9" * 10**6}))
    assert len(RunFolder(runs / "prer").earlier_version) == 40
