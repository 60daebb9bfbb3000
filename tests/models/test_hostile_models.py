"""Damaged and forged model folders: one sentence or a model that works, and nothing outside is touched."""

import hashlib
import json
import os
import pickle
import struct

import numpy as np
import pytest
from support.commands import refused, said
from support.hostile_models import ABOUT, KINDS, MODELS, TENSORS, Bomb, deep, described, fuzz, made, signed, used, write

import prer
from prer.errors import InputError, RunError

KIND_BY_NAME = {kind.__name__: kind for kind in KINDS}


@pytest.fixture(scope="module")
def base(tmp_path_factory):
    """The files of a model of each method that was taught twice, and its third lesson; made when first asked for."""
    found = {}

    def of(name):
        if name not in found:
            found[name] = made(tmp_path_factory.mktemp("made") / "pets", name)
        return found[name]

    return of


@pytest.fixture
def here(tmp_path):
    """A folder with a file of the user beside the model."""
    (tmp_path / "outside.safetensors").write_text("mine")
    return tmp_path


def outcome(here, files, lesson):
    """What each use of these files says: ask, show, teach, undo, show; nothing else happens."""
    write(here / "pets", files)
    code, found, err = used(here / "pets", lesson)
    assert (code, err) == (0, ""), err
    assert sorted(path.name for path in here.iterdir()) == ["outside.safetensors", "pets"]
    assert (here / "outside.safetensors").read_text() == "mine"
    assert not [path for path in here.rglob("*") if path.is_symlink() or path.name == "exploded"]
    return found


def changed(key, value):
    return lambda files: described(files, lambda known: known | {key: value})


def in_task(**values):
    return lambda files: described(
        files, lambda known: known | {"tasks": [known["tasks"][0] | values, known["tasks"][1]]}
    )


def replaced(name, data):
    return lambda files: files | {name: data}


def without(name):
    return lambda files: {key: data for key, data in files.items() if key != name}


def cut(name, share):
    return lambda files: files | {name: files[name][: int(len(files[name]) * share)]}


def flipped(name, place):
    def change(files):
        data = bytearray(files[name])
        data[int(len(data) * place)] ^= 4
        return files | {name: bytes(data)}

    return change


def twice(key):
    """The description with a key twice, of which JSON takes the last."""
    return lambda files: files | {ABOUT: files[ABOUT].rstrip()[:-1] + f', "{key}": "twice"}}'.encode()}


def named(file):
    return lambda files: described(files, lambda known: known | {"tensors": known["tensors"] | {"file": file}})


def resigned(header, body=b"", length=None):
    text = json.dumps(header).encode()
    return lambda files: signed(files, struct.pack("<Q", len(text) if length is None else length) + text + body)


def one(**about):
    return resigned({"sums.counts": about}, bytes(8))


