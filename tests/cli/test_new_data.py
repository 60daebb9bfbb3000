"""A model reads new data as its own was read: columns by name, with labels or without, images of any size."""

import json
import re
import warnings
import zipfile

import numpy as np
import pytest
from PIL import Image
from support.tables import COLUMNS, FEATURES, table

from prer.cli.main import main
from prer.data.reading import Reading
from prer.errors import InputError
from prer.learners import Naive
from prer.models.folder import load, save
from prer.models.model import Model
from prer.runs.learn import learn
from prer.streams.stream import Stream

LONG = ["learner.epochs=60", "learner.lr=3e-3"]


def trained(out, *settings):
    main(["run", *settings, "like=digits", "learner.name=naive", "--seeds", "1", "--quiet", "--out", str(out)])
    return next(path.parent for path in out.glob("*/result.json"))


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """A model of a table whose label stands in the middle."""
    folder = tmp_path_factory.mktemp("table")
    table().to_csv(folder / "old.csv", index=False)
    return trained(folder / "runs", f"stream.data={folder / 'old.csv'}", "stream.label=kind", *LONG)


def predicted(model, file, capsys, *options):
    main(["predict", str(model), str(file), *options])
    out, err = capsys.readouterr()
    return [line.split(",")[1] for line in out.partition("sample,label,seeds\n")[2].splitlines()], err


def refused(model, file, capsys):
    with pytest.raises(SystemExit) as ended:
        main(["predict", str(model), str(file), "--task", "1"])
    assert ended.value.code == 2
    return capsys.readouterr().err


WRITERS = {"csv": lambda f, p: f.to_csv(p, index=False), "parquet": lambda f, p: f.to_parquet(p)}


ORDERS = {
    "as it was": COLUMNS,
    "label first": ["kind", *FEATURES],
    "label last": [*FEATURES, "kind"],
    "another order": ["age", "kind", "width", "depth", "height"],
    "without the label": FEATURES,
    "without the label, in another order": FEATURES[::-1],
}


@pytest.mark.parametrize("kind", WRITERS)
@pytest.mark.parametrize("columns", ORDERS.values(), ids=ORDERS)
def test_columns_are_known_by_name(model, tmp_path, capsys, kind, columns):
    new = table(seed=1)
    WRITERS[kind](new[columns], tmp_path / "new")
    labels, err = predicted(model, tmp_path / "new", capsys, "--task", "2")
    right = np.mean([a == b for a, b in zip(labels, new["kind"], strict=True) if b in ("cat", "dog")])
    assert right > 0.95
    assert ("correct by the labels" in err) == ("kind" in columns)
    assert load(model).predict(new[columns], 2)[0] == labels  # a frame in Python, too


def test_names_that_are_numbers_may_be_in_any_order(tmp_path, capsys):
    numbers = dict(zip(FEATURES, "0123", strict=True))
    table().rename(columns=numbers).to_csv(tmp_path / "old.csv", index=False)
    folder = trained(tmp_path / "runs", f"stream.data={tmp_path / 'old.csv'}", "stream.label=kind", "learner.epochs=1")
    new = table(seed=1)[FEATURES].rename(columns=numbers)
    new.to_csv(tmp_path / "a.csv", index=False)
    new[["2", "0", "3", "1"]].to_csv(tmp_path / "b.csv", index=False)
    answers = [predicted(folder, tmp_path / name, capsys, "--task", "1")[0] for name in ("a.csv", "b.csv")]
    assert answers[0] == answers[1]


