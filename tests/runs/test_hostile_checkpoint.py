"""Forged checkpoints whose checksums are right: they are refused, and no code of them runs."""

import json
import os
import pickle
import re
import shutil
import struct

import pytest
import torch
from safetensors.torch import load, save
from support.commands import bounded, outcome, refused
from support.folders import checkpoint_content, copied, digest, killed_run, sign_checkpoint

FILES = ("experiment.toml", "environment.json", "events.jsonl", "run.lock", "checkpoint/checkpoint.json")
FILES += ("checkpoint/state.safetensors", "result.json", "model/model.json", "model/model.safetensors")
STATE = "checkpoint/state.safetensors"


def header(length, text=b""):
    return struct.pack("<Q", length) + text


def one(**about):
    text = json.dumps({"state/x": about}).encode()
    return header(len(text), text) + bytes(8)


@pytest.mark.parametrize(
    "state",
    [
        b"",
        b"\0" * 7,
        header(0),
        header(2**63),
        header(2**64 - 1),
        header(100_000_001, b"{" * 50),
        header(2, b"{}"),
        header(2, b"[]"),
        header(2, b"\xff\xff"),
        one(dtype="F32", shape=[2], data_offsets=[0, 8]),
        one(dtype="F32", shape=[2**62], data_offsets=[0, 8]),
        one(dtype="F32", shape=[-2], data_offsets=[0, 8]),
        one(dtype="F32", shape=[2], data_offsets=[0, 2**63]),
        one(dtype="F32", shape=[2], data_offsets=[8, 0]),
        one(dtype="OBJ", shape=[2], data_offsets=[0, 8]),
        one(dtype="F8_E4M3", shape=[8], data_offsets=[0, 8]),
        one(dtype="F8_E8M0", shape=[8], data_offsets=[0, 8]),
        one(dtype="C64", shape=[1], data_offsets=[0, 8]),
    ],
    ids=lambda state: repr(state[8:60]),
)
def test_an_invalid_file_of_tensors_with_a_right_checksum_is_refused(run, state):
    sign_checkpoint(run, state=state)
    code, err = bounded("resume", run)
    assert code == 2 and "delete" in err and "start over" in err
    assert not (run / "result.json").exists()


def without(part):
    return lambda tensors: {name: t for name, t in tensors.items() if part not in name}


def changed(part, change):
    return lambda tensors: {name: change(t) if part in name else t for name, t in tensors.items()}


TENSORS = {
    "no tensor": lambda tensors: {},
    "no state": without("state/"),
    "no phases": without("phase/"),
    "an encoder's weight is missing": without("state/encoder.layers.0"),
    "a head is missing": without("heads.0"),
    "a parameter of a phase is missing": without("/parameter.0"),
    "a statistic of a phase is missing": without("/also.0"),
    "one of Adam's is missing": without("exp_avg_sq"),
    "all of one parameter's are there but one": without("optimiser.1.step"),
    "one more in the state": lambda tensors: tensors | {"state/encoder.more": torch.zeros(2, 3)},
    "one more head": lambda tensors: tensors | {"state/heads.7.layers.0.weight": torch.zeros(2, 3)},
    "one more part": lambda tensors: tensors | {"state/evil.x": torch.zeros(2, 3)},
    "a method's name": lambda tensors: tensors | {"state/kept.forward": torch.zeros(2, 3)},
    "no part at all": lambda tensors: tensors | {"x": torch.zeros(2)},
    "one more parameter": lambda tensors: tensors | {"phase/autoencoder/parameter.99": torch.zeros(2)},
    "a parameter with a word for a number": lambda tensors: tensors | {"phase/autoencoder/parameter.x": torch.ones(2)},
    "a phase that is not noted": lambda tensors: tensors | {"phase/x/parameter.0": torch.zeros(2)},
    "Adam's first moments too short": changed("exp_avg", lambda t: t.flatten()[:1].clone()),
    "Adam's second moments are scalars": changed("exp_avg_sq", lambda t: torch.tensor(0.0)),
    "Adam's steps are as large as weights": changed(".step", lambda t: torch.zeros(9)),
    "Adam's moments are doubles": changed("exp_avg", lambda t: t.double()),
    "the encoder is of doubles": changed("state/encoder", lambda t: t.double()),
    "the encoder is of bytes": changed("state/encoder", lambda t: t.byte()),
    "the encoder has another shape": changed("state/encoder", lambda t: t.flatten().clone()),
    "parameters have another shape": changed("/parameter.", lambda t: t.flatten().clone()),
    "parameters are whole numbers": changed("/parameter.", lambda t: t.long()),
    "weights are NaN": changed("state/encoder", lambda t: t * float("nan")),
    "parameters are infinite": changed("/parameter.", lambda t: t + float("inf")),
    "tensors are empty": changed("state/", lambda t: t[:0].clone()),
}


