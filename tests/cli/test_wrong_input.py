"""Wrong input and damaged runs are refused in one line, and nothing is changed."""

import json
import os
import re

import numpy as np
import pytest
from support.commands import NAIVE, NAIVE_RUN, begun, ended, python, refused, said
from support.folders import contents

pytestmark = pytest.mark.usefixtures("no_terminal")

WRONG = {
    "unknown key": (["run", "learner.wieght=1"], "did you mean 'weight'?"),
    "wrong type": (["run", "learner.epochs=many"], "expected a whole number or auto"),
    "wrong seeds": (["run", "--seeds", "x,y"], "seeds="),
    "no seeds": (["run", "--seeds", "0"], "seeds=0"),
    "empty seeds": (["run", "--seeds", ""], "seeds="),
    "unknown device": (["run", "--device", "gpu"], "device 'gpu' is not available; this machine has cpu"),
    "a device without numbers": (["run", *NAIVE, "--device", "meta"], "device 'meta' is not available"),
    "unknown learner": (["run", "learner.name=ewcc"], "unknown learner 'ewcc'"),
    "no file": (["run", "nowhere.toml"], "there is no file nowhere.toml"),
    "two files": (["run", "learner.epochs=1", "b.toml"], "'b.toml' is not of the form key=value"),
    "missing data": (
        ["run", "stream.data=nowhere.npz"],
        "neither a file nor a known data set; known: digits, mnist, kmnist",
    ),
    "wrong classes": (["run", "stream.classes_per_task=3"], "task 4 has one class"),
    "out below a file": (["run", "--out", "file/below"], "cannot write the run folder file/below/"),
    "out is a file": (["run", "--out", "file"], "cannot write the run folder file/"),
    "out too long": (["run", "--out", "a" * 300], "cannot write the run folder"),
    "name that is no UTF-8": (["run", *NAIVE, "name=\udcff"], "name"),
    "show of nothing": (["show", "nowhere"], "nowhere is not a run folder"),
    "show of a file": (["show", "file"], "file is not a run folder"),
    "show of a folder": (["show", "."], "is not a run folder"),
    "show of several with a wrong one": (["show", "RUN", "nowhere"], "nowhere is not a run folder"),
}


@pytest.mark.parametrize("case", WRONG)
def test_wrong_input_is_refused_in_one_line_and_changes_nothing(capsys, finished, tmp_path, case):
    arguments, words = WRONG[case]
    (tmp_path / "file").write_text("mine")
    before = contents(tmp_path)
    assert words in refused(capsys, *(finished if word == "RUN" else word for word in arguments))
    after = contents(tmp_path)
    assert {path: after.get(path) for path in before} == before


@pytest.mark.parametrize("case", ["unknown key", "out below a file", "show of nothing"])
def test_wrong_input_ends_a_process_with_2(tmp_path, case):
    (tmp_path / "file").write_text("mine")
    words = WRONG[case][0]
    if words[0] == "show":  # needs no torch
        done = python("-m", "prer", *words)
        code, out, err = done.returncode, done.stdout, done.stderr
    else:
        code, out, err = ended(begun(words))
    assert (code, out) == (2, "")
    assert re.fullmatch(r"prer: [^\n]+\n", err)


@pytest.mark.parametrize("command", [["run"], ["sweep"], ["sweep", "best"]])
def test_a_pipe_in_place_of_an_experiment_is_not_waited_for(tmp_path, command):
    os.mkfifo(tmp_path / "e.toml")
    assert ended(begun([*command, "e.toml"], seconds=20)) == (
        2,
        "",
        "prer: e.toml cannot be read as TOML: it is not a regular file\n",
    )


def test_data_that_changed_is_noticed(capsys, tmp_path):
    """Also where each class keeps its place within its task."""
    x, y = np.random.default_rng(1).normal(size=(48, 4)).astype(np.float32), np.arange(48) % 4
    run = ("run", "stream.data=my.npz", *NAIVE, "--seeds", "1")
    np.savez(tmp_path / "my.npz", x=x, y=y)
    said(capsys, *run)
    np.savez(tmp_path / "my.npz", x=x, y=np.array([2, 1, 0, 3])[y])
    assert "the data has changed" in ended(begun(run))[2]