WRONG = {
    "one missing": (lambda f: f.drop(columns="age"), r"\(missing: 'age'\); add the missing columns; their order"),
    "one more": (lambda f: f.assign(city=1), r"\(unknown: 'city'\); remove the unknown columns; their"),
    "one more, of text": (lambda f: f.assign(city="rome"), r"\(unknown: 'city'\)"),
    "another name": (
        lambda f: f.rename(columns={"age": "AGE"}),
        "missing: 'age'; unknown: 'AGE'.; add .* and remove",
    ),
    "many more": (lambda f: f.assign(**{f"c{i}": 1 for i in range(9)}), "'c0', 'c1', 'c2', 'c3', 'c4' and 4 more"),
    "text": (lambda f: f.assign(age="old"), r"row 1, column 'age' holds text \('old'\); encode it as numbers"),
    "a missing value": (lambda f: f.assign(age=[1.0, None] * 80), "row 2, column 'age': a value is missing"),
}


@pytest.mark.parametrize("kind", WRITERS)
@pytest.mark.parametrize("case", WRONG)
def test_other_columns_are_named(model, tmp_path, capsys, kind, case):
    change, said = WRONG[case]
    WRITERS[kind](change(table()), tmp_path / "new")
    err = refused(model, tmp_path / "new", capsys)
    assert re.search(said, err) and "stream.label" not in err
    with pytest.raises(InputError, match=said):
        load(model).predict(change(table()), 1)


def test_no_name_of_a_column_reaches_the_terminal_as_it_is(model, tmp_path, capsys):
    table().assign(**{"\x1b[31m": 1}).to_parquet(tmp_path / "new")
    assert r"unknown: '\\x1b[31m'" in refused(model, tmp_path / "new", capsys)


def test_a_table_without_a_header_is_told_from_one_with_other_columns(model, tmp_path, capsys):
    table()[FEATURES].to_csv(tmp_path / "new.csv", index=False, header=False)
    assert "its first line contains numbers; add a header" in refused(model, tmp_path / "new.csv", capsys)


@pytest.mark.parametrize("label", ["", "nan", "0.5"])
def test_labels_that_are_none_do_not_hinder_a_prediction(model, tmp_path, capsys, label):
    table().assign(kind=[label, "ant"] * 80).to_csv(tmp_path / "new.csv", index=False)
    labels, err = predicted(model, tmp_path / "new.csv", capsys, "--task", "1")
    assert len(labels) == 160 and ("correct by the labels" in err) == (label == "0.5")


def test_arrays_are_taken_by_position(model, tmp_path, capsys):
    x = table()[FEATURES].to_numpy()
    np.save(tmp_path / "x.npy", x)
    np.savez(tmp_path / "x.npz", x=x, name=np.array("anything"))
    table()[FEATURES].to_csv(tmp_path / "x.csv", index=False)
    answers = [predicted(model, tmp_path / name, capsys, "--task", "1")[0] for name in ("x.npy", "x.npz", "x.csv")]
    assert answers[0] == answers[1] == answers[2]


def test_a_model_without_names_tells_the_label_by_the_number_of_columns(tmp_path, capsys):
    frame = table()
    np.savez(tmp_path / "old.npz", x=frame[FEATURES].to_numpy(), y=frame["kind"].to_numpy(str))
    folder = trained(tmp_path / "runs", f"stream.data={tmp_path / 'old.npz'}", "learner.epochs=1")
    answers = []
    for name, columns in (("a.csv", FEATURES), ("b.csv", [*FEATURES, "kind"])):
        frame[columns].to_csv(tmp_path / name, index=False)
        answers.append(predicted(folder, tmp_path / name, capsys, "--task", "1")[0])
    assert answers[0] == answers[1]
    frame.assign(more=1).to_csv(tmp_path / "c.csv", index=False)
    assert "trained on 4 features, but the table has 6 columns" in refused(folder, tmp_path / "c.csv", capsys)


def test_a_model_that_was_written_before_is_read_as_before(model, tmp_path, capsys):
    about = json.loads((model / "model" / "model.json").read_text())
    assert about["reading"].items() > {"columns": FEATURES, "label": "kind", "size": 0, "fit": "resize"}.items()
    assert about.pop("reading")["missing"] == "error"
    (tmp_path / "model.json").write_text(json.dumps(about))
    (tmp_path / "model.safetensors").write_bytes((model / "model" / "model.safetensors").read_bytes())
    table()[[*FEATURES, "kind"]].to_csv(tmp_path / "new.csv", index=False)
    assert predicted(tmp_path, tmp_path / "new.csv", capsys, "--task", "1") == predicted(
        model, tmp_path / "new.csv", capsys, "--task", "1"
    )


