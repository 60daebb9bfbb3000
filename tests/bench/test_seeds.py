"""Throughput of seeds that train together."""

import pytest

from prer.bench import seeds


def test_each_learner_is_measured_with_each_number_of_seeds_and_size(monkeypatch):
    asked, said = [], []
    monkeypatch.setattr(seeds, "of_learner", lambda *about: asked.append(about) or len(asked))
    size = seeds.Size((8, 28), 64, 1)
    found = seeds.compare(size, "cpu", said.append)
    assert found == {"naive, 8x8": 1, "prer, 8x8": 2, "naive, 28x28": 3, "prer, 28x28": 4}
    assert asked == [(name, side, size, "cpu") for side in (8, 28) for name in ("naive", "prer")]
    assert said[0] == "1 and 5 and 20 seeds of naive, 8x8"


@pytest.mark.parametrize("name", ["naive", "prer"])
def test_throughput_is_that_of_a_seed_relative_to_a_seed_alone(monkeypatch, name):
    learners = {}

    def alternate(turns, repeats):
        learners.update({n: turn.__self__.learner for n, turn in turns.items()})
        return {"1": [2.0, 2.0], "5": [5.0, 4.0], "20": [80.0, 80.0]}

    monkeypatch.setattr(seeds, "alternate", alternate)
    found = seeds.of_learner(name, 8, seeds.Size((8,), 64, 2), "cpu")
    assert {n: len(learner.address_.seeds) for n, learner in learners.items()} == {"1": 1, "5": 5, "20": 20}
    assert all(learner.name == name and len(learner.tasks_) == seeds.PAST for learner in learners.values())
    assert found["median"] == {"1": 2e3, "5": 4.5e3, "20": 80e3}
    gains = {n: gain["median"] for n, gain in found["throughput of a seed"].items()}
    assert gains == {"1": 1.0, "5": pytest.approx(2.25), "20": 0.5}
    assert found.keys() == {"milliseconds", "median", "throughput of a seed"}
