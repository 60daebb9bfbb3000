"""Paths, links, devices and pipes in a run folder: nothing is written elsewhere, and nothing hangs."""

import json
import os
import re
import shutil

import pytest
from support.commands import bounded, outcome, refused
from support.folders import contents, copied, digest, sign_checkpoint, sign_result

FILES = ("experiment.toml", "environment.json", "events.jsonl", "run.lock", "checkpoint/checkpoint.json")
FILES += ("checkpoint/state.safetensors", "result.json", "model/model.json", "model/model.safetensors")
LEFT_OVER = (".experiment.toml.new", ".environment.json.new", ".events.jsonl.new", ".result.json.new")
FOLDERS = ("checkpoint", "checkpoint.new", "checkpoint.old", "model")


def leaves(tree):
    """The places of all strings in nested values, as owner and key."""
    for key in list(tree) if isinstance(tree, dict) else range(len(tree)):
        if isinstance(tree[key], str):
            yield tree, key
        elif isinstance(tree[key], dict | list):
            yield from leaves(tree[key])


@pytest.mark.parametrize("file", ["checkpoint/checkpoint.json", "environment.json", "result.json"])
@pytest.mark.parametrize("path", ["../../outside/x", "OUTSIDE"])
def test_a_path_in_any_value_is_not_followed(capsys, tmp_path, stopped, finished, file, path):
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "mine").write_text("mine")
    source = finished if file == "result.json" else stopped
    tree = json.loads((source / file).read_text())
    places = len(list(leaves(tree)))
    assert places > 3
    for number in range(places):
        run = copied(source, tmp_path / "in")
        changed = json.loads((run / file).read_text())
        owner, key = list(leaves(changed))[number]
        owner[key] = path.replace("OUTSIDE", str(outside))
        if file == "result.json":
            sign_result(run, **{k: v for k, v in changed.items() if k != "sha256"})
        elif file == "environment.json":
            (run / file).write_text(json.dumps(changed))
        else:
            sign_checkpoint(run, changed["content"])
        outcome(capsys, "resume", run)
        outcome(capsys, "show", run)
        assert contents(outside) == {"mine": b"mine"}
        assert sorted(entry.name for entry in tmp_path.iterdir()) == ["in", "outside"]
        shutil.rmtree(run.parent)


@pytest.mark.parametrize("name", ["../../evil", "/tmp/evil", "..", ".", "a/../../b"])
def test_the_name_of_an_experiment_is_no_path(capsys, tmp_path, monkeypatch, run, name):
    monkeypatch.chdir(run.parent)
    text = (run / "experiment.toml").read_text()
    (run / "experiment.toml").write_text(re.sub(r"(?m)^name = .*$", f"name = {json.dumps(name)}", text, count=1))
    refused(capsys, "resume", run)
    assert outcome(capsys, "resume", run, "--force", "--quiet")[0] == 0
    assert [entry.name for entry in tmp_path.iterdir()] == ["in"]
    assert [entry.name for entry in run.parent.iterdir()] == [run.name]


@pytest.mark.parametrize("name", [*FILES, *LEFT_OVER, *FOLDERS])
@pytest.mark.parametrize("state", ["stopped", "finished"])
def test_a_link_is_never_written_through(capsys, tmp_path, stopped, finished, name, state):
    run = copied(stopped if state == "stopped" else finished, tmp_path / "in")
    outside, entry = tmp_path / "outside", run / name
    outside.mkdir()
    if entry.exists():
        entry.rename(outside / "there")
    elif name in FOLDERS:
        (outside / "there").mkdir()
        (outside / "there/mine").write_text("mine")
    else:
        (outside / "there").write_text("mine")
    if entry.parent.exists():
        entry.symlink_to(outside / "there")
    before = contents(outside)
    for command in (["show", run], ["resume", run, "--quiet"], ["resume", run, "--quiet", "--force"]):
        code, _, _ = outcome(capsys, *command)
        assert code in (0, 2)
        assert contents(outside) == before
    if code == 0 and (run / "result.json").exists():
        assert digest(run) == digest(finished)


@pytest.mark.parametrize("name", [*FILES, LEFT_OVER[2], "checkpoint", "checkpoint.new", "model"])
@pytest.mark.parametrize("what", ["/dev/zero", "pipe", "folder"])
def test_devices_and_pipes_in_place_of_a_file_are_not_waited_for(capsys, tmp_path, stopped, finished, name, what):
    source = finished if name.startswith(("result", "model")) else stopped
    run = copied(source, tmp_path / "in")
    entry = run / name
    if entry.is_dir():
        shutil.rmtree(entry)
    entry.unlink(missing_ok=True)
    if what == "pipe":
        os.mkfifo(entry)
    elif what == "folder":
        entry.mkdir()
    else:
        entry.symlink_to(what)
    bounded("show", run)
    code, _ = bounded("resume", run, "--quiet")
    if code == 0 and (run / "result.json").is_file():
        assert digest(run) == digest(finished)


def test_data_that_is_a_device_or_a_pipe_is_not_waited_for(tmp_path, run):
    os.mkfifo(tmp_path / "pipe")
    (run / "environment.json").unlink()
    text = (run / "experiment.toml").read_text()
    for path in ("/dev/zero", tmp_path / "pipe", "/proc/self/mem", "/"):
        (run / "experiment.toml").write_text(re.sub(r"(?m)^data = .*?  #", f'data = "{path}"  #', text))
        assert bounded("resume", run, "--force")[0] == 2
