"""Hostile run folders: shown or resumed, they run no code, write nowhere else, and neither hang nor fill the memory."""

import json
import os
import pickle
import re
import resource
import shutil
import struct
import time
from pathlib import Path

import pytest
import torch
from safetensors.torch import load, save
from support.folders import begun, contents, copied, digest, ended, made, outcome, plain, sign, stopped

from prer.disk import checksum

FILES = ("experiment.toml", "environment.json", "events.jsonl", "run.lock", "checkpoint/checkpoint.json")
FILES += ("checkpoint/state.safetensors", "result.json", "model/model.json", "model/model.safetensors")
LEFT_OVER = (".experiment.toml.new", ".environment.json.new", ".events.jsonl.new", ".result.json.new")
FOLDERS = ("checkpoint", "checkpoint.new", "checkpoint.old", "model")
ESCAPES = "\x1b[2J\x1b]0;owned\x07\r<script>alert(1)</script>[red]x[/red][/]\u202e"
STATE = "checkpoint/state.safetensors"


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    return made(tmp_path_factory.mktemp("whole"))


@pytest.fixture(scope="module")
def broken_off(tmp_path_factory):
    """A run that was gone in the middle of its second task."""
    return stopped(tmp_path_factory.mktemp("stopped"), 10)


@pytest.fixture
def run(broken_off, tmp_path):
    return copied(broken_off, tmp_path / "in")


@pytest.fixture
def done(whole, tmp_path):
    return copied(whole, tmp_path / "done")


def refused(capsys, *arguments):
    code, out, err = outcome(capsys, *arguments)
    assert code == 2, (code, out, err)
    return err


def bounded(*arguments, gigabytes=2, seconds=20):
    """A command with so much memory and time; the exit code and what it says of an error."""

    def before():
        used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (used + gigabytes * 2**30,) * 2)

    begin = time.monotonic()
    code, _, err = ended(begun(arguments, before, seconds))
    assert code in (0, 1, 2) and "Traceback" not in err, (code, err)
    assert code == 0 or re.fullmatch(r"prer: [^\n]+\n", err), err
    assert "memory is not enough" not in err
    assert time.monotonic() - begin < seconds
    return code, err


# -- names -----------------------------------------------------------------------------------------------------------


def harmless(text):
    return all(character.isprintable() or character == "\n" for character in text)


def signed_result(folder, **changes):
    result = json.loads((folder / "result.json").read_text()) | changes
    del result["sha256"]
    (folder / "result.json").write_text(json.dumps(result | {"sha256": checksum(result)}))


def test_names_in_a_result_are_shown_as_they_are_and_obeyed_by_nobody(capsys, done):
    signed_result(done, learner=ESCAPES, stream=ESCAPES, digest=ESCAPES)
    for runs in ([done], [done, done]):
        code, out, err = outcome(capsys, "show", *runs)
        assert (code, err) == (0, "") and harmless(out)
        assert "[red]x[/red]" in out


def test_names_of_folders_are_shown_as_they_are_and_obeyed_by_nobody(capsys, run, done):
    named = done.rename(done.with_name("a" + ESCAPES.replace("/", "|")))
    for command in (["show", named], ["show", named, named], ["resume", named]):
        code, out, _ = outcome(capsys, *command)
        assert code == 0 and harmless(out)
    (named / "result.json").write_text("{")
    assert harmless(refused(capsys, "show", named))
    named = run.rename(run.with_name("b" + ESCAPES.replace("/", "|")))
    code, out, _ = outcome(capsys, "resume", named)
    assert code == 0 and harmless(out) and "going on from" in out


@pytest.mark.parametrize("where", ["key", "value", "nested"])
def test_names_in_a_checkpoint_are_said_as_they_are_and_not_at_length(capsys, run, where):
    content = plain(run)
    long = ESCAPES * 10_000
    content["about"]["context"] |= {"key": {long: 1}, "value": {"torch": long}, "nested": {"torch": [[long]]}}[where]
    sign(run, content)
    said = refused(capsys, "resume", run)
    assert "was made otherwise" in said and harmless(said) and len(said) < 2500


@pytest.mark.parametrize("key", ["name", "device", "stream.data", "stream.kind", "learner.name", "learner.optimiser"])
def test_names_in_an_experiment_are_said_as_they_are(capsys, run, key):
    (run / "environment.json").unlink()
    text, last = (run / "experiment.toml").read_text(), key.split(".")[-1]
    section = text.index(f"[{key.split('.')[0]}]") if "." in key else 0
    line = re.compile(rf"(?m)^{last} = .*$")
    escaped = json.dumps(ESCAPES)
    (run / "experiment.toml").write_text(text[:section] + line.sub(lambda _: f"{last} = {escaped}", text[section:], 1))
    assert harmless(refused(capsys, "resume", run))
    code, out, err = outcome(capsys, "show", run)
    assert code in (0, 2) and harmless(out + err)


