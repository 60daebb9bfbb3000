"""Files of a run folder that are huge or nested deeply: they neither fill the memory nor end in a traceback."""

import json
import os

import pytest
from support.commands import bounded, outcome
from support.folders import checkpoint_content, copied, digest, sign_checkpoint, sign_result

FILES = ("experiment.toml", "environment.json", "events.jsonl", "run.lock", "checkpoint/checkpoint.json")
FILES += ("checkpoint/state.safetensors", "result.json", "model/model.json", "model/model.safetensors")
STATE = "checkpoint/state.safetensors"


@pytest.mark.parametrize("command", [["track"], ["track", "--follow"], ["report"]])
def test_a_giant_file_of_events_is_not_read(stopped, tmp_path, monkeypatch, command):
    monkeypatch.chdir(tmp_path)
    run = copied(stopped, tmp_path / "in")
    os.truncate(run / "events.jsonl", 64 * 2**30)
    code, err = bounded(*command, run)
    assert code == 0 if command == ["report"] else "events.jsonl is larger than 256 MiB, the limit for events" in err


@pytest.mark.parametrize("name", FILES)
def test_ten_gigabytes_in_place_of_a_file_are_not_read(stopped, finished, tmp_path, name):
    run = copied(finished if name.startswith(("result", "model")) else stopped, tmp_path / "in")
    (run / name).touch()
    os.truncate(run / name, 10 * 2**30)
    bounded("show", run)
    code, _ = bounded("resume", run, "--quiet")
    if code == 0:
        assert digest(run) == digest(finished)


def test_ten_gigabytes_are_not_read_even_when_the_checkpoint_asks_for_them(run, monkeypatch):
    monkeypatch.setattr("prer.disk.os.sysconf", lambda name: 2**16)  # a machine with 4 GiB
    content = checkpoint_content(run) | {"bytes": 10 * 2**30}
    content["about"]["events"] = 10 * 2**30
    for file in (STATE, "events.jsonl"):
        os.truncate(run / file, 10 * 2**30)
    sign_checkpoint(run, content)
    code, err = bounded("resume", run)
    assert code == 2 and "too large" in err


def test_ten_gigabytes_of_events_are_truncated_without_reading_them_whole(run, finished):
    content = checkpoint_content(run)
    content["about"]["events"] = 10 * 2**30
    sign_checkpoint(run, content)
    os.truncate(run / "events.jsonl", 10 * 2**30)
    assert bounded("resume", run, "--quiet")[0] == 0
    assert digest(run) == digest(finished)


def test_a_huge_matrix_is_not_printed(done):
    size = 700
    sign_result(done, matrix=[[[1.0] * size] * size] * 2, memory_bytes=[0] * size)
    assert (done / "result.json").stat().st_size < 2**26
    assert bounded("show", done)[0] == 0


@pytest.mark.parametrize("levels", [100, 450, 950, 5000, 100_000])
@pytest.mark.parametrize("file", ["environment.json", "checkpoint/checkpoint.json", "experiment.toml", "result.json"])
def test_deep_nesting_ends_in_a_sentence(capsys, run, finished, levels, file):
    deep = "[" * levels + "]" * levels
    if file == "experiment.toml":
        (run / file).write_text((run / file).read_text() + f"\ndeep = {deep}\n")
    elif file == "environment.json":
        text = (run / file).read_text()
        (run / file).write_text(text.rstrip("}\n") + f', "deep": {deep}}}')
    elif file == "result.json":
        (run / file).write_text((finished / file).read_text().rstrip("}\n") + f', "deep": {deep}}}')
    else:
        (run / file).write_text((run / file).read_text().replace('"ledger": {', f'"deep": {deep}, "ledger": {{', 1))
        if levels < 900:
            content = json.loads((run / file).read_text())["content"]
            sign_checkpoint(run, content)
    outcome(capsys, "show", run)
    code, _, _ = outcome(capsys, "resume", run, "--quiet")
    if code == 0:
        assert digest(run) == digest(finished)
