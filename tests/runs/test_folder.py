"""The run folder: who may use it, and what is read of it."""

import json

import pytest

from prer.errors import InputError
from prer.runs.folder import RunFolder
from prer.version import __version__


@pytest.fixture
def folder(tmp_path):
    return RunFolder(tmp_path)


def write_environment(folder, **values):
    (folder.path / "environment.json").write_text(json.dumps(values))


# -- who may use it ----------------------------------------------------------------------------------------------------


def test_a_run_whose_first_file_was_cut_short_can_begin(folder):
    (folder.path / ".experiment.toml.new").write_text("seeds =")
    (folder.path / "run.lock").touch()
    folder.claim(lambda tables: False)


def test_a_folder_is_claimed_by_its_own_experiment_alone(folder):
    (folder.path / "experiment.toml").write_text("seeds = 1\n")
    folder.claim(lambda tables: tables == {"seeds": 1})
    with pytest.raises(InputError, match="belongs to a different experiment"):
        folder.claim(lambda tables: False)


def test_a_folder_that_holds_something_else_is_not_claimed(folder):
    (folder.path / "thesis.docx").touch()
    with pytest.raises(InputError, match="contains files that are not a run's"):
        folder.claim(lambda tables: True)


def test_only_one_process_writes_a_folder(folder):
    assert not folder.running()
    with folder.writing():
        assert folder.running()
        with (
            pytest.raises(InputError, match="another process"),
            RunFolder(folder.path).writing(),
        ):
            pass
    assert not folder.running()


# -- what is read of it ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("place", ["checkpoint", "checkpoint.new", "checkpoint.old"])
def test_a_run_keeps_to_its_threads_wherever_its_checkpoint_lies(folder, place):
    write_environment(folder, threads=3)
    (folder.path / place).mkdir()
    assert folder.threads == 3


@pytest.mark.parametrize("text", [None, "", "[]", "{", '{"tasks": "5", "phases": [1], "warnings": 3, "threads": 0}'])
def test_a_damaged_environment_is_unknown(folder, text):
    if text is not None:
        (folder.path / "environment.json").write_text(text)
    assert (folder.tasks, folder.phases, folder.warnings, folder.threads) == (0, {}, [], None)
    assert (folder.data_sha256, folder.earlier_version) == (None, "")


def test_what_the_environment_says(folder):
    write_environment(folder, tasks=5, phases={"flow": 2}, warnings=["small", 3], data_sha256="ab", prer="0.0.9")
    assert (folder.tasks, folder.phases, folder.warnings) == (5, {"flow": 2}, ["small"])
    assert (folder.data_sha256, folder.earlier_version) == ("ab", "0.0.9")
    folder.check_data("ab")
    with pytest.raises(InputError, match="the data has changed"):
        folder.check_data("cd")
    write_environment(folder, prer=__version__)
    assert folder.earlier_version == ""


def test_a_setting_is_found_by_its_dotted_key(folder):
    (folder.path / "experiment.toml").write_text("seeds = 2\n[learner]\nlr = 0.1\n")
    found = [folder.setting(key) for key in ("seeds", "learner.lr", "learner.batch", "seeds.x")]
    assert found == ["2", "0.1", "-", "-"]


def test_the_newest_events_are_found_in_a_long_file(folder):
    for number in range(2000):
        folder.event({"event": "epoch", "number": number, "text": "x" * 100})
    newest = [event["number"] for event in folder.newest() if event]
    assert newest == list(range(newest[0], 2000)) and 100 < len(newest) < 400


def test_the_reason_of_a_failure_is_that_of_the_last_event(folder):
    assert folder.failure == ""
    folder.event({"event": "failed", "reason": "the loss became nan"})
    assert folder.failure == "the loss became nan"
    folder.event({"event": "epoch"})
    assert folder.failure == ""