@pytest.mark.parametrize("way", ["by name", "beside", "rows"])
def test_frames_and_rows_name_the_columns_of_a_stream(way, tmp_path):
    frame = table()
    stream = {
        "by name": lambda: Stream.split(frame, "kind"),
        "beside": lambda: Stream.split(frame[FEATURES], frame["kind"].to_numpy(str)),
        "rows": lambda: Stream.split(frame.to_dict("records"), "kind"),
    }[way]()
    assert stream.reading.columns == tuple(FEATURES)
    learner = Naive(epochs=1)
    learn(stream, learner, seeds=1, device="cpu", warned=True)
    save(tmp_path, Model.learned(learner, list(stream)))
    model, other = load(tmp_path), frame[FEATURES[::-1]]
    assert model.predict(other, 1) == model.predict(frame[FEATURES].to_numpy(), 1)


# -- images -----------------------------------------------------------------------------------------------------------


def pictures(folder, sides=(12, 12), mode="L", classes=("ant", "bee"), n=20):
    """Bright stripes that lie or stand."""
    for c, name in enumerate(classes):
        (folder / name).mkdir(parents=True)
        for i in range(n):
            image = np.zeros(sides, np.uint8)
            image[(slice(i % 3, None, 4), slice(None))[:: 1 - 2 * c]] = 255
            Image.fromarray(image).convert(mode).save(folder / name / f"{i}.png")
    return folder


@pytest.fixture(scope="module")
def seen(tmp_path_factory):
    """A model of images that were brought to 10 pixels a side, and one of images as they were."""
    folder = tmp_path_factory.mktemp("images")
    pictures(folder / "old")
    data = f"stream.data={folder / 'old'}"
    return [
        trained(folder / "sized", data, "stream.size=10", "stream.fit=pad", *LONG),
        trained(folder / "plain", data, *LONG),
    ]


@pytest.mark.parametrize("sides", [(12, 12), (16, 24), (9, 9)])
@pytest.mark.parametrize("mode", ["L", "RGB"])
def test_images_of_any_size_and_colour_are_brought_to_the_model(seen, tmp_path, capsys, sides, mode):
    folder = pictures(tmp_path / "new", sides, mode, n=4)
    flat = tmp_path / "flat"
    flat.mkdir()
    for file in folder.glob("*/*.png"):
        (flat / f"{file.parent.name}-{file.name}").write_bytes(file.read_bytes())
    with zipfile.ZipFile(tmp_path / "new.zip", "w") as archive:
        for file in flat.iterdir():
            archive.write(file, file.name)
    labelled, err = predicted(seen[0], folder, capsys)
    assert "correct by the labels" in err and len(labelled) == 8
    for other in (flat, tmp_path / "new.zip"):
        labels, err = predicted(seen[0], other, capsys)
        assert labels == labelled and "correct by the labels" not in err
    one_by_one = [predicted(seen[0], file, capsys)[0][0] for file in sorted(flat.iterdir())]
    assert one_by_one == labelled
    model = load(seen[0])
    assert model.reading == Reading(size=10, fit="pad", shape=(1, 10, 10))
    arrays = np.stack([np.asarray(Image.open(file)) for file in sorted(flat.iterdir())])
    assert model.predict(arrays)[0] == labelled  # and in Python