NESTED = b"[" * 100_000 + b"]" * 100_000
BROKEN = {
    "no description": without(ABOUT),
    "no tensors": without(TENSORS),
    "an empty description": replaced(ABOUT, b""),
    "a description of zeros": replaced(ABOUT, bytes(1000)),
    "a description that is no text": replaced(ABOUT, b"\xff\xfe\x00{"),
    "half of a description": cut(ABOUT, 0.5),
    "a list": replaced(ABOUT, b"[]"),
    "deep nesting": replaced(ABOUT, b'{"a": ' + NESTED + b"}"),
    "a huge number": replaced(ABOUT, b'{"format": ' + b"9" * 10_000 + b"}"),
    "a bit of a description": flipped(ABOUT, 0.001),
    "half of the tensors": cut(TENSORS, 0.5),
    "no byte of the tensors": cut(TENSORS, 0),
    "a bit of the tensors": flipped(TENSORS, 0.9),
    "a bit of their header": flipped(TENSORS, 0.05),
    "a huge header": resigned({}, length=2**63),
    "a header that is no table": resigned([]),
    "a huge shape": one(dtype="F64", shape=[2**62], data_offsets=[0, 8]),
    "a negative shape": one(dtype="F64", shape=[-1], data_offsets=[0, 8]),
    "offsets beyond the file": one(dtype="F64", shape=[1], data_offsets=[0, 2**60]),
    "an unknown type": one(dtype="OBJ", shape=[1], data_offsets=[0, 8]),
    "another tensor": one(dtype="F64", shape=[1], data_offsets=[0, 8]),
    "a learner that is a path": changed("learner", "../../evil"),
    "a learner of control characters": changed("learner", "\x1b[2J\x1b]0;owned\x07"),
    "a learner twice": twice("learner"),
    "tasks twice": twice("tasks"),
    "a million seeds": changed("seeds", list(range(10**6))),
    "a huge input": changed("shape", [2**40]),
    "an input of a huge number of bytes": changed("shape", [10**400]),
    "no tasks": changed("tasks", []),
    "very many tasks": lambda files: described(files, lambda known: known | {"tasks": known["tasks"] * 10_000}),
    "settings of another type": changed("settings", {"shrinkage": "\x1b[2J"}),
    "a setting that is not there": changed("settings", {"__class__": "os.system"}),
    "a huge head": in_task(width=10**9),
    "a label of another type": in_task(labels=["ant", {"a": 1}]),
    "a label that is no number": in_task(labels=["ant", float("nan")]),
    "counts of another length": in_task(samples=[1]),
    "a reading of a huge image": changed("reading", {"size": 10**9}),
    "a health that is no share": changed("health", [["ant", 7]]),
    "a history of text": changed("history", "abc"),
    "a newer format": changed("format", 10**6),
    "a path to another file": named("../outside.safetensors"),
    "an absolute path": named("/etc/passwd"),
    "a device": named("/dev/zero"),
    "a file of another name": named("model.json"),
    "a pickle as description": replaced(ABOUT, pickle.dumps(Bomb("exploded"))),
    "a pickle as tensors": replaced(TENSORS, pickle.dumps(Bomb("exploded"))),
    "a pickle as tensors, with its checksum": lambda files: signed(files, pickle.dumps(Bomb("exploded"))),
}


@pytest.mark.parametrize("case", BROKEN)
def test_a_broken_folder_is_refused_in_a_sentence(here, base, case):
    files, lesson = base("slda")
    asked, shown, taught, undone, again = outcome(here, BROKEN[case](files), lesson)
    assert "cannot be read: " in asked or "contains no model" in asked
    assert shown == f"prer: {asked}" or case == "no description"  # then it may be a run
    assert taught == asked and again == (shown if undone else "")  # the previous version may be whole


@pytest.mark.parametrize("name", ["../outside.safetensors", "OUTSIDE", "folder/model.safetensors", "other.safetensors"])
def test_tensors_elsewhere_are_not_read_whatever_their_checksum(tmp_path, base, name):
    files, _ = base("slda")
    write(tmp_path / "pets", named(name.replace("OUTSIDE", str(tmp_path / "outside.safetensors")))(files))
    (tmp_path / "pets" / "folder").mkdir()
    for file in ("outside.safetensors", "pets/folder/model.safetensors", "pets/other.safetensors"):
        (tmp_path / file).write_bytes(files[TENSORS])
    with pytest.raises(InputError, match=r"model\.json names no file of tensors"):
        prer.load(tmp_path / "pets")


@pytest.mark.parametrize("name", ["pickle.py", "model.pt", "model.pkl", "state.pt", "sitecustomize.py", "model.py"])
def test_code_in_the_folder_is_never_run(here, base, name):
    files, lesson = base("slda")
    code = b"import os; os.mkdir('exploded')" if name.endswith("py") else pickle.dumps(Bomb("exploded"))
    assert outcome(here, files | {name: code}, lesson) == [""] * 5


HOSTILE = [
    "\x1b[2J\x1b]0;owned\x07",
    "[red]x[/red]",
    "<script>alert(1)</script>",
    "a\nb",
    "\u202ex",
    "../../evil",
    "=1+1",
    "\0",
]


@pytest.mark.parametrize("label", HOSTILE, ids=repr)
def test_hostile_texts_are_shown_as_text(here, base, label, capsys):
    files, lesson = base("slda")

    def change(known):
        known["tasks"][0]["labels"][0], known["tasks"][0]["when"] = label, label
        event = {"when": label, "event": "scored", "data": label, "samples": label, "accuracy": 0.5}
        known["history"] = [event, {"event": label}, {"event": [label]}]
        known["version"] = label
        return known

    assert outcome(here, described(files, change), lesson) == [""] * 5
    out = said(capsys, "show", here / "pets")
    assert all(c.isprintable() or c == "\n" for c in out)


