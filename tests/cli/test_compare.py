"""prer compare: methods on a user's own data, and which one to take."""

import re
import shlex

import numpy as np
import pytest
from PIL import Image
from support.commands import outcome, refused, said
from support.tables import table

import prer
from prer.runs.folder import RunFolder

FAST = ("--method", "ncm", "--method", "slda", "--seeds", "2")
PETS = ("compare", "pets.csv", "stream.label=kind")


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A folder with a table of four classes."""
    monkeypatch.chdir(tmp_path)
    table().to_csv("pets.csv", index=False)
    return tmp_path


def rows(out):
    """The table that a comparison prints, by method."""
    lines = [re.split(r" *│ *", line.strip("│ ")) for line in out.splitlines() if line.startswith("│")]
    return {name: values for name, *values in lines}


def proposed(out):
    """The words of the command that makes the model, in a folder called made."""
    (line,) = [line for line in out.splitlines() if line.startswith("Make the model:  prer ")]
    return ["made" if word == "MODEL" else word for word in shlex.split(line)[4:]]


def test_methods_are_compared_and_one_is_recommended(here, capsys):
    out = said(capsys, *PETS, *FAST)
    assert "2 tasks: ant bee | cat dog" in out
    assert re.search(r"│ ncm +│ 100.0 ± 0.0 │ .*bytes │ +0 │ +0\.\d │", out)
    assert "Take ncm: 100.0 % correct after the last lesson; it keeps" in out  # slda is as good, and keeps more
    assert out.endswith("Make the model:  prer teach MODEL pets.csv stream.label=kind learner.name=ncm\n")
    assert len(list((here / "runs").iterdir())) == 2


@pytest.mark.slow
def test_six_methods_are_compared_if_nothing_is_said(here, capsys):
    out = said(capsys, *PETS, "--seeds", "1")
    found = rows(out)
    assert list(found) == ["prer", "ncm", "slda", "ranpac", "naive", "joint"]
    assert float(found["naive"][0]) <= 50 < 90 <= float(found["prer"][0])
    kept = {name: values[2] for name, values in found.items()}
    assert kept.pop("joint") == "128" and set(kept.values()) == {"0"}
    assert re.search(r"^Take (prer|ncm|slda|ranpac): ", out, re.MULTILINE)


def test_the_figures_are_those_of_the_runs(here, capsys):
    found = rows(said(capsys, *PETS, *FAST, "--out", "there"))
    for run in (here / "there").iterdir():
        model = prer.load(run)
        result = RunFolder(run).result
        accuracy, kept, samples, seconds = found[model.method]
        assert accuracy == f"{result['final_accuracy']['mean']:.1f} ± {result['final_accuracy']['std']:.1f}"
        assert kept == f"{result['memory_bytes'][-1]} bytes" and samples == "0"
        assert float(seconds) == pytest.approx(result["seconds"]["total"], abs=0.06)


def test_images_are_compared_and_the_proposed_command_makes_a_model(here, capsys):
    for number, label in enumerate("abcd"):
        (here / "photos" / label).mkdir(parents=True)
        for i in range(8):
            pixels = np.full((10 + i, 12), 60 * number + i, np.uint8)
            Image.fromarray(pixels).save(here / "photos" / label / f"{i}.png")
    given = ("stream.size=8", "stream.fit=pad", "stream.resplit=0.5", "stream.classes_per_task=1", "device=cpu")
    out = said(capsys, "compare", "photos", *given, *FAST)
    assert "4 tasks: a | b | c | d" in out
    assert proposed(out)[:-1] == ["teach", "made", "photos", "stream.size=8", "stream.fit=pad", "device=cpu"]
    said(capsys, *proposed(out))
    model = prer.load("made")
    assert (model.model_.reading.size, model.model_.reading.fit) == (8, "pad") and len(model.classes_) == 4


def test_a_learner_of_ones_own_is_compared_and_proposed_with_its_file(here, capsys):
    (here / "mine.py").write_text(
        "from dataclasses import dataclass\nfrom prer import SLDA\n"
        '@dataclass(kw_only=True)\nclass Compared(SLDA):\n    name = "compared"\n'
    )
    own = ("--method", "compared", "--method", "naive", "--plugin", "mine.py", "--seeds", "1")
    (here / "few.csv").write_text("a,b,kind\n" + "".join(f"{i % 3},{i % 7},{'xyz'[i % 3]}\n" for i in range(30)))
    out = said(capsys, "compare", "few.csv", *own)
    assert "3 tasks: x | y | z" in out and "Take compared: 100.0 %" in out
    said(capsys, *proposed(out))
    assert "compared, 1 seed" in said(capsys, "show", "made", "--plugin", "mine.py")


def test_lessons_can_be_chosen(here, capsys):
    out = said(capsys, *PETS, "stream.classes_per_task=1", *FAST)
    assert "4 tasks: ant | bee | cat | dog" in out and "classes_per_task" not in out.splitlines()[-1]
    out = said(capsys, *PETS, "stream.tasks=[['dog'], ['cat', 'ant']]", *FAST)
    assert "2 tasks: dog | cat ant" in out
    said(capsys, *proposed(out))


@pytest.mark.parametrize(
    ("word", "key"),
    [
        ("learner.epochs=1", "learner.epochs"),
        ("learner.name=ncm", "learner.name"),
        ("like=mnist", "like"),
        ("stream.scenario=task", "stream.scenario"),
        ("stream.kind=permuted", "stream.kind"),
    ],
)
def test_what_a_comparison_chooses_cannot_be_set(here, capsys, word, key):
    err = refused(capsys, *PETS, *FAST, word)
    assert f"{key} cannot be set here, since methods are compared with their default settings" in err
    assert not (here / "runs").exists()


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("nothing.csv",), "is neither a file nor a known data set"),
        (("pets.csv",), "name the label column with stream.label=kind or stream.label=age"),
        (("one.csv", "stream.label=kind"), "one.csv has only one class; methods are compared on two or more"),
        (("pets.csv", "stream.label=kind", "--method", "nothing"), "unknown learner 'nothing'"),
        (("pets.csv", "stream.label=kind", "--seeds", "0"), "seeds"),
    ],
)
def test_wrong_input_is_refused_in_a_sentence(here, capsys, words, sentence):
    table()[lambda frame: frame["kind"] == "ant"].to_csv("one.csv", index=False)
    assert sentence in refused(capsys, "compare", *words)
    assert not (here / "runs").exists()


def test_missing_values_and_texts_are_filled_and_encoded(here, capsys):
    frame = table()
    frame.insert(0, "city", frame["kind"].map({"ant": "Rome", "bee": "Oslo", "cat": "Rome", "dog": "Bern"}))
    frame.loc[::9, "width"] = None
    frame.to_csv("pets.csv", index=False)
    assert "set stream.missing=median" in refused(capsys, *PETS, *FAST)
    code, out, _ = outcome(capsys, *PETS, "stream.missing=median", *FAST)
    assert code == 0 and "160 vectors of 7, 4 classes" in out and "stream.missing=median" in proposed(out)
