"""The model folder: what is written in which order, who may write it, and what earlier versions wrote."""

import csv
import errno
import io
import itertools
import json
import multiprocessing
import os
import re
import shutil
import stat
from pathlib import Path

import numpy as np
import pandas
import pytest
from filelock import FileLock
from support.commands import begun, ended, outcome, refused, said, without_privileges
from support.folders import contents
from support.lessons import classifier, knowledge, lesson, taught

import prer
from prer.errors import InputError
from prer.models import folder as files
from prer.models import plain

VERSIONS = Path(__file__).parents[1] / "versions"
OLD = VERSIONS / "format-1"
TABLE, UNLABELLED = VERSIONS / "0.1.0" / "table.csv", VERSIONS / "0.1.0" / "to_predict.csv"
FIRST, SECOND, THIRD = (lesson(classes, number) for number, classes in enumerate(("ab", "c", "bd"), 1))
EVENT = {"when": "2026-01-05T10:00:00+00:00", "event": "undone"}


@pytest.fixture
def model():
    """A model that has learned one lesson."""
    return taught(classifier("slda"), FIRST)


@pytest.fixture
def pets(tmp_path, model):
    """The folder of a model that was saved after each of two lessons."""
    model.save(tmp_path / "pets")
    return taught(model, SECOND).save(tmp_path / "pets")


def about(folder):
    """The description of a model."""
    return json.loads((folder / "model.json").read_text())


def names(folder):
    """The names of a model's files."""
    return sorted(path.name for path in folder.iterdir() if path.name != files.LOCK)


def undone(folder):
    """The model of a folder after its last lesson is taken back."""
    with files.writing(folder):
        return files.undo(folder, EVENT)


# -- what is written ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["slda", "prer", "joint"])
def test_a_model_comes_back_as_it_was(tmp_path, name):
    model = taught(classifier(name, ensemble=2), FIRST, SECOND)
    back = prer.load(model.save(tmp_path / "pets"), "cpu")
    assert knowledge(back) == knowledge(model)
    x = lesson("abc", 5)[0]
    np.testing.assert_array_equal(back.predict_proba(x), model.predict_proba(x))
    assert files.plain.about(back.model_) == files.plain.about(model.model_)
    assert (back.method.epochs if name != "slda" else 0) == (model.method.epochs if name != "slda" else 0)


def test_the_files_are_a_description_tensors_and_a_card(tmp_path, model):
    folder = model.save(tmp_path / "pets")
    assert names(folder) == ["README.md", "model.json", "model.safetensors"]
    assert about(folder)["format"] == 2 and about(folder)["tensors"]["file"] == "model.safetensors"
    card = (folder / "README.md").read_text()
    assert card.startswith("# pets\n") and "2 classes, in 1 lesson:" in card and "a (12), b (13)" in card


def test_the_card_is_that_of_the_present_version(pets):
    assert "3 classes, in 2 lessons:" in (pets / "README.md").read_text()
    undone(pets)
    card = (pets / "README.md").read_text()
    assert "2 classes, in 1 lesson:" in card and "`model.safetensors`" in card


def test_names_are_escaped_in_the_card(tmp_path):
    x, _ = FIRST
    y = np.where(np.arange(len(x)) < 12, "<b>[x](y)", "\x1b[2J")
    card = (taught(classifier("slda"), (x, y)).save(tmp_path / "*pets*") / "README.md").read_text()
    assert "# \\*pets\\*" in card and "\\<b\\>\\[x\\]\\(y\\)" in card and "\x1b" not in card


def test_new_tensors_are_on_disk_before_the_description_names_them(pets, monkeypatch):
    done, synced = [], os.fsync

    def noted(name):
        call = getattr(os, name)

        def change(*paths, **named):
            call(*paths, **named)
            done.append(f"{name} {Path(paths[-1]).name}")

        monkeypatch.setattr(os, name, change)

    def fsync(handle):
        synced(handle)
        is_folder = stat.S_ISDIR(os.fstat(handle).st_mode)
        done.append(f"sync {Path(f'/proc/self/fd/{handle}').readlink().name}" + "/" * is_folder)

    noted("replace")
    noted("unlink")
    monkeypatch.setattr(os, "fsync", fsync)
    taught(prer.load(pets), THIRD).save(pets)
    changes = [change for change in done if "lock" not in change]
    assert changes == [
        "sync model-3.safetensors",
        "sync pets/",
        "sync .model.json.new",
        "replace model.json",
        "sync pets/",
        "unlink model.safetensors",  # of the version before the last
        "sync .README.md.new",
        "replace README.md",
    ]


