"""benchmarks/domains.py: four domains that have nothing in common, and the same search for each method."""

import numpy as np
import pytest
import torch
from support.benchmarks import script

from prer.runs.experiment import Experiment

domains = script("domains")
SHAPES = {"mnist": (1, 28), "kmnist10k": (1, 28), "svhn46k": (3, 32), "cifar10": (3, 32)}
EACH = 10


@pytest.fixture
def data(monkeypatch, tmp_path):
    """The file of the stream, made of images of one value for each domain, of which three parts are folders."""

    def images(name, count):
        number = next(i for i, known in enumerate(SHAPES) if str(name).endswith(known))
        assert (str(name) == str(tmp_path / list(SHAPES)[number])) == (number in (1, 2)) and count == EACH
        channels, size = list(SHAPES.values())[number]
        return torch.full((10 * count, channels, size, size), 100 + number, dtype=torch.uint8), np.arange(10).repeat(
            count
        )

    for name in ("kmnist10k", "svhn46k"):
        (tmp_path / name).mkdir()
    monkeypatch.setattr(domains, "images", images)
    return domains.written(tmp_path / "domains.npz", *domains.stream(tmp_path, EACH))


def test_the_stream_has_a_task_of_ten_classes_for_each_domain(data):
    with np.load(data) as arrays:
        x, y = arrays["x"], arrays["y"]
    assert x.shape == (400, 32, 32, 3) and x.dtype == np.uint8
    assert np.bincount(y).tolist() == [EACH] * 40
    tasks = domains.experiment(data, "naive", None, 1).stream.build().tasks
    assert [task.labels for task in tasks] == [tuple(range(first, first + 10)) for first in (0, 10, 20, 30)]
    for number, task in enumerate(tasks):
        rows = task.train_rows((0,))
        assert np.bincount(task.y[rows[0]]).tolist() == [0.8 * EACH] * 10
        assert set(task.samples(rows)[0].unique().tolist()) == ({0, 100 + number} if number < 2 else {100 + number})


def test_grey_images_are_padded_and_have_three_equal_channels(data):
    with np.load(data) as arrays:
        x = arrays["x"][0]
    assert (x[2:30, 2:30] == 100).all() and x.sum() == 100 * 28 * 28 * 3


def test_methods_hold_the_past_by_what_they_are_named_after():
    found = {m: domains.experiment("data.npz", m, 4.0, 5).learner for m in domains.METHODS}
    R, anchor, both, neither = (found[f"prer-{name}"] for name in ("r", "anchor", "both", "neither"))
    assert [(of.weight, of.anchor, of.share) for of in (R, both)] == [(4, 0, 0.8), (4, 4, 0.8)]
    assert [(of.weight, of.anchor, of.share) for of in (anchor, neither)] == [(0, 4, 0), (0, 0, 0)]
    new, generated = found["prer-distilled"], found["prer-distilled-generated"]
    assert new.labels == generated.labels == "distilled" and (new.weight, new.generated) == (4, 0)
    assert (generated.weight, generated.generated) == (4, 4)
    assert (found["lwf"].form, found["lwf"].size, found["lwf"].weight) == ("rehearsal", 500, 4)
    assert (found["lwf-classic"].form, found["lwf-classic"].weight) == ("classic", 4)
    for learner in found.values():
        assert (learner.channels, learner.embedding, learner.batch) == ((24, 48, 96), 200, 128)
        assert set(learner.phases(8000, 10).values()) <= {10, 0}


def test_only_phases_that_no_prediction_depends_on_are_left_out():
    for method, phases in {
        "both": {},
        "r": {},
        "distilled-generated": {},
        "anchor": {"flow": 0},
        "neither": {"flow": 0},
    }.items():
        for search in (False, True):
            learner = domains.experiment("data.npz", f"prer-{method}", 4.0, 5, search).learner
            assert {k: n for k, n in learner.phases(8000, 10).items() if n != 10} == phases
    found = [domains.experiment("data.npz", "prer-distilled", 4.0, 5, search).learner for search in (True, False)]
    assert [set(learner.phases(8000, 10).values()) for learner in found] == [{0, 10}, {10}]
    assert found[0].phases(8000, 10) == {"classifier": 10, "autoencoder": 0, "flow": 0, "head": 10}


def test_the_search_sees_validation_data_only():
    search, final = (domains.experiment("data.npz", "lwf", 1.0, 5, search) for search in (True, False))
    assert (search.stream.validation, final.stream.validation) == (0.2, 0)
    assert search.stream.resplit == final.stream.resplit == 0.2
    assert search.seeds == (0, 1) and final.seeds == (0, 1, 2, 3, 4) and search.name != final.name


def test_the_weight_with_the_best_accuracy_on_validation_data_is_chosen():
    points = {("lwf", value): Experiment.parse({"name": f"lwf-{value:g}"}) for value in (16.0, 4.0, 1.0)}
    points |= {("prer-r", 1.0): Experiment.parse({"name": "failed"})}
    lines = {"lwf-1": line(70), "lwf-4": line(80), "lwf-16": line(80), "failed": {"failure": "exploded"}}
    assert domains.best(points, lines) == {"lwf": 4.0}
    assert domains.best(points, lines | {"lwf-16": line(81)}) == {"lwf": 16.0}


def test_given_settings_change_a_run_that_has_a_name_of_its_own():
    plain, given = (domains.experiment("data.npz", "lwf", 1.0, 5, given=of) for of in ((), ("learner.lr=0.5",)))
    assert (plain.learner.lr != 0.5, given.learner.lr) == (True, 0.5) and given.name == "domains-lwf-given"
    assert given.tables()["learner"] == plain.tables()["learner"] | {"lr": 0.5}


def line(accuracy):
    return {"seeds": [0], "result": {"matrix": [[[accuracy]]], "untrained": [[None]]}}
