"""prer teach, score, undo and show: a model on disk that is taught again and again."""

import csv
import io
import json
import multiprocessing
import os
import re
import signal

import numpy as np
import pytest
from PIL import Image
from support.commands import begun, ended, outcome, refused, said
from support.tables import table

import prer
from prer.errors import InputError
from prer.models import folder as files
from prer.models import plain

SLDA = ("stream.label=kind", "learner.name=slda")
FLOW = ("learner.encoder=continues", "learner.answer=head", "learner.density=flow", "learner.density.blocks=1")
TINY = (*FLOW, "learner.epochs=1", "learner.epochs_autoencoder=1", "learner.density.epochs=1")


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A folder with the table of each day; the columns of Tuesday have another order."""
    monkeypatch.chdir(tmp_path)
    days = {"monday": ["ant", "bee"], "tuesday": ["cat"], "wednesday": ["bee", "dog"]}
    for day, classes in days.items():
        frame = table()
        frame = frame[frame["kind"].isin(classes)]
        (frame[frame.columns[::-1]] if day == "tuesday" else frame).to_csv(f"{day}.csv", index=False)
    table(seed=1).to_csv("test.csv", index=False)
    return tmp_path


@pytest.fixture
def pets(here, capsys):
    """A model that has learned Monday and Tuesday."""
    said(capsys, "teach", "pets", "monday.csv", *SLDA)
    said(capsys, "teach", "pets", "tuesday.csv", *SLDA)
    return here / "pets"


def snapshot(folder):
    """The content of a model's files."""
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.name != files.LOCK}


def test_a_model_is_made_taught_asked_scored_and_shown(pets, capsys):
    out = said(capsys, "teach", "pets", "wednesday.csv")
    assert (
        "Lesson 3 learned" in out and "80 samples, new: dog" in out and "pets knows 4 classes. No sample is kept" in out
    )
    rows = list(csv.DictReader(io.StringIO(outcome(capsys, "predict", "pets", "test.csv")[1])))
    assert [row["label"] for row in rows] == table(seed=1)["kind"].tolist()
    out = said(capsys, "score", "pets", "test.csv")
    assert re.search(r"│ all +│ +160 │ +100.0% │", out)
    out = said(capsys, "show", "pets")
    assert "slda, 1 seed, scenario class; samples of 4" in out and "lesson 2: cat" in out
    assert (
        re.search(r"│ bee +│ +1, 3 │ [\d-]+ +│ +80 │ +- │", out) and "scored 100.0% on 160 samples of test.csv" in out
    )
    assert prer.load("pets").state_digest_ in out


def test_the_model_of_a_lesson_is_that_of_python(pets):
    frames = [table()[table()["kind"].isin(classes)] for classes in (["ant", "bee"], ["cat"])]
    model = prer.ContinualClassifier("slda")
    for frame in frames:
        model.partial_fit(frame, "kind")
    assert model.state_digest_ == prer.load(pets).state_digest_


def test_the_last_lesson_is_taken_back_once(pets, capsys):
    before = prer.load(pets).state_digest_
    said(capsys, "teach", "pets", "wednesday.csv")
    assert said(capsys, "undo", "pets") == "pets is again as after lesson 2: 3 classes, ant, bee, cat\n"
    assert prer.load(pets).state_digest_ == before
    assert "the lesson after this one was taken back" in said(capsys, "show", "pets")
    assert "no previous version; only the last lesson can be undone" in refused(capsys, "undo", "pets")
    assert len(list(pets.glob("*.safetensors"))) == 1


def test_probabilities_are_written_to_a_file(pets, capsys):
    code, out, err = outcome(capsys, "predict", "pets", "test.csv", "--proba", "-o", "out.csv")
    assert (code, out) == (0, "") and "120 of 120 samples of known classes (100.0%)" in err
    rows = list(csv.DictReader(io.StringIO((pets.parent / "out.csv").read_text())))
    assert list(rows[0]) == ["sample", "label", "seeds", "p(ant)", "p(bee)", "p(cat)"] and len(rows) == 160
    assert sum(float(rows[5][f"p({label})"]) for label in ("ant", "bee", "cat")) == pytest.approx(1, abs=2e-4)
    assert "cannot write" in refused(capsys, "predict", "pets", "test.csv", "-o", "missing/out.csv")