def test_the_description_names_the_tensors_by_their_checksum(pets):
    file = pets / about(pets)["tensors"]["file"]
    data = bytearray(file.read_bytes())
    data[-1] ^= 1
    file.write_bytes(data)
    with pytest.raises(InputError, match=r"cannot be read: model-2\.safetensors is damaged: its checksum differs"):
        prer.load(pets)
    file.unlink()
    with pytest.raises(InputError, match=r"cannot be read: model-2\.safetensors is missing"):
        prer.load(pets)


def test_a_model_that_is_replaced_while_it_is_read_is_read_again(pets, monkeypatch):
    other, read = taught(prer.load(pets), THIRD), files._tensors

    def slow(path, known):
        monkeypatch.setattr(files, "_tensors", read)
        other.save(path)  # twice, so that the tensors that were described are deleted
        taught(other, THIRD).save(path)
        return read(path, known)

    monkeypatch.setattr(files, "_tensors", slow)
    assert prer.load(pets).state_digest_ == other.state_digest_


# -- the previous version ----------------------------------------------------------------------------------------------


def test_one_previous_version_is_kept_and_undo_returns_to_it(pets, model):
    known, digest = knowledge(model), model.state_digest_
    taught(model, THIRD).save(pets)
    assert names(pets) == ["README.md", "model-2.safetensors", "model-3.safetensors", "model.json"]
    assert "previous" not in about(pets)["previous"]
    before = undone(pets)
    assert before.digest == digest and knowledge(prer.load(pets)) == known
    assert before.history == prer.load(pets).model_.history == [EVENT]
    assert names(pets) == ["README.md", "model-2.safetensors", "model.json"]
    with pytest.raises(InputError, match="has no previous version; only the last lesson can be undone, and only once"):
        undone(pets)


def test_undo_goes_back_a_lesson_however_often_a_model_is_saved(pets, model):
    model.save(pets)
    model.save(pets)
    assert len(list(pets.glob("*.safetensors"))) == 2
    assert undone(pets).digest == taught(classifier("slda"), FIRST).state_digest_


def test_a_model_learns_on_after_undo(pets):
    undone(pets)
    again = taught(prer.load(pets), SECOND)
    again.save(pets)
    assert knowledge(again) == knowledge(taught(classifier("slda"), FIRST, SECOND))
    assert undone(pets).history == [EVENT, EVENT]


def test_a_score_changes_neither_the_version_nor_what_undo_returns_to(pets, model):
    before = about(pets)
    with files.writing(pets):
        files.record(pets, {"event": "scored"})
    assert about(pets) == before | {"history": [{"event": "scored"}]}
    taught(model, THIRD).save(pets)  # the model was loaded before the score, which stays
    assert about(pets)["history"] == [{"event": "scored"}]


def test_a_damaged_previous_version_is_not_returned_to(pets):
    (pets / "model.safetensors").write_bytes(b"")
    before = contents(pets)
    with pytest.raises(InputError, match=r"the previous version of .* cannot be read: model.safetensors is damaged"):
        undone(pets)
    assert contents(pets) == before


@pytest.mark.parametrize("history", [5, "abc", {"a": 1}, [5], [None], None])
def test_a_history_that_is_no_list_of_events_is_refused(pets, history):
    (pets / "model.json").write_text(json.dumps(about(pets) | {"history": history}))
    before = contents(pets)
    for refuse in (prer.load, undone):
        with pytest.raises(InputError, match="cannot be read: its history is not a list of events"):
            refuse(pets)
    assert contents(pets) == before


# -- who may write it --------------------------------------------------------------------------------------------------


def test_the_folder_of_another_model_is_not_overwritten(pets, model, tmp_path):
    before, other = contents(pets), taught(classifier("slda"), THIRD)
    with pytest.raises(InputError, match="pets contains another model; save to another folder, or load that one"):
        other.save(pets)
    copied = prer.load(pets).save(tmp_path / "copy")
    with pytest.raises(InputError, match="copy contains another model"):
        taught(model, THIRD).save(copied)  # it comes from another folder
    assert contents(pets) == before


