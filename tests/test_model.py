"""A model alone: it predicts as its learner did, generates, says what it is, and no file can abuse its reader."""

import contextlib
import csv
import io
import json
import os
import pty
import re
import shutil
import subprocess
import sys

import numpy as np
import pytest
import torch
from PIL import Image
from safetensors.torch import load_file

from prer.cli.main import main
from prer.data.reading import Reading
from prer.errors import InputError
from prer.models.model import Model
from prer.models.samples import grid, samples
from prer.runs.run import load_model

TINY = ["learner.epochs=3", "learner.epochs_autoencoder=3", "learner.epochs_flow=2", "learner.blocks=2"]


def run(out, *settings):
    main(["run", *settings, "--seeds", "2", "--device", "cpu", "--quiet", "--out", str(out)])
    return next(path.parent for path in out.glob("*/result.json"))


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    return run(tmp_path_factory.mktemp("runs"), *TINY)


@pytest.fixture(scope="module")
def vectors(tmp_path_factory):
    folder = tmp_path_factory.mktemp("vectors")
    rng = np.random.default_rng(0)
    y = np.array(["a,b", "c", "<d>", "e"])[np.arange(160) % 4]
    x = rng.normal(size=(160, 3)) * 5 + 100 + 20 * (np.arange(160) % 4)[:, None]
    np.savez(folder / "data.npz", x=x, y=y)
    return run(folder / "runs", f"stream.data={folder / 'data.npz'}", "like=digits", *TINY[:3]), x, y


@pytest.fixture
def alone(finished, tmp_path):
    """The model's own folder, with nothing of the run beside it."""
    return shutil.copytree(finished / "model", tmp_path / "somewhere")


def test_a_model_alone_answers_as_the_learner_did(finished, alone):
    learner, stream = load_model(finished)
    model = Model(alone)
    for task in stream:
        x = task.x[:50]
        answers = learner.predict(x.expand(2, *x.shape), task.head)
        labels, shares = model.predict(x.numpy(), task.index + 1)
        for label, share, of_seeds in zip(labels, shares, answers.T.tolist(), strict=True):
            said = [task.labels[task.outputs.index(output)] for output in of_seeds]
            assert said.count(label) / 2 == share and share >= 0.5


def test_without_a_task_the_density_is_asked(alone):
    model = Model(alone)
    x = load_model_inputs()
    z = model.learner.encoder_(torch.from_numpy(x).unsqueeze(1).float().div(255).expand(2, -1, -1, -1, -1))
    likely = torch.stack(
        [model.learner.density_.log_prob(z, torch.full(z.shape[:2], c)) for c in range(10)], dim=2
    ).argmax(2)
    labels, shares = model.predict(x)
    for label, share, of_seeds in zip(labels, shares, likely.T.tolist(), strict=True):
        assert [model.labels[c] for c in of_seeds].count(label) / 2 == share


def load_model_inputs():
    return np.random.default_rng(1).integers(0, 256, size=(20, 8, 8), dtype=np.uint8)


def test_without_a_task_an_answer_does_not_depend_on_the_other_rows(alone):
    model, x = Model(alone), load_model_inputs()
    labels, _ = model.predict(x)
    assert [model.predict(x[i : i + 1])[0][0] for i in range(len(x))] == labels


def test_samples_are_of_the_asked_class_and_drawn_anew_by_number(alone):
    model = Model(alone)
    one, again, other = model.sample(3, 5), model.sample("3", 5), model.sample(3, 5, draw=1)
    assert one.shape == (5, 1, 8, 8) and one.dtype == torch.uint8
    assert torch.equal(one, again) and not torch.equal(one, other)
    assert not torch.equal(one, model.sample(4, 5)) and not torch.equal(one, model.sample(3, 5, seed=1))


def test_vectors_come_back_in_their_own_units(vectors):
    folder, x, _ = vectors
    model = Model(folder)
    made = model.sample("c", 50)
    assert made.shape == (50, 3) and 60 < float(made.mean()) < 220  # the data's: 100 to 160, not about 0
    labels, _ = model.predict(x[:8], 1)
    assert set(labels) <= {"<d>", "a,b"}  # the first task's, by name


@pytest.mark.parametrize(
    ("ask", "said"),
    [
        (lambda m: m.predict(np.zeros((2, 9, 9), np.uint8), 1), "trained on samples of 1x8x8, and these are of 1x9x9"),
        (lambda m: m.predict(np.zeros((2, 8, 8), np.uint8), 6), "there are tasks 1 to 5"),
        (lambda m: m.sample("11", 2), "no class '11' was learned"),
        (lambda m: m.sample(1, 2, seed=2), "there are seeds 0 to 1"),
    ],
)
def test_what_cannot_be_had_is_said(alone, ask, said):
    with pytest.raises(InputError, match=said):
        ask(Model(alone))


