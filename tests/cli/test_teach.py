"""prer teach, score, undo and show: a model on disk that is taught again and again."""

import csv
import io
import json
import multiprocessing
import re
import signal

import numpy as np
import pytest
from filelock import FileLock
from PIL import Image
from support.commands import begun, ended, outcome, refused, said
from support.tables import table

import prer
from prer.models import folder as files

SLDA = ("stream.label=kind", "learner.name=slda")
TINY = ("learner.epochs=1", "learner.epochs_autoencoder=1", "learner.density.epochs=1", "learner.density.blocks=1")


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
    (pets / "model.json").write_text(json.dumps(about | {"format": 3}))
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


def _hold(folder, ready, done):
    with FileLock(folder / files.LOCK):
        ready.set()
        done.wait(60)


def test_a_second_process_is_told_to_wait(pets, capsys):
    context = multiprocessing.get_context("fork")
    ready, done = context.Event(), context.Event()
    process = context.Process(target=_hold, args=(pets, ready, done))
    process.start()
    assert ready.wait(60)
    try:
        assert "another process is teaching pets; wait until it ends" in refused(
            capsys, "teach", "pets", "wednesday.csv"
        )
        assert "slda" in said(capsys, "show", "pets")  # reading needs no lock
    finally:
        done.set()
        process.join()
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


def test_progress_and_warnings_are_shown(here, capsys):
    table()[:8].to_csv("few.csv", index=False)
    code, out, err = outcome(capsys, "teach", "new", "few.csv", "stream.label=kind", *TINY)
    assert code == 0 and re.search(r"lesson 1  autoencoder epoch +1/1 .* left", out)
    assert "warning: some classes have fewer than 10 samples to learn from: 'ant' (2)" in out + err