def test_a_folder_that_was_taught_since_it_was_loaded_is_not_overwritten(pets):
    one, two = prer.load(pets), prer.load(pets)
    taught(one, THIRD).save(pets)
    before = contents(pets)
    with pytest.raises(InputError, match="pets has been changed since this model was loaded from it; save to another"):
        taught(two, FIRST).save(pets)
    assert contents(pets) == before
    undone(pets)
    taught(two, FIRST).save(pets)  # it is again the version that was loaded


def test_a_folder_may_be_named_in_another_way(pets, monkeypatch):
    monkeypatch.chdir(pets)
    (pets.parent / "link").symlink_to(pets)
    model = prer.load("../link")
    taught(model, THIRD).save(pets)
    model.save("../pets")
    assert prer.load("").state_digest_ == model.state_digest_


def test_other_files_and_runs_are_not_written_into(tmp_path, model):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.docx").touch()
    with pytest.raises(InputError, match=r"mine contains other files, such as 'thesis\.docx'; give another folder"):
        model.save(tmp_path / "mine")
    (tmp_path / "experiment.toml").touch()
    for folder in (tmp_path, tmp_path / "model"):
        with pytest.raises(InputError, match="is a run, whose model belongs to its result; copy its model/"):
            model.save(folder)
    assert [str(path.relative_to(tmp_path)) for path in sorted(tmp_path.rglob("*"))] == [
        "experiment.toml",
        "mine",
        "mine/thesis.docx",
    ]


def test_files_of_the_user_in_a_model_folder_stay(pets, model):
    (pets / "notes.txt").write_text("mine")
    taught(model, THIRD).save(pets)
    undone(pets)
    assert (pets / "notes.txt").read_text() == "mine"


def _hold(folder, ready, done):
    with FileLock(folder / files.LOCK):
        ready.set()
        done.wait(60)


def test_a_second_process_gets_a_sentence_and_may_read(pets, model):
    context = multiprocessing.get_context("fork")
    ready, done = context.Event(), context.Event()
    process = context.Process(target=_hold, args=(pets, ready, done))
    process.start()
    try:
        assert ready.wait(60)
        with pytest.raises(InputError, match=r"another process is teaching .*pets; wait until it ends, or stop it"):
            model.save(pets)
        assert prer.load(pets).state_digest_ == model.state_digest_
    finally:
        done.set()
        process.join()
    model.save(pets)


# -- what the system refuses -------------------------------------------------------------------------------------------


def full_disk(patch, at):
    """Let nothing be flushed to disk from this call on."""
    calls, fsync = itertools.count(1), os.fsync

    def full(handle):
        if next(calls) >= at:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        fsync(handle)

    patch.setattr(os, "fsync", full)


@pytest.mark.parametrize("at", range(1, 7))
def test_a_full_disk_leaves_the_old_model_or_the_new_one(pets, model, monkeypatch, at):
    before = contents(pets)
    old = prer.load(pets).state_digest_
    taught(model, THIRD)
    with monkeypatch.context() as patch:
        full_disk(patch, at)
        if at < 6:
            with pytest.raises(InputError) as caught:
                model.save(pets)
            expected = f"cannot write the model folder {files.shown(pets)}: No space left on device; use another folder"
            assert str(caught.value) == expected
        else:
            model.save(pets)  # it needs five calls
    found = prer.load(pets)
    assert found.state_digest_ == (old if at < 4 else model.state_digest_)
    assert {name: contents(pets)[name] for name in ("model.safetensors", "model-2.safetensors") if at < 4} == {
        name: before[name] for name in ("model.safetensors", "model-2.safetensors") if at < 4
    }
    model.save(pets)  # there is room again
    assert prer.load(pets).state_digest_ == model.state_digest_
    assert names(pets) == sorted(["README.md", "model.json", *kept(pets)])
    assert undone(pets).digest == old


def kept(folder):
    """Names of the tensors of both versions."""
    return [about(folder)["tensors"]["file"], about(folder)["previous"]["tensors"]["file"]]