# -- places ----------------------------------------------------------------------------------------------------------


def leaves(tree):
    """The places of all strings in nested values, as owner and key."""
    for key in list(tree) if isinstance(tree, dict) else range(len(tree)):
        if isinstance(tree[key], str):
            yield tree, key
        elif isinstance(tree[key], dict | list):
            yield from leaves(tree[key])


@pytest.mark.parametrize("file", ["checkpoint/checkpoint.json", "environment.json", "result.json"])
@pytest.mark.parametrize("path", ["../../outside/x", "OUTSIDE"])
def test_a_path_in_any_value_leads_nowhere(capsys, tmp_path, broken_off, whole, file, path):
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "mine").write_text("mine")
    source = whole if file == "result.json" else broken_off
    tree = json.loads((source / file).read_text())
    places = len(list(leaves(tree)))
    assert places > 3
    for number in range(places):
        run = copied(source, tmp_path / "in")
        changed = json.loads((run / file).read_text())
        owner, key = list(leaves(changed))[number]
        owner[key] = path.replace("OUTSIDE", str(outside))
        if file == "result.json":
            signed_result(run, **{k: v for k, v in changed.items() if k != "sha256"})
        elif file == "environment.json":
            (run / file).write_text(json.dumps(changed))
        else:
            sign(run, changed["content"])
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
def test_a_link_is_never_written_through(capsys, tmp_path, broken_off, whole, name, state):
    run = copied(broken_off if state == "stopped" else whole, tmp_path / "in")
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
        assert digest(run) == digest(whole)


@pytest.mark.parametrize("name", [*FILES, *LEFT_OVER, "checkpoint", "checkpoint.new", "model"])
@pytest.mark.parametrize("what", ["/dev/zero", "pipe", "folder"])
def test_devices_and_pipes_in_place_of_a_file_are_not_waited_for(capsys, tmp_path, broken_off, whole, name, what):
    source = whole if name.startswith(("result", "model")) else broken_off
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
        assert digest(run) == digest(whole)


def test_data_that_is_a_device_or_a_pipe_is_not_waited_for(tmp_path, run):
    os.mkfifo(tmp_path / "pipe")
    (run / "environment.json").unlink()
    text = (run / "experiment.toml").read_text()
    for path in ("/dev/zero", tmp_path / "pipe", "/proc/self/mem", "/"):
        (run / "experiment.toml").write_text(re.sub(r"(?m)^data = .*?  #", f'data = "{path}"  #', text))
        assert bounded("resume", run, "--force")[0] == 2


# -- sizes -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("command", [["track"], ["track", "--follow"], ["report"]])
def test_a_giant_file_of_events_is_not_read(broken_off, tmp_path, monkeypatch, command):
    monkeypatch.chdir(tmp_path)
    run = copied(broken_off, tmp_path / "in")
    os.truncate(run / "events.jsonl", 64 * 2**30)
    code, err = bounded(*command, run)
    assert code == 0 if command == ["report"] else "events.jsonl is too large; events are read up to 256 MiB" in err


@pytest.mark.parametrize("matrix", [[[], []], [[[]], [[]]], [[[1.0], []], [[], [1.0]]]])
def test_a_matrix_of_no_task_is_refused(capsys, done, matrix):
    signed_result(done, matrix=matrix)
    for command in ("show", "resume"):
        assert "result.json cannot be read; delete it" in refused(capsys, command, done)


@pytest.mark.parametrize("name", FILES)
def test_ten_gigabytes_in_place_of_a_file_are_not_read(broken_off, whole, tmp_path, name):
    run = copied(whole if name.startswith(("result", "model")) else broken_off, tmp_path / "in")
    (run / name).touch()
    os.truncate(run / name, 10 * 2**30)
    bounded("show", run)
    code, _ = bounded("resume", run, "--quiet")
    if code == 0:
        assert digest(run) == digest(whole)


def test_ten_gigabytes_are_not_read_even_when_the_checkpoint_asks_for_them(run, monkeypatch):
    monkeypatch.setattr("prer.disk.os.sysconf", lambda name: 2**16)  # a machine with 4 GiB
    content = plain(run) | {"bytes": 10 * 2**30}
    content["about"]["events"] = 10 * 2**30
    for file in (STATE, "events.jsonl"):
        os.truncate(run / file, 10 * 2**30)
    sign(run, content)
    code, err = bounded("resume", run)
    assert code == 2 and "too large" in err


