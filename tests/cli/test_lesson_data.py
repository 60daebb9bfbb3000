"""The first lesson fixes how data is read: later lessons, predictions and scores follow, and what differs is named."""

import json
import warnings
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from support.commands import outcome, refused, said
from support.tables import table

import prer

CITIES = {"ant": "Rome", "bee": "Oslo", "cat": "Rome", "dog": "Oslo"}
FIRST = ("stream.label=kind", "learner.name=slda")


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    """The test's own folder is the current one; warnings are shown as users see them."""
    monkeypatch.chdir(tmp_path)
    with warnings.catch_warnings(action="always"):
        yield tmp_path


def cities(*kinds, seed=0):
    """A table with a column of texts and missing numbers, of these classes."""
    frame = table(seed=seed)
    frame.insert(0, "city", frame["kind"].map(CITIES))
    frame.loc[::9, "width"] = None
    return frame[frame["kind"].isin(kinds)]


def taught_cities(capsys):
    """A model of the classes ant and bee, with a column of texts and missing numbers."""
    cities("ant", "bee").to_csv("first.csv", index=False)
    said(capsys, "teach", "pets", "first.csv", "stream.missing=median", *FIRST)


# -- tables ------------------------------------------------------------------------------------------------------------


def test_texts_and_missing_numbers_are_read_as_in_the_first_lesson(capsys):
    taught_cities(capsys)
    more = cities("cat", "dog", seed=1)
    more[more.columns[::-1]].to_csv("more.csv", index=False)  # other columns first, the label in their middle
    code, _, err = outcome(capsys, "teach", "pets", "more.csv")
    assert (code, err) == (0, "")
    model = prer.ContinualClassifier("slda", missing="median")
    model.partial_fit(cities("ant", "bee"), "kind").partial_fit(more, "kind")
    assert model.state_digest_ == prer.load("pets").state_digest_
    reading = prer.load("pets").model_.reading
    assert reading.columns == ("city", "height", "width", "depth", "age") and reading.label == "kind"
    first = cities("ant", "bee")["width"].median()
    assert reading.medians[2] == pytest.approx(first)  # the later lesson does not change it


def test_an_unknown_text_is_a_warning_of_every_command_and_counts_as_none(capsys):
    taught_cities(capsys)
    new = cities("ant", "bee", seed=1)
    new.iloc[0, 0] = "Bern"
    new.to_csv("new.csv", index=False)
    said_once = "warning: column 'city' holds unknown texts ('Bern'): each counts as none of the known categories\n"
    for words in (("predict", "pets", "new.csv", "-o", "out.csv"), ("score", "pets", "new.csv")):
        code, _, err = outcome(capsys, *words)
        assert code == 0 and err.count("Bern") == 1 and err.startswith(said_once)
    new.iloc[0, 0] = None  # a missing text is none of the categories, too
    new.to_csv("none.csv", index=False)
    answers = [outcome(capsys, "predict", "pets", name, "--proba")[1] for name in ("new.csv", "none.csv")]
    assert answers[0] == answers[1] and len(answers[0].splitlines()) == len(new) + 1
    code, _, err = outcome(capsys, "teach", "pets", "new.csv")
    assert (code, err) == (0, said_once)
    assert prer.load("pets").model_.reading.categories[0] == ("Oslo", "Rome")


CHANGED = {
    "no label": (lambda f: f.drop(columns="kind"), "it has no label column 'kind'; add it"),
    "a missing column": (lambda f: f.drop(columns="age"), "(missing: 'age'); add the missing columns"),
    "one column more": (lambda f: f.assign(tail=1), "(unknown: 'tail'); remove the unknown columns"),
    "text among numbers": (lambda f: f.assign(age=["old"] * len(f)), "column 'age' holds text ('old')"),
    "a missing label": (lambda f: f.assign(kind=[None, *f["kind"][1:]]), "row 1"),
    "a number as label": (lambda f: f.assign(kind=7), "use numbers or text"),
}


@pytest.mark.parametrize("change", CHANGED)
@pytest.mark.parametrize("command", ["teach", "score"])
def test_a_table_that_differs_is_refused_and_the_difference_named(capsys, change, command):
    taught_cities(capsys)
    before = prer.load("pets").state_digest_
    how, sentence = CHANGED[change]
    if (command, change) == ("score", "a number as label"):
        sentence = "the model has not learned class '7'; teach it first"
    how(cities("ant", "bee")).to_csv("new.csv", index=False)
    assert sentence in refused(capsys, command, "pets", "new.csv")
    assert prer.load("pets").state_digest_ == before


def test_a_missing_value_is_an_error_unless_the_first_lesson_said_otherwise(capsys):
    cities("ant", "bee").dropna().to_csv("first.csv", index=False)
    cities("cat", "dog").to_csv("more.csv", index=False)
    said(capsys, "teach", "pets", "first.csv", *FIRST)
    for command in ("teach", "predict", "score"):
        assert "column 'width': a value is missing; fill it or drop the row" in refused(
            capsys, command, "pets", "more.csv"
        )
    assert "stream.missing was fixed by the first lesson" in refused(
        capsys, "teach", "pets", "more.csv", "stream.missing=median"
    )


