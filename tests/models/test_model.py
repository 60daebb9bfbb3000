"""A model alone: it predicts as its learner did, generates, and refuses damaged and forged files."""

import json

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from support.models import finished_run, random_images

from prer.errors import InputError
from prer.models.folder import load
from prer.runs.run import load_model


def test_a_model_alone_predicts_what_the_learner_predicted(finished, alone):
    learner, stream = load_model(finished)
    model = load(alone)
    for task in stream:
        x = task.x[:50]
        answers = learner.predict(x.expand(2, *x.shape), task.head)
        labels, shares = model.predict(x.numpy(), task.index + 1)
        for label, share, of_seeds in zip(labels, shares, answers.T.tolist(), strict=True):
            predicted = [task.labels[task.outputs.index(output)] for output in of_seeds]
            assert predicted.count(label) / 2 == share and share >= 0.5


def test_without_a_task_the_density_decides(alone):
    model = load(alone)
    x = random_images()
    z = model.learner.encoder_(torch.from_numpy(x).unsqueeze(1).float().div(255).expand(2, -1, -1, -1, -1))
    likely = torch.stack(
        [model.learner.density_.log_prob(z, torch.full(z.shape[:2], c)) for c in range(10)], dim=2
    ).argmax(2)
    labels, shares = model.predict(x)
    for label, share, of_seeds in zip(labels, shares, likely.T.tolist(), strict=True):
        assert [model.labels[c] for c in of_seeds].count(label) / 2 == share


def test_without_a_task_a_prediction_does_not_depend_on_the_other_rows(alone):
    model, x = load(alone), random_images()
    labels, _ = model.predict(x)
    assert [model.predict(x[i : i + 1])[0][0] for i in range(len(x))] == labels


def test_samples_are_of_the_asked_class_and_drawn_anew_by_number(alone):
    model = load(alone)
    one, again, other = model.sample(3, 5), model.sample("3", 5), model.sample(3, 5, noise_seed=1)
    assert one.shape == (5, 1, 8, 8) and one.dtype == torch.uint8
    assert torch.equal(one, again) and not torch.equal(one, other)
    assert not torch.equal(one, model.sample(4, 5)) and not torch.equal(one, model.sample(3, 5, seed=1))


def test_vectors_come_back_in_their_own_units(run_on_vectors):
    folder, x, _ = run_on_vectors
    model = load(folder)
    made = model.sample("c", 50)
    assert made.shape == (50, 3) and 60 < float(made.mean()) < 220  # means of the data are 100 to 160
    labels, _ = model.predict(x[:8], 1)
    assert set(labels) <= {"<d>", "a,b"}  # the first task's, by name


@pytest.mark.parametrize(
    ("ask", "sentence"),
    [
        (
            lambda m: m.predict(np.zeros((2, 9, 9), np.uint8), 1),
            "trained on samples of shape 1x8x8, but these have shape 1x9x9",
        ),
        (lambda m: m.predict(np.zeros((2, 8, 8), np.uint8), 6), "task 6 does not exist; give 1 to 5"),
        (lambda m: m.sample("11", 2), "unknown class '11'"),
        (lambda m: m.sample(1, 2, seed=2), "seed 2 does not exist; give 0 to 1"),
    ],
)
def test_impossible_requests_are_refused_with_a_sentence(alone, ask, sentence):
    with pytest.raises(InputError, match=sentence):
        ask(load(alone))


def test_learners_that_generate_nothing_need_a_task(tmp_path):
    folder = finished_run(tmp_path, "learner.name=naive", "learner.epochs=1")
    assert not (folder / "memory").exists()
    x = random_images()
    with pytest.raises(InputError, match="naive cannot tell tasks apart; say which it is, 1 to 5"):
        load(folder).predict(x)
    assert set(load(folder).predict(x, 2)[0]) <= {2, 3}


def test_memory_shows_every_class_met_after_each_task(finished):
    for task in range(1, 6):
        shown = load_file(finished / "memory" / f"task-{task}.safetensors")["samples"]
        assert shown.shape == (2 * task, 8, 1, 8, 8) and shown.dtype == torch.uint8
    assert shown.float().std() > 5  # images, not a grey area


# -- damaged and forged files ------------------------------------------------------------------------------------------


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
        load(alone).predict(np.zeros((1, 8, 8), np.uint8), 1)


@pytest.mark.parametrize("name", ["model.json", "model.safetensors"])
@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"\x00" * 100, b"null"])
def test_a_damaged_model_is_refused_with_a_sentence(alone, name, content):
    (alone / name).write_bytes(content)
    with pytest.raises(InputError, match="cannot be read"):
        load(alone)


def test_a_folder_without_a_model_is_refused(tmp_path):
    with pytest.raises(InputError, match="contains no model"):
        load(tmp_path)
