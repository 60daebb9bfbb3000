"""The comparison of training steps: who takes part, and from which state."""

import copy

import pytest
import torch
from support.bench import STREAM, assert_compared

from prer.bench import steps
from prer.learners import LEARNERS


@pytest.mark.parametrize("name", steps.METHODS)
def test_a_method_is_a_learner_with_its_settings(name):
    method = steps.METHODS[name]
    learner = steps.built(method, epochs=3)
    assert type(learner) is LEARNERS[method.learner] and (learner.batch, learner.epochs) == (64, 3)
    assert all(getattr(learner, key) == value for key, value in method.settings.items())


def test_both_sides_start_from_the_same_state():
    turns = steps.ours_and_bare(steps.METHODS["naive"], STREAM, 2, "cpu")
    assert list(turns) == ["ours", "bare loop"]
    ready, bare = turns["ours"].__self__, turns["bare loop"].__self__
    assert len(ready.learner.tasks_) == steps.PAST and bare.current == steps.PAST
    met = copy.deepcopy(ready.learner)
    met.meet(ready.task)
    weights = [p[0] for p in (*met.encoder_.parameters(), *met.head_.parameters())]
    assert all(torch.equal(a, b) for a, b in zip(weights, bare.parameters, strict=True))


def test_a_peer_takes_part_where_it_has_the_method(monkeypatch):
    asked, said = [], []

    def peer(name, stream, past, epochs, device):
        asked.append((name, len(stream), past, epochs, device))
        return (lambda: 1e3) if name == "naive" else None

    monkeypatch.setattr(steps, "METHODS", {name: steps.METHODS[name] for name in ("naive", "ewc")})
    found = steps.compare(steps.Size(64, 2, 1), "cpu", {"peer": peer}, said.append)
    assert asked == [("naive", 3, 2, 2, "cpu"), ("ewc", 3, 2, 2, "cpu")]
    assert said == ["a step of naive", "a step of ewc"]
    assert_compared(found)
    assert found["naive"]["median"].keys() == {"ours", "bare loop", "peer"}
    assert found["ewc"]["median"].keys() == {"ours", "bare loop"}
    assert found["naive"]["times as fast as"]["peer"]["median"] > 1e3  # a step of ours takes less than a second