@pytest.mark.parametrize("case", TENSORS)
def test_tensors_that_do_not_fit_are_refused(run, case):
    before = load((run / STATE).read_bytes())
    after = TENSORS[case](before)
    assert after.keys() != before.keys() or any(
        after[n].dtype != t.dtype or not after[n].equal(t) for n, t in before.items()
    )
    sign_checkpoint(run, state=save(after))
    code, err = bounded("resume", run)  # in a process of its own: what goes wrong may end it
    assert code in (1, 2) and re.fullmatch(r"prer: [^\n]+\n", err)
    assert not (run / "result.json").exists()


def test_a_checkpoint_of_another_learner_with_a_forged_context_is_refused(capsys, run, tmp_path):
    command = ["run", "stream.data=my.npz", "learner.name=der", "learner.epochs=3", "learner.hidden=[4]"]
    command += ["learner.embedding=3", "learner.batch=8", "--seeds=2", "--device=cpu"]
    (tmp_path / "other").mkdir()
    other = killed_run(tmp_path / "other", 4, command)
    context = checkpoint_content(run)["about"]["context"]
    shutil.rmtree(run / "checkpoint")
    shutil.copytree(other / "checkpoint", run / "checkpoint")
    assert "experiment.learner.name was 'der' and is 'prer'" in refused(capsys, "resume", run, "--quiet")
    content = checkpoint_content(run)
    content["about"]["context"] = context
    sign_checkpoint(run, content)
    assert "does not fit its experiment" in refused(capsys, "resume", run, "--quiet")


# -- values -----------------------------------------------------------------------------------------------------------

WRONG = {  # one value for each branch; benchmarks/fuzz_runs.py tries thousands
    "tasks": [-1, 0, 2, 10**30, "1", True],
    "elapsed": [None, 1, float("nan"), float("inf"), -1.0, 1e300],
    "seconds": [None, {"flow": "1"}, {"flow": float("nan")}, {"evaluation": -1.0}],
    "ledger": [None, {}, {"evil": 1}],
    "notes": [None, "x"],
    "context": [None, {}],
}
ROWS = [None, [], [[]], [[[]]], [[["1", "2"]]], [[[1.0]]], [[[1.0, 2.0, 3.0]]], [[[1.0, None]]]]
ROWS += [[[[1.0, float("inf")]]], [[[1.0, 2.0]] * 9], [[[1.0, 101.0]]], [[[-1.0, 1.0]]], "x", [[[10**400, 1.0]]]]
ROWS += [[[[1.0, 2.0]], [[1.0, 2.0]]]]
COUNTS = [None, [], ["1"], [None], [-1], [1.5], [1, 2], [[1]], {"a": 1}]
MEASURED = [*(("rows", value) for value in ROWS), *(("memory_floats", value) for value in COUNTS)]
MEASURED += [("untrained", [value]) for value in ([], [1.0], ["a", "b"], None)]
MEASURED += [("memory_samples", [-1]), ("transient_floats", [-1])]


@pytest.mark.parametrize(
    ("key", "value"), [(key, value) for key, values in WRONG.items() for value in values], ids=repr
)
def test_a_wrong_value_in_a_checkpoint_is_refused(capsys, run, key, value):
    content = checkpoint_content(run)
    assert type(content["about"][key]) is not type(value) or content["about"][key] != value
    content["about"][key] = value
    sign_checkpoint(run, content)
    assert "start over" in refused(capsys, "resume", run, "--quiet")
    assert not (run / "result.json").exists()