def test_learners_that_generate_nothing_need_a_task(tmp_path):
    folder = run(tmp_path, "learner.name=naive", "learner.epochs=1")
    assert not (folder / "memory").exists()
    x = load_model_inputs()
    with pytest.raises(InputError, match="naive cannot tell tasks apart; say which it is, 1 to 5"):
        Model(folder).predict(x)
    assert set(Model(folder).predict(x, 2)[0]) <= {2, 3}


CHANGES = [
    ("learner", "nothing"),
    ("learner", ["prer"]),
    ("settings", {"epoch": 3}),
    ("settings", []),
    ("shape", [1, 9, 9]),
    ("shape", "x"),
    ("shape", [1, -8, 8]),
    ("seeds", [0]),
    ("seeds", "many"),
    ("tasks", []),
    ("tasks", [{}]),
    ("tasks", [{"labels": [0], "head": 0, "outputs": [0, 1], "width": 2}]),
    ("tasks", [{"labels": [0, 1], "head": 7, "outputs": [0, 1], "width": 2}]),
    ("tasks", 3),
    ("reading", 3),
    ("reading", ["columns"]),
    ("reading", {"columns": "abc"}),
    ("reading", {"columns": [1, 2]}),
    ("reading", {"columns": ["a", "b"]}),  # of images
    ("reading", {"label": ["a"]}),
    ("reading", {"size": -1}),
    ("reading", {"size": True}),
    ("reading", {"size": 9}),  # of images of 8
    ("reading", {"size": 10**9}),
    ("reading", {"fit": "stretch"}),
    ("reading", {"more": 1}),
]


@pytest.mark.parametrize(("key", "value"), CHANGES)
def test_a_forged_model_is_refused_with_a_sentence(alone, key, value):
    about = json.loads((alone / "model.json").read_text())
    (alone / "model.json").write_text(json.dumps(about | {key: value}))
    with pytest.raises(InputError):
        Model(alone).predict(np.zeros((1, 8, 8), np.uint8), 1)


@pytest.mark.parametrize("name", ["model.json", "model.safetensors"])
@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"\x00" * 100, b"null"])
def test_a_damaged_model_is_refused_with_a_sentence(alone, name, content):
    (alone / name).write_bytes(content)
    with pytest.raises(InputError, match="cannot be read"):
        Model(alone)


def test_where_there_is_no_model_that_is_said(tmp_path):
    with pytest.raises(InputError, match="has no model"):
        Model(tmp_path)


def test_memory_shows_every_class_met_after_each_task(finished):
    for task in range(1, 6):
        shown = load_file(finished / "memory" / f"task-{task}.safetensors")["samples"]
        assert shown.shape == (2 * task, 8, 1, 8, 8) and shown.dtype == torch.uint8
    assert shown.float().std() > 5  # pictures, not a grey page


def test_the_card_says_what_it_is(finished, vectors):
    result, card = json.loads((finished / "result.json").read_text()), (finished / "model" / "README.md").read_text()
    assert f"{result['accuracy']['mean']:.2f} ± {result['accuracy']['std']:.2f}" in card
    assert "licence: CC BY 4.0" in card and "5. 8, 9" in card and "keeps 0 samples" in card
    other = (vectors[0] / "model" / "README.md").read_text()
    assert r"\<d\>" in other and "no licence is known" in other  # a label is text, not HTML


def test_predictions_are_printed_as_csv(vectors, tmp_path, capsys):
    folder, x, y = vectors
    np.savez(tmp_path / "new.npz", x=x[:6], y=y[:6])
    main(["predict", str(folder), str(tmp_path / "new.npz"), "--task", "1"])
    out, err = capsys.readouterr()
    lines = out.splitlines()
    assert lines[0] == "sample,label,seeds" and len(lines) == 7
    assert all(line.split(",", 1)[1].startswith(('"a,b",', "<d>,")) for line in lines[1:])
    assert re.search(r"as the file says: \d of the 3 samples of these classes", err)  # of 6, 3 are of the other task
    main(["predict", str(folder), str(tmp_path / "new.npz")])
    assert "the flow is asked" in capsys.readouterr().err


def on_a_terminal(*arguments):
    """What a command prints where its output is a terminal."""
    ours, theirs = pty.openpty()
    with subprocess.Popen([sys.executable, "-m", "prer", *arguments], stdout=theirs, stderr=theirs):
        os.close(theirs)
        printed = b""
        with contextlib.suppress(OSError):  # Linux says so where the other end is closed
            while some := os.read(ours, 4096):
                printed += some
    os.close(ours)
    return printed