@pytest.mark.parametrize("at", range(1, 4))
def test_a_full_disk_at_the_first_lesson_leaves_a_folder_that_can_be_taught(tmp_path, monkeypatch, at, model):
    with monkeypatch.context() as patch:
        full_disk(patch, at)
        with pytest.raises(InputError, match=r"cannot write the model folder .*: No space left on device"):
            model.save(tmp_path / "pets")
    assert not (tmp_path / "pets").exists() or at > 1
    with pytest.raises(InputError, match="contains no model"):
        prer.load(tmp_path / "pets")
    model.save(tmp_path / "pets")
    assert names(tmp_path / "pets") == [
        "README.md",
        *sorted(["model.json", about(tmp_path / "pets")["tensors"]["file"]]),
    ]


def test_a_folder_that_may_not_be_written_is_refused_and_read(pets, tmp_path):
    np.savez(tmp_path / "later.npz", x=THIRD[0], y=THIRD[1])
    pets.chmod(0o555)
    before = contents(pets)
    try:
        for words in (["teach", pets, tmp_path / "later.npz", "--quiet"], ["undo", pets]):
            code, _, err = ended(begun(words, without_privileges))
            assert code == 2 and err.startswith("prer: cannot write the model folder "), err
            assert err.endswith(": Permission denied; use another folder\n")
        code, out, err = ended(begun(["show", pets], without_privileges))
        assert (code, err) == (0, "") and prer.load(pets).state_digest_ in out
    finally:
        pets.chmod(0o755)
    assert contents(pets) == before


@pytest.mark.parametrize("closed", ["pets", "pets/model.json", "pets/model-2.safetensors"])
def test_a_folder_that_may_not_be_read_is_one_sentence(pets, tmp_path, closed):
    mode = stat.S_IMODE((tmp_path / closed).stat().st_mode)
    (tmp_path / closed).chmod(0)
    commands = [["predict", pets, UNLABELLED], ["teach", pets, TABLE], ["show", pets], ["undo", pets]]
    for words in commands[:3] if "tensors" in closed else commands:  # undo needs the other tensors
        code, _, err = ended(begun(words, without_privileges))
        assert code == 2 and re.search(r"\A(prer: |Usage: [^\n]+\n[^\n]+\n\nError: )[^\n]+\n\Z", err), err
    (tmp_path / closed).chmod(mode)


def test_what_cannot_be_a_folder_is_one_sentence(tmp_path, model, capsys):
    (tmp_path / "file").touch()
    (tmp_path / "loop").symlink_to("loop")
    for name in ("file", "file/pets", "loop", "x" * 300):
        with pytest.raises(InputError, match=r"cannot write the model folder .*; use another folder"):
            model.save(tmp_path / name)
        with pytest.raises(InputError, match=r"the model in .* cannot be read: "):
            prer.load(tmp_path / name)
        for command in ("show", "undo", "predict", "teach", "score"):
            refused(
                capsys, command, tmp_path / name, *((UNLABELLED,) if command in ("predict", "teach", "score") else ())
            )
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "loop"]


# -- links -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["model.json", "model-2.safetensors", "model.safetensors", "README.md", ".lock"])
def test_a_link_in_the_folder_is_never_written_through(pets, tmp_path, name):
    outside = tmp_path / "outside"
    outside.mkdir()
    (pets / name).rename(outside / "there")
    (pets / name).symlink_to(outside / "there")
    before = contents(outside)
    if name in ("model.json", "model-2.safetensors"):
        with pytest.raises(InputError, match="is not a regular file"):
            prer.load(pets)
    for use in (lambda: taught(prer.load(pets), THIRD).save(pets), lambda: undone(pets)):
        try:
            use()
        except InputError:
            assert name != "README.md"
        assert contents(outside) == before


@pytest.mark.parametrize("name", [".model.json.new", ".README.md.new", "model-3.safetensors"])
def test_a_link_in_place_of_a_new_file_is_never_written_through(pets, tmp_path, model, name):
    (tmp_path / "mine").write_text("mine")
    (pets / name).symlink_to(tmp_path / "mine")
    taught(model, THIRD).save(pets)
    assert (tmp_path / "mine").read_text() == "mine"
    assert prer.load(pets).state_digest_ == model.state_digest_
    assert not any(path.is_symlink() for path in pets.iterdir())


def test_a_linked_folder_is_written_where_it_lies(pets, tmp_path):
    (tmp_path / "link").symlink_to("pets")
    model = taught(prer.load(tmp_path / "link"), THIRD)
    model.save(tmp_path / "link")
    assert (tmp_path / "link").is_symlink() and prer.load(pets).state_digest_ == model.state_digest_


