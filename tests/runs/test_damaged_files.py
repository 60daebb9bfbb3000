"""Missing, flipped and torn files of a run folder: the result stays the same, or the file is refused."""

import shutil

import numpy as np
import pytest
from support.commands import outcome
from support.folders import assert_resumes, copied, digest

FILES = ("experiment.toml", "environment.json", "events.jsonl", "checkpoint/checkpoint.json")
FILES += ("checkpoint/state.safetensors",)


@pytest.mark.parametrize("file", [*FILES, "run.lock", "checkpoint"])
def test_a_file_that_is_missing_is_named_or_not_needed(capsys, monkeypatch, run, stopped, finished, file):
    monkeypatch.chdir(stopped.parents[1])  # where its data lies
    shutil.rmtree(run / file) if file == "checkpoint" else (run / file).unlink(missing_ok=True)
    code, _, err = outcome(capsys, "resume", run, "--quiet")
    needed = {"experiment.toml": "is not a run folder", "checkpoint/checkpoint.json": "damaged"}
    needed |= {"checkpoint/state.safetensors": "damaged"}
    if file in needed:
        assert code == 2 and needed[file] in err
        assert not (run / "result.json").exists()
    else:
        assert code == 0 and digest(run) == digest(finished)


@pytest.mark.parametrize("file", FILES)
def test_flipped_bits_never_give_another_result(capsys, stopped, finished, tmp_path, file):
    rng, codes = np.random.default_rng(FILES.index(file)), []
    for number in range(25):
        run = copied(stopped, tmp_path / str(number))
        damaged = bytearray((run / file).read_bytes())
        damaged[rng.integers(len(damaged))] ^= 1 << int(rng.integers(8))
        (run / file).write_bytes(damaged)
        code, _, _ = outcome(capsys, "resume", run, "--quiet")
        assert digest(run) == digest(finished) if code == 0 else not (run / "result.json").exists()
        codes.append(code)
        shutil.rmtree(run)
    assert 2 in codes or file == "events.jsonl"


def test_flipped_bits_in_a_result_are_noticed(capsys, finished, tmp_path):
    rng, right = np.random.default_rng(0), outcome(capsys, "show", finished)[1].splitlines()[:-1]
    for number in range(60):
        run = copied(finished, tmp_path / str(number))
        damaged = bytearray((run / "result.json").read_bytes())
        damaged[rng.integers(len(damaged))] ^= 1 << int(rng.integers(8))
        (run / "result.json").write_bytes(damaged)
        for command in ("show", "resume"):
            code, out, err = outcome(capsys, command, run)
            if code == 0:
                assert out.splitlines()[:-1] == right
            else:
                assert code == 2 and "result.json" in err and "delete it and run again" in err


def test_a_torn_last_event_is_written_again(capsys, run, finished):
    file = run / "events.jsonl"
    file.write_bytes(file.read_bytes() + b'{"event": "epoch", "task": 1, "pha')
    assert_resumes(capsys, run, finished)


def test_events_after_the_checkpoint_are_not_repeated(capsys, run, finished):
    file = run / "events.jsonl"
    file.write_bytes(file.read_bytes() + file.read_bytes())
    assert_resumes(capsys, run, finished)