LINKED = [ABOUT, TENSORS, "README.md", "model.safetensors", ".lock", ".model.json.new", "model-3.safetensors"]


@pytest.mark.parametrize("name", LINKED)
@pytest.mark.parametrize("target", ["file", "folder", "pipe", "/dev/zero"])
def test_links_devices_and_pipes_are_neither_waited_for_nor_written_through(tmp_path, base, name, target):
    files, lesson = base("slda")
    write(tmp_path / "pets", files)
    there = tmp_path / "there"
    (tmp_path / "pets" / name).unlink(missing_ok=True)
    if target == "file":
        there.write_bytes(files.get(name, b"mine"))
    elif target == "folder":
        there.mkdir()
    elif target == "pipe":
        os.mkfifo(there)
    (tmp_path / "pets" / name).symlink_to(target if target.startswith("/") else there)
    code, found, err = used(tmp_path / "pets", lesson, seconds=10)
    assert (code, err) == (0, ""), err
    assert bool(found[0]) == (name in (ABOUT, TENSORS))
    if target == "file":
        assert there.read_bytes() == files.get(name, b"mine")
    assert there.exists() == (target != "/dev/zero")


def test_a_pipe_in_place_of_a_file_is_not_waited_for(tmp_path, base):
    files, lesson = base("slda")
    for name in (ABOUT, TENSORS):
        write(tmp_path / "pets", files)
        (tmp_path / "pets" / name).unlink()
        os.mkfifo(tmp_path / "pets" / name)
        code, found, err = used(tmp_path / "pets", lesson, seconds=10)
        assert (code, err) == (0, "") and "is not a regular file" in found[0]


def test_a_file_that_is_too_large_is_refused(here, base, capsys):
    files, _ = base("slda")
    for name in (ABOUT, TENSORS):
        write(here / "pets", files)
        os.truncate(here / "pets" / name, 10**12)  # it has a hole, and needs no disk
        assert f"{name} is too large" in refused(capsys, "show", here / "pets")


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("kind", ["tensors_forged", "values_forged"])
def test_forged_folders_of_every_kind_of_memory_end_in_sentences(here, base, name, kind):
    files, lesson = base(name)
    with deep():
        spoilt = KIND_BY_NAME[kind](np.random.default_rng([3, len(name)]), files)
    outcome(here, spoilt, lesson)


@pytest.mark.parametrize("name", ["der", "prer"])
def test_a_memory_that_does_not_fit_is_a_sentence_and_the_model_stays(tmp_path, base, name):
    files, lesson = base(name)
    tensors = fuzz.tensors_of(files[TENSORS])
    key = {"der": "kept.y", "prer": "density.table"}[name]
    dtype, shape, data = tensors[key]
    size = len(data) // int(np.prod(shape))
    rows = int(np.prod(shape[:1]) * np.prod(shape[2:]))
    tensors[key] = [dtype, [shape[0], 1, *shape[2:]], data[: rows * size]]
    write(tmp_path / "pets", signed(files, fuzz.state_of(tensors)))
    model = prer.load(tmp_path / "pets", "cpu")
    before = model.state_digest_
    with pytest.raises((InputError, RunError), match=r"cannot be taught; its files may be damaged: "):
        model.partial_fit(*lesson)
    assert model.state_digest_ == before == prer.load(tmp_path / "pets", "cpu").state_digest_
    assert (
        hashlib.sha256((tmp_path / "pets" / TENSORS).read_bytes()).hexdigest()
        in (tmp_path / "pets" / ABOUT).read_text()
    )


def test_sums_that_no_samples_have_are_a_sentence(tmp_path, base):
    files, lesson = base("slda")
    tensors = fuzz.tensors_of(files[TENSORS])
    dtype, shape, _ = tensors["sums.products"]
    tensors["sums.products"] = [dtype, shape, np.full(shape, -1e30).tobytes()]
    write(tmp_path / "pets", signed(files, fuzz.state_of(tensors)))
    model = prer.load(tmp_path / "pets", "cpu")
    with pytest.raises(RunError, match=r"slda has no answer: .* singular"):
        model.predict(lesson[0].drop(columns=lesson[1]))