# -- earlier and later versions ----------------------------------------------------------------------------------------


@pytest.fixture
def old(tmp_path):
    """Copies of models of format 1."""
    return shutil.copytree(OLD, tmp_path / "old")


@pytest.fixture
def later(tmp_path):
    """A table of a class that models of format 1 do not know, and of one that they know."""
    rows = [line.split(",") for line in TABLE.read_text().splitlines()]
    frame = pandas.DataFrame(rows[1:], columns=rows[0]).astype(dict.fromkeys(rows[0][:-1], float))
    elms = frame[frame["kind"] == "ash"].assign(kind="elm")
    elms[["height", "width"]] += 30
    ((tmp_path / "later.csv").write_text(pandas.concat([elms, frame[frame["kind"] == "beech"]]).to_csv(index=False)))
    return tmp_path / "later.csv"


def predicted(capsys, folder, *words):
    """The output of `prer predict` for the rows that the old version predicted."""
    code, out, err = outcome(capsys, "predict", folder, UNLABELLED, *words)
    assert (code, err) == (0, "")
    return out


@pytest.mark.parametrize(("name", "words"), [("prer", ("--task", 1)), ("joint", ("--task", 1)), ("slda", ())])
def test_a_model_of_format_1_predicts_what_it_predicted(old, capsys, name, words):
    before = contents(old / name)
    assert predicted(capsys, old / name, *words) == (old / f"{name}.csv").read_text()
    assert re.search(r"unknown time +lesson 2: cedar, dogwood\n", said(capsys, "show", old / name))
    assert contents(old / name) == before


@pytest.mark.parametrize(("name", "words"), [("prer", ("--task", 1)), ("slda", ())])
def test_a_model_of_format_1_is_taught_and_undone(old, capsys, later, name, words):
    assert "new: elm" in said(capsys, "teach", old / name, later)
    assert about(old / name)["format"] == 2 and "format" not in about(old / name)["previous"]
    code, out, _ = outcome(capsys, "predict", old / name, later, *(("--task", 3) if name == "prer" else ()))
    rows = list(csv.DictReader(io.StringIO(out)))
    right = sum(
        row["label"] == line.split(",")[-1] for row, line in zip(rows, later.read_text().split()[1:], strict=True)
    )
    assert code == 0 and right >= 0.95 * len(rows)
    expected = (old / f"{name}.csv").read_text()
    same = zip(predicted(capsys, old / name, *words).splitlines(), expected.splitlines(), strict=True)
    assert sum(one.split(",")[1] == other.split(",")[1] for one, other in same) >= 18  # of 20 and the header
    said(capsys, "undo", old / name)
    assert predicted(capsys, old / name, *words) == expected


def test_a_model_of_joint_without_its_data_is_not_taught_but_asked(old, capsys, later):
    before = contents(old / "joint")
    err = refused(capsys, "teach", old / "joint", later, "--quiet")
    assert err == "prer: the model does not contain the data of its lessons, which joint needs; make a new model\n"
    assert {**contents(old / "joint"), ".lock": b""} == {**before, ".lock": b""}
    assert "No sample is kept" in said(capsys, "show", old / "joint")
    model = prer.load(old / "joint")
    asked = pandas.read_csv(UNLABELLED)
    answers = model.predict(asked, 1)
    with pytest.raises(InputError, match="make a new model"):
        model.partial_fit(pandas.read_csv(later), "kind")
    assert model.predict(asked, 1).tolist() == answers.tolist()


@pytest.mark.parametrize("number", [plain.FORMAT + 1, 10**9, 2.0, "2", None, True, [2]])
def test_a_newer_format_is_one_sentence(pets, number):
    (pets / "model.json").write_text(json.dumps(about(pets) | {"format": number}))
    expected = f"it has format {number!r} of a newer version of prer; update prer: pip install -U prer"
    before = contents(pets)
    for refuse in (prer.load, undone, taught(classifier("slda"), FIRST).save):
        with pytest.raises(InputError) as caught:
            refuse(pets)
        assert str(caught.value) == f"the model in {files.shown(pets)} cannot be read: {expected}"
    assert contents(pets) == before