@pytest.mark.parametrize(("key", "value"), MEASURED, ids=repr)
def test_saved_measurements_of_a_wrong_shape_are_refused(capsys, run, key, value):
    content = checkpoint_content(run)
    content["about"]["ledger"][key] = value
    sign_checkpoint(run, content)
    assert "the saved results are inconsistent" in refused(capsys, "resume", run, "--quiet")


@pytest.mark.parametrize("epochs", [-1, 3, 10**9, 1.0, "1", True])
def test_epochs_that_cannot_be_done_are_refused(capsys, run, epochs):
    content = checkpoint_content(run)
    content["phases"] = dict.fromkeys(content["phases"], epochs)
    sign_checkpoint(run, content)
    assert "; delete it to " in refused(capsys, "resume", run, "--quiet").replace(str(run / "checkpoint"), "it")


@pytest.mark.parametrize(
    ("key", "value"),
    [
        *(("version", value) for value in (2, "1", None)),
        *(("bytes", value) for value in (-1, None, "9", 1.5)),
        *(("sha256", value) for value in (None, "x")),
        *((key, value) for key in ("phases", "about") for value in ([], None)),
    ],
)
def test_a_wrong_frame_of_a_checkpoint_is_refused(capsys, run, key, value):
    sign_checkpoint(run, checkpoint_content(run) | {key: value})
    assert "is damaged" in refused(capsys, "resume", run, "--quiet")


@pytest.mark.parametrize("key", ["version", "bytes", "sha256", "phases", "about"])
def test_a_frame_that_lacks_something_is_refused(capsys, run, key):
    sign_checkpoint(run, {name: value for name, value in checkpoint_content(run).items() if name != key})
    assert "is damaged" in refused(capsys, "resume", run, "--quiet")


@pytest.mark.parametrize(
    "text", ["", "null", "[]", "5", '"x"', "{}", '{"content": {}}', '{"sha256": 1, "content": []}']
)
def test_a_checkpoint_that_is_another_json_is_refused(capsys, run, text):
    (run / "checkpoint/checkpoint.json").write_text(text)
    assert "is damaged" in refused(capsys, "resume", run, "--quiet")


# -- code -------------------------------------------------------------------------------------------------------------


class Bomb:
    """What a hostile pickle does when it is loaded."""

    def __reduce__(self):
        return (os.mkdir, ("exploded",))


def test_a_pickle_is_never_opened(capsys, monkeypatch, tmp_path, run, finished):
    monkeypatch.chdir(tmp_path)
    bomb = pickle.dumps(Bomb())
    for name in (
        "state.pkl",
        "checkpoint.pt",
        "checkpoint/state.pt",
        "checkpoint/state.pkl",
        "checkpoint/data.pkl",
        "a.py",
    ):
        (run / name).write_bytes(bomb)
    outcome(capsys, "show", run)
    assert outcome(capsys, "resume", run, "--quiet")[0] == 0
    assert digest(run) == digest(finished)
    assert not (tmp_path / "exploded").exists()


@pytest.mark.parametrize("file", FILES)
def test_a_pickle_in_place_of_a_file_is_never_loaded(capsys, monkeypatch, tmp_path, stopped, finished, file):
    monkeypatch.chdir(tmp_path)
    run = copied(finished if file.startswith(("result", "model")) else stopped, tmp_path / "in")
    bomb = pickle.dumps(Bomb())
    (run / file).write_bytes(bomb)
    if file == STATE:
        sign_checkpoint(run, state=bomb)
    outcome(capsys, "show", run)
    code, _, _ = outcome(capsys, "resume", run, "--quiet")
    needed = file.startswith(("experiment", "environment", "result", "checkpoint"))  # to find the data, too
    assert code == (2 if needed else 0)
    assert not list(tmp_path.rglob("exploded"))