def test_folders_of_images_are_taught_and_predicted_by_name(here, capsys):
    rng = np.random.default_rng(0)
    for day, classes in (("one", "ab"), ("two", "c")):
        for label in classes:
            (here / day / label).mkdir(parents=True)
            for i in range(12):
                pixels = rng.integers(0, 60, (10, 10)) + 60 * (ord(label) - ord("a"))
                Image.fromarray(pixels.astype(np.uint8)).save(here / day / label / f"{i}.png")
        said(capsys, "teach", "photos", day, "learner.name=slda", "stream.size=8")
    code, out, err = outcome(capsys, "predict", "photos", "one")
    assert code == 0 and out.splitlines()[:2] == ["sample,label,seeds", "a/0.png,a,1.00"]
    assert "24 of 24 samples" in err


def test_a_part_is_held_out_if_asked_and_small_classes_are_repeated(here, capsys):
    out = said(capsys, "teach", "pets", "monday.csv", *SLDA, "stream.validation=0.25", "stream.balance=true")
    assert "60 samples" in out and "Held-out samples of this lesson: 100.0% correct" in out
    assert "held out 100.0% correct" in said(capsys, "show", "pets")


def test_seeds_are_an_ensemble_and_a_plugin_is_a_method(here, capsys, tmp_path):
    (tmp_path / "mine.py").write_text(
        "from dataclasses import dataclass\nfrom prer import Naive\n"
        '@dataclass(kw_only=True)\nclass Mine(Naive):\n    name = "mine"\n'
    )
    own = ("learner.name=mine", "--plugin", "mine.py", "learner.epochs=1", "stream.label=kind", "--seeds", "2")
    said(capsys, "teach", "pets", "monday.csv", *own)
    assert "mine, 2 seeds" in said(capsys, "show", "pets", "--plugin", "mine.py")


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("pets", "missing.csv"), "neither a file nor a known data set"),
        (("pets", "tuesday.csv", "learner.name=ncm"), "learner.name was fixed by the first lesson of pets"),
        (("pets", "tuesday.csv", "stream.label=age"), "stream.label was fixed by the first lesson"),
        (("pets", "tuesday.csv", "--seeds", "3"), "seeds was fixed by the first lesson"),
        (("pets", "tuesday.csv", "stream.kind=permuted"), "stream.kind has no meaning for a lesson"),
        (("pets", "tuesday.csv", "like=mnist"), "like has no meaning for a lesson"),
        (("pets", "tuesday.csv", "--task", "1"), "has one head; leave it out"),
        (("pets", "other.csv"), "the columns differ from those of the training data (missing: 'age'"),
        (("pets", "empty.csv"), "it has a header but no rows"),
        (("pets", "digits"), "trained on samples of shape 4, but these have shape 1x8x8"),
        (("tuesday.csv", "tuesday.csv"), "cannot write the model folder tuesday.csv"),
        ((".", "tuesday.csv"), "contains other files"),
        (("pets", "tuesday.csv", "stream.validation=2"), "stream.validation=2"),
    ],
)
def test_wrong_input_is_refused_with_a_sentence_and_changes_nothing(pets, capsys, words, sentence):
    table().drop(columns="age").to_csv("other.csv", index=False)
    table()[:0].to_csv("empty.csv", index=False)
    before = snapshot(pets)
    assert sentence in refused(capsys, "teach", *words)
    assert snapshot(pets) == before


@pytest.mark.parametrize("command", ["predict", "score", "undo", "show", "sample", "teach"])
def test_a_model_of_a_newer_format_is_refused(pets, capsys, command):
    about = json.loads((pets / "model.json").read_text())
    (pets / "model.json").write_text(json.dumps(about | {"format": plain.FORMAT + 1}))
    words = {"undo": (), "show": (), "sample": ("--class", "ant")}.get(command, ("test.csv",))
    assert "of a newer version of prer; update prer" in refused(capsys, command, "pets", *words)


def test_a_class_that_was_never_taught_is_not_scored(pets, capsys):
    assert "the model has not learned class 'dog'; teach it first" in refused(capsys, "score", "pets", "wednesday.csv")


def test_a_first_lesson_that_fails_leaves_no_folder(here, capsys):
    refused(capsys, "teach", "new", "missing.csv")
    assert not (here / "new").exists()


def test_the_model_of_a_run_is_asked_but_not_taught(here, capsys):
    run = (
        "run",
        "stream.data=test.csv",
        "stream.label=kind",
        "learner.name=ncm",
        "stream.scenario=class",
        "--seeds",
        "1",
    )
    folder = said(capsys, *run, "--quiet").strip()
    assert "│ all" in said(capsys, "score", folder, "test.csv")
    assert "copy its model/ to a folder of its own" in refused(capsys, "teach", folder, "monday.csv")
    assert "copy its model/" in refused(capsys, "teach", f"{folder}/model", "monday.csv")


# -- two processes -----------------------------------------------------------------------------------------------------


