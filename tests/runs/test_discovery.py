"""Which folders are runs, and which finished run belongs beside another."""

import json

import pytest
from support.fake_runs import fake_run, forge_result

from prer.runs.discovery import SIGNS, counterpart, discover
from prer.runs.folder import RunFolder


@pytest.mark.parametrize("sign", SIGNS)
def test_any_of_its_files_makes_a_folder_a_run(tmp_path, sign):
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / sign).touch()
    assert discover([tmp_path / "run"]) == ([tmp_path / "run"], [])
    assert discover([tmp_path]) == ([tmp_path / "run"], [])


def test_a_folder_stands_for_the_runs_in_it_and_not_for_those_below(tmp_path):
    for name in ("b", "a", "deep/er/c"):
        (tmp_path / name).mkdir(parents=True)
        (tmp_path / name / "experiment.toml").touch()
    (tmp_path / "notes").mkdir()
    (tmp_path / "events.txt").touch()
    assert discover([tmp_path]) == ([tmp_path / "a", tmp_path / "b"], [])


def test_every_run_is_found_once_and_folders_without_runs_are_told_apart(tmp_path):
    (tmp_path / "runs/a").mkdir(parents=True)
    (tmp_path / "runs/a/events.jsonl").touch()
    (tmp_path / "link").symlink_to(tmp_path / "runs/a")
    (tmp_path / "empty").mkdir()
    given = [tmp_path / name for name in ("empty", "link", "runs", "runs/../runs/a", "missing")]
    assert discover(given) == ([tmp_path / "link"], [tmp_path / "empty", tmp_path / "missing"])


def test_only_the_files_that_are_asked_for_count(tmp_path):
    for name, file in (("finished", "result.json"), ("begun", "experiment.toml")):
        (tmp_path / name).mkdir()
        (tmp_path / name / file).touch()
    assert discover([tmp_path], ["result.json"]) == ([tmp_path / "finished"], [])


# -- the counterpart ---------------------------------------------------------------------------------------------------


@pytest.fixture
def run(tmp_path):
    return RunFolder(fake_run(tmp_path / "prer"))


def test_the_counterpart_met_the_same_stream_with_the_same_seeds(run, tmp_path):
    assert counterpart(run, "naive") is None
    naive = fake_run(tmp_path / "naive", learner="naive")
    fake_run(tmp_path / "ewc", learner="ewc")
    assert counterpart(run, "naive").path == naive
    assert counterpart(RunFolder(naive), "naive") is None  # not itself


@pytest.mark.parametrize("change", ["seeds", "stream", "data", "not finished", "damaged"])
def test_another_experiment_is_no_counterpart(run, tmp_path, change):
    naive = fake_run(
        tmp_path / "naive",
        learner="naive",
        seeds=(0, 1, 3) if change == "seeds" else (0, 1, 2),
        until=1 if change == "not finished" else None,
    )
    if change == "stream":
        toml = naive / "experiment.toml"
        toml.write_text(toml.read_text("utf-8").replace("nowhere.npz", "elsewhere.npz"), "utf-8")
    if change == "data":
        (naive / "environment.json").write_text(json.dumps({"data_sha256": "1" * 64}))
    if change == "damaged":
        forge_result(naive, matrix=[])
    assert counterpart(run, "naive") is None


def test_of_several_counterparts_none_is_taken(run, tmp_path):
    for name in ("one", "two"):
        fake_run(tmp_path / name, learner="naive")
    assert counterpart(run, "naive") is None