@pytest.mark.parametrize(("first", "then"), [(["1", "2"], ["1", "x"]), (["1", "x"], ["1", "2"])])
def test_a_label_that_was_a_number_and_is_a_text_is_refused(capsys, first, then):
    for name, labels in (("first", first), ("then", then)):
        rows = [f"{i % 5},{i % 3},{labels[i % 2]}" for i in range(40)]
        Path(f"{name}.csv").write_text("\n".join(["a,b,label", *rows]) + "\n")
    said(capsys, "teach", "m", "first.csv", "learner.name=slda")
    assert "use numbers or text in all tasks" in refused(capsys, "teach", "m", "then.csv")


def test_small_classes_are_repeated_as_in_python(capsys):
    frame = cities("ant", "bee", "cat").dropna()
    frame = frame.drop(frame.index[frame["kind"] == "bee"][3:])
    frame.to_csv("first.csv", index=False)
    digests = set()
    for balance in (True, False):
        given = (*FIRST, f"stream.balance={str(balance).lower()}")
        code, out, _ = outcome(capsys, "teach", f"pets-{balance}", "first.csv", *given)
        assert code == 0 and f"{len(frame)} samples" in out
        with pytest.warns(UserWarning, match=r"fewer than 10 samples to learn from: 'bee' \(3\)"):
            python = prer.ContinualClassifier("slda", balance=balance).partial_fit(frame, "kind")
        assert prer.load(f"pets-{balance}").state_digest_ == python.state_digest_
        digests.add(python.state_digest_)
    assert len(digests) == 2


# -- images ------------------------------------------------------------------------------------------------------------


def photos(folder, classes, sides=(12, 12), mode="L"):
    """Twelve photos of each class, of which each has a brightness of its own."""
    rng = np.random.default_rng(0)
    for label in classes:
        (folder / label).mkdir(parents=True)
        for i in range(12):
            pixels = 60 * "abcd".index(label) + rng.integers(0, 40, sides)
            Image.fromarray(pixels.astype(np.uint8)).convert(mode).save(folder / label / f"{i}.png")
    return folder.name


@pytest.mark.parametrize("fit", ["resize", "pad"])
def test_images_of_other_sizes_and_colours_are_fitted_as_in_the_first_lesson(here, capsys, fit):
    first, more = photos(here / "one", "ab"), photos(here / "two", "cd", (16, 20), "RGB")
    said(capsys, "teach", "m", first, "stream.size=8", f"stream.fit={fit}", "learner.name=slda")
    said(capsys, "teach", "m", more)  # nothing of it is said again
    assert "24 samples" in said(capsys, "score", "m", more).replace("│ all   │      24", "24 samples")
    reading = prer.load("m").model_.reading
    assert (reading.size, reading.fit, reading.shape) == (8, fit, (1, 8, 8))
    python = prer.ContinualClassifier("slda")
    for folder in (first, more):
        files = sorted((here / folder).glob("*/*.png"))
        x = np.stack([fitted(Image.open(file).convert("L"), fit) for file in files])
        python.partial_fit(x, [file.parent.name for file in files])
    assert python.predict(x).tolist() == prer.load("m").predict(x).tolist() == ["c"] * 12 + ["d"] * 12
    cut = python.state_digest_ == prer.load("m").state_digest_  # another library rounds resized pixels differently
    assert cut == (fit == "pad")
    for word in ("stream.size=9", "stream.fit=" + {"resize": "pad", "pad": "resize"}[fit]):
        assert "was fixed by the first lesson of m" in refused(capsys, "teach", "m", more, word)


def fitted(image, fit):
    """An image of 8x8 pixels: resized, or cut out of its middle."""
    if fit == "resize":
        return np.asarray(image.resize((8, 8)))
    left, top = (image.width - 8) // 2, (image.height - 8) // 2
    return np.asarray(image.crop((left, top, left + 8, top + 8)))


def test_without_a_size_an_image_that_differs_is_named(here, capsys):
    first, more = photos(here / "one", "ab"), photos(here / "two", "c")
    said(capsys, "teach", "m", first, "learner.name=slda")
    Image.new("L", (14, 9)).save(here / "two" / "c" / "3.png")
    for command in ("teach", "predict", "score"):
        err = refused(capsys, command, "m", more)
        assert "c/3.png: it has 14x9 pixels" in err and "12x12" in err
    table().to_csv("pets.csv", index=False)
    assert "the model was trained on images, but this is a table" in refused(capsys, "predict", "m", "pets.csv")
    assert json.loads((here / "m" / "model.json").read_text())["reading"]["size"] == 0