# -- damaged runs ----------------------------------------------------------------------------------------------------


def changed(**values):
    return lambda text: json.dumps(json.loads(text) | values)


DAMAGED = {
    "result cut off": ("result.json", lambda text: text[:100], "cannot be read; delete it and run again"),
    "result empty": ("result.json", lambda text: "", "cannot be read"),
    "result no object": ("result.json", lambda text: "5", "cannot be read"),
    "result a list": ("result.json", lambda text: "[]", "lacks seeds, matrix, accuracy, bwt"),
    "result without matrix": ("result.json", lambda text: text.replace('"matrix"', '"Matrix"'), "lacks matrix"),
    "result without seconds": ("result.json", lambda text: text.replace('"seconds"', '"Seconds"'), "lacks seconds"),
    "result with accuracy 5": ("result.json", changed(accuracy=5), "result.json"),
    # BUG: each of these ends in a traceback.
    "result with no matrix": ("result.json", changed(matrix=[]), "result.json"),
    "result with words for a matrix": ("result.json", changed(matrix="x"), "result.json"),
    "result with a ragged matrix": ("result.json", changed(matrix=[[[1, 2], [3]]]), "result.json"),
    "result with one number of seeds": ("result.json", changed(seeds=2), "result.json"),
    "result with words for a mean": (
        "result.json",
        changed(bwt={"mean": "x", "std": None, "values": []}),
        "result.json",
    ),
    "result without total seconds": ("result.json", changed(seconds={}), "result.json"),
    "result without floats": ("result.json", changed(memory_floats=[]), "result.json"),
    "result of a numbered learner": ("result.json", changed(learner=5), "result.json"),
    "experiment no TOML": ("experiment.toml", lambda text: text + "=", "experiment.toml is damaged; move"),
    "experiment no text": ("experiment.toml", lambda text: b"\xff", "experiment.toml is damaged; move"),
    "experiment of another": ("experiment.toml", lambda text: text.replace("epochs = 1", "epochs = 2"), "another"),
    # BUG: a ValueError about the digits of an integer.
    "experiment with a huge number": ("experiment.toml", lambda text: f"{text}x = {'9' * 5000}", "is damaged; move"),
    "experiment empty": ("experiment.toml", lambda text: "", "belongs to a different experiment"),
}


@pytest.mark.parametrize("case", DAMAGED)
def test_a_damaged_run_is_refused_and_left_as_it_is(capsys, finished, case):
    name, damage, words = DAMAGED[case]
    damaged = damage((finished / name).read_text("utf-8"))
    (finished / name).write_bytes(damaged if isinstance(damaged, bytes) else damaged.encode())
    before = contents(finished)
    assert words in refused(capsys, *NAIVE_RUN)
    if name == "result.json":
        assert words in refused(capsys, "show", finished)
    assert contents(finished) == before


def test_a_folder_that_is_no_run_is_refused_and_left_as_it_is(capsys, finished):
    (finished / "experiment.toml").unlink()
    before = contents(finished)
    assert "contains files that are not a run's" in refused(capsys, *NAIVE_RUN)
    assert contents(finished) == before


def test_a_folder_that_may_not_be_written_is_refused(capsys, monkeypatch, finished):
    (finished / "result.json").unlink()
    monkeypatch.setattr(
        "prer.runs.folder.os.access", lambda path, mode: mode != os.W_OK
    )  # who tests as root may write anywhere
    before = contents(finished)
    assert f"cannot write the run folder {finished}: not writable" in refused(capsys, *NAIVE_RUN)
    assert contents(finished) == before


def test_two_names_of_one_folder_are_two_experiments(capsys, arrays, tmp_path):
    said(capsys, "run", arrays, *NAIVE, "--seeds", "1", "name=A b")
    before = contents(tmp_path)
    assert "belongs to a different experiment" in refused(capsys, "run", arrays, *NAIVE, "--seeds", "1", "name=a-b")
    assert contents(tmp_path) == before