def test_ten_gigabytes_of_events_are_cut_without_being_read_at_once(run, whole):
    content = plain(run)
    content["about"]["events"] = 10 * 2**30
    sign(run, content)
    os.truncate(run / "events.jsonl", 10 * 2**30)
    assert bounded("resume", run, "--quiet")[0] == 0
    assert digest(run) == digest(whole)


def test_a_matrix_that_nobody_could_look_at_is_not_drawn(done):
    size = 700
    signed_result(done, matrix=[[[1.0] * size] * size] * 2)
    assert (done / "result.json").stat().st_size < 2**26
    assert bounded("show", done)[0] == 0


@pytest.mark.parametrize("levels", [100, 450, 950, 5000, 100_000])
@pytest.mark.parametrize("file", ["environment.json", "checkpoint/checkpoint.json", "experiment.toml", "result.json"])
def test_deep_nesting_ends_in_a_sentence(capsys, run, whole, levels, file):
    deep = "[" * levels + "]" * levels
    if file == "experiment.toml":
        (run / file).write_text((run / file).read_text() + f"\ndeep = {deep}\n")
    elif file == "environment.json":
        text = (run / file).read_text()
        (run / file).write_text(text.rstrip("}\n") + f', "deep": {deep}}}')
    elif file == "result.json":
        (run / file).write_text((whole / file).read_text().rstrip("}\n") + f', "deep": {deep}}}')
    else:
        (run / file).write_text((run / file).read_text().replace('"ledger": {', f'"deep": {deep}, "ledger": {{', 1))
        if levels < 900:
            content = json.loads((run / file).read_text())["content"]
            sign(run, content)
    outcome(capsys, "show", run)
    code, _, _ = outcome(capsys, "resume", run, "--quiet")
    if code == 0:
        assert digest(run) == digest(whole)


# -- tensors ---------------------------------------------------------------------------------------------------------


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
def test_a_file_of_tensors_that_makes_no_sense_is_refused_although_its_checksum_is_right(run, state):
    sign(run, state=state)
    code, err = bounded("resume", run)
    assert code == 2 and "delete" in err and "begin anew" in err
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
def test_tensors_that_do_not_fit_are_refused_although_their_checksum_is_right(run, case):
    before = load((run / STATE).read_bytes())
    after = TENSORS[case](before)
    assert after.keys() != before.keys() or any(
        after[n].dtype != t.dtype or not after[n].equal(t) for n, t in before.items()
    )
    sign(run, state=save(after))
    code, err = bounded("resume", run)  # in a process of its own: what goes wrong may end it
    assert code in (1, 2) and re.fullmatch(r"prer: [^\n]+\n", err)
    assert not (run / "result.json").exists()


def test_a_checkpoint_of_another_learner_is_refused_even_when_it_says_that_it_is_ours(capsys, run, tmp_path):
    command = ["run", "stream.data=my.npz", "learner.name=der", "learner.epochs=3", "learner.hidden=[4]"]
    command += ["learner.embedding=3", "learner.batch=8", "--seeds=2", "--device=cpu"]
    (tmp_path / "other").mkdir()
    other = stopped(tmp_path / "other", 4, command)
    context = plain(run)["about"]["context"]
    shutil.rmtree(run / "checkpoint")
    shutil.copytree(other / "checkpoint", run / "checkpoint")
    assert "experiment.learner.name was 'der' and is 'prer'" in refused(capsys, "resume", run)
    content = plain(run)
    content["about"]["context"] = context
    sign(run, content)
    assert "does not fit its experiment" in refused(capsys, "resume", run)


# -- values ----------------------------------------------------------------------------------------------------------

WRONG = {
    "tasks": [-1, 0, 2, 10**9, 10**30, "1", None, [1], {"a": 1}, 1.0, True],
    "elapsed": [None, "1", 1, float("nan"), float("inf"), -1.0, [1.0], 1e300],
    "seconds": [None, [], {"flow": "1"}, {"flow": None}, {"flow": float("nan")}, {"evaluation": -1.0}, {"x": {}}],
    "ledger": [None, [], {}, {"rows": []}, {"evil": 1}],
    "notes": [None, [], "x"],
    "context": [None, [], "x", {}],
}
ROWS = [
    None,
    [],
    [[]],
    [[[]]],
    [[["1", "2"]]],
    [[[1.0]]],
    [[[1.0, 2.0, 3.0]]],
    [[[1.0, None]]],
    [[[1.0, float("inf")]]],
]
ROWS += [
    [[[1.0, 2.0]] * 9],
    [[[1.0, 101.0]]],
    [[[-1.0, 1.0]]],
    "x",
    [[[10**400, 1.0]]],
    [[[1.0, 2.0]], [[1.0, 2.0]]],
]
COUNTS = [None, [], ["1"], [None], [-1], [1.5], [1, 2], [[1]], {"a": 1}]