@pytest.fixture
def teaching(pets):
    """Another process that teaches pets Wednesday, and has learned but not saved it; calling this lets it go on."""
    context = multiprocessing.get_context("fork")
    ready, go_on = context.Event(), context.Event()
    save = files.save

    def waiting(*about):
        ready.set()
        go_on.wait(60)
        return save(*about)

    process = begun(("teach", "pets", "wednesday.csv"), lambda: setattr(files, "save", waiting))
    assert ready.wait(60)
    codes = []

    def finish():
        go_on.set()
        codes.append(ended(process)[0])
        return codes[0]

    yield finish
    if not codes:
        finish()


@pytest.mark.parametrize(
    "words", [("teach", "pets", "wednesday.csv"), ("undo", "pets"), ("score", "pets", "tuesday.csv")]
)
def test_a_second_process_that_would_write_is_told_to_wait(pets, teaching, capsys, words):
    before = snapshot(pets)
    assert "another process is teaching pets; wait until it ends, or stop it" in refused(capsys, *words)
    assert snapshot(pets) == before
    assert teaching() == 0
    said(capsys, *words)


def test_python_does_not_save_over_what_another_process_teaches(pets, teaching):
    model = prer.load(pets).partial_fit(table(), "kind")
    with pytest.raises(InputError, match="another process is teaching"):
        model.save(pets)
    assert teaching() == 0
    with pytest.raises(
        InputError, match="has been changed since this model was loaded from it; save to another folder"
    ):
        model.save(pets)
    assert prer.load(model.save(pets.parent / "other")).state_digest_ == model.state_digest_


def test_reading_needs_no_lock(pets, teaching, capsys):
    assert "slda" in said(capsys, "show", "pets")
    assert outcome(capsys, "predict", "pets", "tuesday.csv")[0] == 0
    assert teaching() == 0
    assert "lesson 3: bee, dog" in said(capsys, "show", "pets")


def test_a_process_that_is_killed_leaves_the_model_and_no_lock(pets, capsys):
    before = snapshot(pets)
    process = begun(
        ("teach", "pets", "wednesday.csv"), lambda: setattr(files, "save", lambda *about: os.kill(os.getpid(), 9))
    )
    assert ended(process)[0] == -signal.SIGKILL
    assert snapshot(pets) == before
    said(capsys, "teach", "pets", "wednesday.csv")


def test_an_interrupted_lesson_changes_nothing(pets):
    from prer.learners.closed_form import ClosedForm

    before, learn = snapshot(pets), ClosedForm.learn

    def interrupted(self, task):
        learn(self, task)
        signal.raise_signal(signal.SIGINT)

    def patch():
        ClosedForm.learn = interrupted

    code, _, err = ended(begun(("teach", "pets", "wednesday.csv"), patch))
    assert code == 130 and "interrupted" in err
    assert snapshot(pets) == before


# -- memory and its health ---------------------------------------------------------------------------------------------


@pytest.fixture
def short(here, capsys):
    """A model of PRER that has learned three classes for much too short a time, and what was printed."""
    table()[lambda frame: frame["kind"] != "dog"].to_csv("three.csv", index=False)
    code, out, err = outcome(capsys, "teach", "short", "three.csv", "stream.label=kind", *TINY)
    assert code == 0
    return out + err


def test_progress_and_a_lesson_that_is_too_small_are_shown(here, capsys):
    table()[:8].to_csv("few.csv", index=False)
    code, out, err = outcome(capsys, "teach", "new", "few.csv", "stream.label=kind", *TINY)
    assert code == 0 and re.search(r"lesson 1  autoencoder epoch +1/1 .* left", out)
    assert "warning: some classes have fewer than 10 samples to learn from: 'ant' (2)" in out + err
    assert re.search("warning: a task has 8 samples to learn from, so that phase '[a-z]+' has only 1 steps", out + err)


def test_a_class_whose_memory_fades_is_a_warning_and_is_marked(short, capsys):
    health = prer.load("short").model_.health
    fading = {label for label, share in health.items() if share < 0.8}
    assert fading
    (line,) = [line for line in short.splitlines() if "may be forgotten" in line]
    assert line.startswith("warning: after task 1 ") and all(f"of {label!r}" in line for label in fading)
    rows = re.findall(r"│ (\w+) +│ +1 │ [\d-]+ +│ +40 │ +(\d+)%( fades)? +│", said(capsys, "show", "short"))
    assert {label: (share, bool(mark)) for label, share, mark in rows} == {
        label: (f"{share * 100:.0f}", label in fading) for label, share in health.items()
    }


