"""`prer show`: one run, several, and naive beside another learner."""

import json
import re
import shutil
import tomllib
from pathlib import Path

import numpy as np
import pytest
from support.arrays import write_vectors
from support.commands import NAIVE, refused, said, strict

pytestmark = pytest.mark.usefixtures("no_terminal")


def test_show_shows_what_the_run_showed(capsys, naive_run, finished):
    shown = said(capsys, "show", finished)
    assert "Accuracy in % of naive on digits, mean of 2 seeds" in shown
    lines = naive_run[0].stdout.splitlines()
    after = lines[lines.index(shown.splitlines()[0]) :]
    assert shown.splitlines() == after[: len(shown.splitlines())]


def test_show_of_several_skips_other_folders_and_counts_them(capsys, finished):
    (finished.parent / "notes.txt").write_text("no run")
    (finished.parent / "empty").mkdir()
    shown = said(capsys, "show", *sorted(finished.parent.iterdir()))
    assert finished.name in shown and shown.splitlines()[-1] == "skipped 2 paths that are not run folders"
    assert "empty is not a run folder" in refused(capsys, "show", finished.parent / "empty")
    assert "notes.txt is not a run folder" in refused(capsys, "show", *[finished.parent / "notes.txt"] * 2)


def test_show_of_a_folder_shows_the_runs_in_it(capsys, finished):
    assert said(capsys, "show", finished.parent) == said(capsys, "show", finished)
    other = Path(shutil.copytree(finished, finished.parent / "other"))
    (finished.parent / "notes.txt").write_text("no run")
    assert said(capsys, "show", finished.parent) == said(capsys, "show", finished, other)


def test_show_of_several_has_a_line_for_each_and_says_which_is_not_finished(capsys, finished):
    other = Path(shutil.copytree(finished, finished.parent / "other"))
    (other / "result.json").unlink()
    accuracy = strict((finished / "result.json").read_text("utf-8"))["accuracy"]["mean"]
    lines = [line for line in said(capsys, "show", finished, other).splitlines() if line.startswith("│")]
    assert len([line for line in lines if "naive" in line and f"{accuracy:.2f}" in line]) == 1
    assert "not" in next(line for line in lines if "other" in line)
    assert "not" in said(capsys, "show", other)


# -- naive beside another learner ------------------------------------------------------------------------------------


def test_naive_on_the_same_stream_and_seeds_is_shown_beside(capsys, arrays):
    joint = ("run", arrays, "learner.name=joint", "learner.epochs=1")
    said(capsys, "run", arrays, *NAIVE, "--seeds", "1")
    said(capsys, "run", arrays, *NAIVE, "--seeds", "2", "stream.resplit=0.5")
    shown = said(capsys, *joint, "--seeds", "1")
    assert re.search(r"joint ┃ +naive ┃", shown)
    assert "naive ┃" not in said(capsys, *joint, "--seeds", "2")
    assert "naive ┃" not in said(capsys, *joint, "--seeds", "3")


def test_a_run_is_shown_from_inside_its_folder_as_from_outside(capsys, monkeypatch, arrays):
    said(capsys, "run", arrays, *NAIVE, "--seeds", "1")
    folder = said(capsys, "run", arrays, "learner.name=joint", "learner.epochs=1", "--seeds", "1", "--quiet").strip()
    assert "naive ┃" in said(capsys, "show", folder)
    monkeypatch.chdir(folder)
    assert "naive ┃" in said(capsys, "show", ".")


@pytest.mark.parametrize("neighbour", ["no experiment", "damaged experiment", "learner no table", "damaged naive"])
def test_a_damaged_neighbour_does_not_keep_a_result_from_being_shown(capsys, arrays, finished, neighbour):
    run = ("run", arrays, "learner.name=joint", "learner.epochs=1", "--seeds", "1")
    alone = said(capsys, *run)
    beside = Path(said(capsys, "run", arrays, *NAIVE, "--seeds", "1", "--quiet").strip())
    toml = beside / "experiment.toml"
    if neighbour == "no experiment":
        toml.unlink()
    elif neighbour == "damaged experiment":
        toml.write_text("learner = ")
    elif neighbour == "learner no table":
        tables = tomllib.loads(toml.read_text("utf-8"))
        stream = ", ".join(f"{key} = {json.dumps(value)}" for key, value in tables["stream"].items())
        toml.write_text(f"seeds = [0]\nlearner = 'naive'\nstream = {{{stream}}}\n")
    else:
        (beside / "result.json").write_text("{")
    results = [out.split("What to try next")[0].splitlines()[-4:] for out in (alone, said(capsys, *run))]
    assert results[0] == results[1] and results[0][0].startswith("Digest of the final state")


def test_naive_on_other_data_is_not_shown_beside(capsys, arrays, tmp_path):
    said(capsys, "run", arrays, *NAIVE, "--seeds", "1")
    x = np.random.default_rng(1).normal(size=(48, 4)).astype(np.float32)
    np.savez(tmp_path / "my.npz", x=x, y=np.array(["[red]", "b", "c", "d"] * 12))
    out = said(capsys, "run", arrays, "learner.name=joint", "learner.epochs=1", "--seeds", "1")
    assert "naive" not in out.split("What to try next")[0]


def test_of_several_naive_runs_none_is_shown_beside(capsys, tmp_path):
    base = ["run", write_vectors(tmp_path / "d.npz", 0), "--seeds", "1", "learner.epochs=1"]
    said(capsys, *base, "learner.name=naive")
    assert "naive ┃" in said(capsys, *base, "learner.name=joint")
    said(capsys, *base, "learner.name=naive", "learner.lr=0.5")
    assert "naive ┃" not in said(capsys, *base, "learner.name=joint")