@pytest.mark.parametrize(
    ("key", "value"), [(key, value) for key, values in WRONG.items() for value in values], ids=repr
)
def test_a_wrong_value_in_a_checkpoint_is_refused_although_its_checksum_is_right(capsys, run, key, value):
    content = plain(run)
    assert type(content["about"][key]) is not type(value) or content["about"][key] != value
    content["about"][key] = value
    sign(run, content)
    assert "begin anew" in refused(capsys, "resume", run)
    assert not (run / "result.json").exists()


@pytest.mark.parametrize(
    ("key", "value"),
    [*(("rows", value) for value in ROWS), *(("untrained", [value]) for value in ([], [1.0], ["a", "b"], None))]
    + [(key, value) for key in ("memory_floats", "memory_samples", "transient_floats") for value in COUNTS],
    ids=repr,
)
def test_results_so_far_of_a_wrong_shape_are_refused(capsys, run, key, value):
    content = plain(run)
    content["about"]["ledger"][key] = value
    sign(run, content)
    assert "the results so far have no sense" in refused(capsys, "resume", run)


@pytest.mark.parametrize("epochs", [-1, 3, 10**9, 1.0, "1", None, [1], float("inf"), True])
def test_epochs_that_cannot_be_done_are_refused(capsys, run, epochs):
    content = plain(run)
    content["phases"] = dict.fromkeys(content["phases"], epochs)
    sign(run, content)
    assert "begin anew" in refused(capsys, "resume", run)


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
    sign(run, plain(run) | {key: value})
    assert "is damaged" in refused(capsys, "resume", run)


@pytest.mark.parametrize("key", ["version", "bytes", "sha256", "phases", "about"])
def test_a_frame_that_lacks_something_is_refused(capsys, run, key):
    sign(run, {name: value for name, value in plain(run).items() if name != key})
    assert "is damaged" in refused(capsys, "resume", run)


@pytest.mark.parametrize(
    "text", ["", "null", "[]", "5", '"x"', "{}", '{"content": {}}', '{"sha256": 1, "content": []}']
)
def test_a_checkpoint_that_is_another_json_is_refused(capsys, run, text):
    (run / "checkpoint/checkpoint.json").write_text(text)
    assert "is damaged" in refused(capsys, "resume", run)


@pytest.mark.parametrize(
    "changes",
    [
        {"accuracy": {"mean": "", "std": None, "values": []}},
        {"bwt": {"mean": [], "std": {}, "values": []}},
        {"seconds": {"total": float("nan")}},
        {"seconds": {"total": float("inf")}},
        {"memory_floats": [10**400]},
        {"memory_samples": [float("nan")]},
        {"matrix": [[["", ""], ["", ""]]] * 2},
        {"matrix": [[[10**400] * 2] * 2] * 2},
        {"matrix": [[[float("inf")] * 2] * 2] * 2},
        {"matrix": {"a": 1}},
        {"seconds": []},
        {"accuracy": []},
    ],
    ids=repr,
)
def test_a_result_with_values_of_another_kind_is_refused_although_its_checksum_is_right(capsys, done, changes):
    signed_result(done, **changes)
    for command in (["show", done], ["show", done, done], ["resume", done]):
        assert "result.json" in refused(capsys, *command)


def test_a_result_without_an_accuracy_is_shown_without(capsys, done):
    signed_result(done, accuracy={"mean": None, "std": None, "values": []})
    code, out, _ = outcome(capsys, "show", done)
    assert code == 0 and "its accuracy is not known" in out


# -- code ------------------------------------------------------------------------------------------------------------


class Bomb:
    """What a hostile pickle does when it is loaded."""

    def __reduce__(self):
        return (os.mkdir, ("exploded",))


def test_a_pickle_is_never_opened(capsys, monkeypatch, tmp_path, run, whole):
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
    assert digest(run) == digest(whole)
    assert not (tmp_path / "exploded").exists()


@pytest.mark.parametrize("file", FILES)
def test_a_pickle_in_place_of_a_file_is_never_loaded(capsys, monkeypatch, tmp_path, broken_off, whole, file):
    monkeypatch.chdir(tmp_path)
    run = copied(whole if file.startswith(("result", "model")) else broken_off, tmp_path / "in")
    bomb = pickle.dumps(Bomb())
    (run / file).write_bytes(bomb)
    if file == STATE:
        sign(run, state=bomb)
    outcome(capsys, "show", run)
    code, _, _ = outcome(capsys, "resume", run, "--quiet")
    needed = file.startswith(("experiment", "environment", "result", "checkpoint"))  # to find the data, too
    assert code == (2 if needed else 0)
    assert not list(tmp_path.rglob("exploded"))