def test_known_classes_that_look_different_are_a_warning(pets, capsys):
    frame = table(seed=1)
    frame = frame[frame["kind"].isin(["ant", "cat"])]
    frame.to_csv("same.csv", index=False)
    code, out, err = outcome(capsys, "teach", "pets", "same.csv")
    assert code == 0 and "warning" not in out + err
    frame.assign(kind=frame["kind"].map({"ant": "cat", "cat": "ant"})).to_csv("swapped.csv", index=False)
    said(capsys, "undo", "pets")
    code, out, err = outcome(capsys, "teach", "pets", "swapped.csv", "--quiet")
    assert code == 0 and out == ""
    assert "warning: new samples of known classes look unlike what is remembered (recognised: 0% of 'ant', 0%" in err


def test_what_is_remembered_can_be_seen(short, capsys):
    assert said(capsys, "sample", "short", "--class", "ant", "-n", "5") == "Written: ant.npy\n"
    made = np.load("ant.npy")
    assert made.shape == (5, 4) and np.array_equal(made, prer.load("short").sample("ant", 5))
    said(capsys, "sample", "short", "--class", "ant", "-n", "5", "--noise-seed", "1", "-o", "other.npy")
    assert not np.array_equal(made, np.load("other.npy"))
    assert "unknown class 'ent', did you mean 'ant'?" in refused(capsys, "sample", "short", "--class", "ent")


def test_a_method_without_generator_has_no_samples(pets, capsys):
    assert "slda cannot generate samples; PRER and DGR can" in refused(capsys, "sample", "pets", "--class", "ant")


# -- scores and the scenario -------------------------------------------------------------------------------------------


def test_a_score_is_counted_by_class_and_added_to_the_history_alone(pets, capsys):
    frame = table(seed=1)
    frame = frame[frame["kind"].isin(["ant", "cat"])]
    frame = frame.assign(kind=["cat"] * 10 + frame["kind"].tolist()[10:])  # five wrong labels among the first ten
    frame.to_csv("test.csv", index=False)
    before = snapshot(pets)
    out = said(capsys, "score", "pets", "test.csv")
    assert re.findall(r"│ (\w+) +│ +(\d+) │ +([\d.]+)% │", out) == [
        ("ant", "35", "100.0"),
        ("cat", "45", "88.9"),
        ("all", "80", "93.8"),
    ]
    after, about = snapshot(pets), json.loads((pets / "model.json").read_text())
    assert {name for name in after if after[name] != before[name]} == {"model.json"}
    (event,) = about.pop("history")
    assert event.pop("when") and event == {
        "event": "scored",
        "data": "test.csv",
        "samples": 80,
        "accuracy": 0.9375,
        "classes": [["ant", 35, 35], ["cat", 40, 45]],
    }
    assert about == {k: v for k, v in json.loads(before["model.json"]).items() if k != "history"}
    assert said(capsys, "undo", "pets") and "scored 93.8% on 80 samples" in said(capsys, "show", "pets")


def test_with_the_task_it_is_asked_of_every_command(here, capsys):
    table()[lambda frame: frame["kind"].isin(["cat", "dog"])].to_csv("rest.csv", index=False)
    said(capsys, "teach", "pets", "monday.csv", *SLDA, "stream.scenario=task")
    said(capsys, "teach", "pets", "rest.csv")
    said(capsys, "teach", "pets", "monday.csv", "--task", "1")
    assert [len(task.labels) for task in prer.load("pets").model_.tasks] == [2, 2, 2]
    assert prer.load("pets").model_.tasks[2].head == 0
    code, out, err = outcome(capsys, "predict", "pets", "test.csv", "--task", "2", "--proba")
    assert code == 0 and out.startswith("sample,label,seeds,p(cat),p(dog)\n")
    assert "80 of 80 samples of known classes (100.0%)" in err
    assert "100.0%" in said(capsys, "score", "pets", "rest.csv", "--task", "2")
    assert "task 4 does not exist; give 1 to 3" in refused(capsys, "score", "pets", "rest.csv", "--task", "4")
    assert "task 1 does not know class 'cat'" in refused(capsys, "teach", "pets", "rest.csv", "--task", "1")


@pytest.mark.parametrize("command", ["predict", "score", "sample", "undo"])
def test_a_folder_without_a_model_is_named(here, capsys, command):
    words = {"undo": (), "sample": ("--class", "ant")}.get(command, ("test.csv",))
    assert "nowhere contains no model" in refused(capsys, command, "nowhere", *words)
    assert not (here / "nowhere").exists()


def test_the_first_lesson_is_not_taken_back(here, capsys):
    said(capsys, "teach", "pets", "monday.csv", *SLDA)
    before = snapshot(here / "pets")
    assert "pets has no previous version" in refused(capsys, "undo", "pets")
    assert snapshot(here / "pets") == before