def test_images_keep_their_size_where_none_was_set(seen, tmp_path, capsys):
    folder = pictures(tmp_path / "new", n=4)
    labels, err = predicted(seen[1], folder, capsys)
    assert labels == ["ant"] * 4 + ["bee"] * 4 and "8 of 8" in err
    Image.new("L", (14, 9)).save(folder / "bee" / "3.png")
    err = refused(seen[1], folder, capsys)
    assert re.search(r"bee/3.png: it has 14x9 pixels, but the model was trained on images of 12x12; resize it", err)
    err = refused(seen[1], folder / "bee" / "3.png", capsys)
    assert re.search(r"3.png: it has 14x9 pixels", err)


@pytest.mark.parametrize("bright", [1, 40, 255])
def test_a_dark_image_may_come_alone(seen, tmp_path, capsys, bright):
    Image.fromarray(np.full((12, 12), bright, np.uint8)).save(tmp_path / "x.png")
    assert len(predicted(seen[1], tmp_path / "x.png", capsys)[0]) == 1


def test_grey_images_get_the_colours_of_the_model(tmp_path, capsys):
    pictures(tmp_path / "old", mode="RGB")
    (tmp_path / "old" / "ant" / "0.png").unlink()
    folder = trained(tmp_path / "runs", f"stream.data={tmp_path / 'old'}", *LONG)
    assert load(folder).reading.shape == (3, 12, 12)
    labels, _ = predicted(folder, pictures(tmp_path / "grey", mode="L", n=2), capsys)
    assert labels == ["ant", "ant", "bee", "bee"]


def test_what_a_model_cannot_be_asked_is_said(model, seen, tmp_path, capsys):
    Image.new("L", (12, 12)).save(tmp_path / "x.png")
    assert "it is an image, but the model was trained on vectors" in refused(model, tmp_path / "x.png", capsys)
    table().to_csv(tmp_path / "x.csv", index=False)
    assert "the model was trained on images, but this is a table" in refused(seen[0], tmp_path / "x.csv", capsys)
    (tmp_path / "empty").mkdir()
    assert "it contains no images" in refused(seen[0], tmp_path / "empty", capsys)


# -- texts and missing values -----------------------------------------------------------------------------------------


def test_a_model_of_texts_and_missing_values_predicts_and_is_read_back(tmp_path, capsys):
    old = table().drop(columns=["height", "depth"])
    old.insert(0, "city", old["kind"].map({"ant": "Rome", "bee": "Oslo", "cat": "Rome", "dog": "Oslo"}))
    old.loc[::9, "width"] = None
    old.to_csv(tmp_path / "old.csv", index=False)
    settings = ["stream.label=kind", "stream.missing=median", "learner.epochs=60", "learner.lr=3e-3"]
    folder = trained(tmp_path / "runs", f"stream.data={tmp_path / 'old.csv'}", *settings)
    known = load(folder).reading
    assert known.features == ("city=Oslo", "city=Rome", "width", "age") and known.missing == "median"
    new = old.iloc[1:9][["age", "kind", "width", "city"]].assign(width=None)
    new.iloc[-1, 3] = "Bern"
    new.to_csv(tmp_path / "new.csv", index=False)
    with warnings.catch_warnings():
        warnings.simplefilter("always")  # tests turn warnings into errors
        labels, err = predicted(folder, tmp_path / "new.csv", capsys, "--task", "1")
    assert err.startswith("warning: ") and "column 'city' holds unknown texts ('Bern" in err
    truths = [kind for kind in new["kind"] if kind in ("ant", "bee")]
    assert [label for label, kind in zip(labels, new["kind"], strict=True) if kind in ("ant", "bee")][:-1] == truths[
        :-1
    ]
    with pytest.warns(UserWarning, match="Bern"):
        assert load(folder).predict(new, 1)[0] == labels
    arrays = np.array([[1, 0, np.nan, 90], [0, 1, np.nan, np.nan]])
    assert load(folder).predict(arrays, 1)[0] == ["bee", "ant"]
    assert "the columns differ" in refused(folder, _csv(tmp_path, new.drop(columns="city")), capsys)


def _csv(folder, frame):
    frame.to_csv(folder / "other.csv", index=False)
    return folder / "other.csv"