def test_names_cannot_control_a_terminal_and_reach_a_pipe_as_they_are(tmp_path):
    x, y = np.random.default_rng(0).normal(size=(40, 3)), np.array(["\x1b[31mred", "blue\r\n\x9b"])[np.arange(40) % 2]
    np.savez(tmp_path / "data.npz", x=x, y=y)
    folder = run(tmp_path / "\x1b[2J", f"stream.data={tmp_path / 'data.npz'}", "like=digits", *TINY)
    np.savez(tmp_path / "both.npz", x=x, y=y)
    printed = on_a_terminal("predict", folder, tmp_path / "both.npz")
    assert b"sample,label,seeds" in printed and not re.search(rb"[\x1b\x9b]|\xc2\x9b", printed)
    assert rb"\x1b[31mred" in printed or rb"blue\r\n\x9b" in printed
    printed = on_a_terminal("sample", folder, "--class", "\x1b[31mred", "-o", tmp_path / "\x1b[31m.npy")
    assert rb"\x1b[31m.npy" in printed and b"\x1b" not in printed
    command = [sys.executable, "-m", "prer", "predict", folder, tmp_path / "both.npz"]
    piped = subprocess.run(command, capture_output=True, check=True).stdout.decode()
    assert {row["label"] for row in csv.DictReader(io.StringIO(piped, newline=""))} <= set(y)


def test_samples_to_predict_come_in_many_forms(finished, tmp_path, capsys):
    x = load_model_inputs()
    np.save(tmp_path / "x.npy", x)
    np.savez(tmp_path / "x.npz", x=x)
    Image.fromarray(x[0]).save(tmp_path / "one.png")
    for name, count in (("x.npy", 20), ("x.npz", 20), ("one.png", 1)):
        found, labels = samples(tmp_path / name, Model(finished).reading)
        assert labels is None
        np.testing.assert_array_equal(found.reshape(-1, 8, 8), x[:count])
    main(["predict", str(finished), str(tmp_path / "one.png"), "--task", "1"])
    assert len(capsys.readouterr().out.splitlines()) == 2


@pytest.mark.parametrize("name", ["x.npy", "x.npz", "x.png", "x.csv", "missing.npy"])
def test_damaged_samples_are_refused_with_a_sentence(finished, tmp_path, name, capsys):
    if name != "missing.npy":
        (tmp_path / name).write_bytes(b"\x00\x01 nothing")
    with pytest.raises(SystemExit) as ended:
        main(["predict", str(finished), str(tmp_path / name), "--task", "1"])
    assert ended.value.code == 2 and "Traceback" not in capsys.readouterr().err


def test_a_pickle_is_not_read(finished, tmp_path):
    np.save(tmp_path / "x.npy", np.array([object()]), allow_pickle=True)
    with pytest.raises(InputError, match="holds Python objects"):
        samples(tmp_path / "x.npy", Model(finished).reading)


def test_samples_are_written_as_a_picture_or_an_array(finished, vectors, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    main(["sample", str(finished), "--class", "3", "-n", "5"])
    page = np.asarray(Image.open(tmp_path / "3.png"))
    expected = Model(finished).sample(3, 5)
    assert page.shape == (17, 26) and np.array_equal(page[9:17, 0:8], expected[3, 0].numpy())
    main(["sample", str(vectors[0]), "--class", "a,b", "-n", "4"])
    assert np.load(tmp_path / "a-b.npy").shape == (4, 3)
    assert "Written: a-b.npy" in capsys.readouterr().out
    for wrong in ("x.gif", "no/such/folder/x.png"):
        with pytest.raises(SystemExit) as ended:
            main(["sample", str(finished), "--class", "3", "-o", wrong])
        assert ended.value.code == 2


def test_tasks_that_see_samples_in_their_own_way_are_not_guessed_at(tmp_path, capsys):
    folder = run(tmp_path, "stream.kind=rotated", "stream.count=2", *TINY)
    np.save(tmp_path / "x.npy", load_model_inputs())
    with pytest.raises(SystemExit) as ended:
        main(["predict", str(folder), str(tmp_path / "x.npy"), "--task", "2"])
    assert ended.value.code == 2 and "permute or rotate" in capsys.readouterr().err
    model = Model(folder)
    assert not torch.equal(model.sample(3, 4, task=1), model.sample(3, 4))  # each task has its own threes
    assert torch.equal(model.sample(3, 4, task=2), model.sample(3, 4))


def test_only_who_generates_is_said_to(finished, tmp_path):
    naive = run(tmp_path, "learner.name=naive", "learner.epochs=0")
    assert "prer sample MODEL --class 0" in (finished / "model" / "README.md").read_text()
    assert "prer sample" not in (naive / "model" / "README.md").read_text()


@pytest.mark.parametrize("mode", ["1", "L", "LA"])
def test_grey_pictures_stay_grey(tmp_path, mode):
    Image.fromarray(np.full((8, 8), 255, np.uint8)).convert(mode).save(tmp_path / "x.png")
    found, _ = samples(tmp_path / "x.png", Reading(shape=(1, 8, 8)))
    assert found.shape == (1, 1, 8, 8) and found.dtype == np.uint8


def test_a_grid_has_colours_where_images_have_them():
    images = np.random.default_rng(0).integers(0, 256, size=(3, 3, 4, 6), dtype=np.uint8)
    page = grid(images)
    assert page.shape == (9, 13, 3)
    np.testing.assert_array_equal(page[5:, :6], np.moveaxis(images[2], 0, -1))
