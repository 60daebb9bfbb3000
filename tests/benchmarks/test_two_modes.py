"""benchmarks/two_modes.py: each class has two modes, and densities keep about as many floats as the others."""

import numpy as np
import pytest
from support.benchmarks import script

from prer.learners import PRER
from prer.nn.stacked import floats
from prer.streams.stream import Stream

two_modes = script("two_modes")
recorded_runs = script("recorded_runs")


@pytest.fixture(scope="module")
def found():
    return two_modes.densities()


@pytest.mark.parametrize(
    ("name", "other", "setting"), [("mixture", "flow", "components"), ("flow-small", "gaussian", "blocks")]
)
def test_no_other_size_is_closer_to_the_floats_that_are_asked(found, name, other, setting):
    wanted, density = two_modes.kept(found[other]), found[name]
    gap = abs(two_modes.kept(density) - wanted)
    for step in (-1, 1):
        assert abs(two_modes.kept(density | {setting: density[setting] + step}) - wanted) > gap
    assert gap < 0.15 * wanted


@pytest.mark.parametrize("name", ["flow", "flow-small", "mixture", "gaussian"])
def test_floats_are_those_that_prer_keeps_beside_the_decoder(found, name):
    rng, y = np.random.default_rng(0), np.repeat(np.arange(10), 50 * found["mixture"]["components"])
    stream = Stream.split(rng.integers(0, 256, (len(y), 28, 28), dtype=np.uint8), y)
    experiment = two_modes.experiment("data.npz", "task", name, found[name], 1)
    learner = PRER(**{**vars(experiment.learner), "channels": (2,), "epochs": 0, "epochs_autoencoder": 0})
    if "epochs" in found[name]:
        learner.density = type(learner.density)(**{**vars(learner.density), "epochs": 0})
    learner.start((1, 28, 28), (0,))
    for task in stream:
        learner.learn(task)
    assert learner.memory_size().floats - floats(learner.decoder_) == two_modes.kept(found[name])


def test_a_class_has_the_digits_and_the_kana_of_its_number(monkeypatch, tmp_path):
    digits = np.full((30, 1, 28, 28), 100, np.uint8) + np.arange(10, dtype=np.uint8).repeat(3).reshape(30, 1, 1, 1)
    asked = []

    def images(data, count, part="all"):
        asked.append((str(data), part))
        return digits + (0 if data == "mnist" else 50), np.arange(10).repeat(3)

    monkeypatch.setattr(two_modes, "images", images)
    x, y = two_modes.stream(tmp_path)
    assert asked == [("mnist", "test"), (str(tmp_path / "kmnist10k"), "all")]
    assert x.dtype == np.uint8 and x.shape == (60, 1, 28, 28)
    assert [np.unique(x[y == c]).tolist() for c in range(10)] == [[100 + c, 150 + c] for c in range(10)]


def test_scenarios_differ_only_in_what_holds_the_encoder(found):
    of_task, of_class = (two_modes.experiment("data.npz", s, "flow", found["flow"], 5) for s in ("task", "class"))
    assert of_task.learner.encoder == "continues" and of_class.learner.encoder == "rests"
    tables = [vars(e.learner) | {"encoder": ""} for e in (of_task, of_class)]
    assert tables[0] == tables[1]
    learner = of_class.learner
    assert (learner.anchor, learner.temperature, learner.labels, learner.answer) == (0, 1, "none", "head")
    assert set(learner.phases(1000, 2).values()) == {15} and of_class.stream.scenario == "class"
    assert len(of_class.seeds) == 5 and len(of_class.stream.tasks) == 0 and of_class.stream.classes_per_task == 2


def test_the_closest_is_below_or_above_the_wanted_number(monkeypatch):
    monkeypatch.setattr(two_modes, "kept", lambda density: density["floats"])
    sizes = [{"floats": number} for number in (1, 5, 9, 99)]
    assert [two_modes.closest(sizes, wanted)["floats"] for wanted in (0, 6, 8, 9)] == [1, 5, 9, 9]
