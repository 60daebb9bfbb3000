"""Each baseline against naive: what its settings change, and which weights it moves."""

import copy
import functools

import numpy as np
import pytest
import torch
from support.learners import BASELINES, SEEDS, TINY, blobs, make, one_head, started, vectors

from prer import learn
from prer.learners import LEARNERS


@pytest.mark.parametrize("name", BASELINES)
def test_old_heads_are_trained_only_by_learners_that_classify_old_samples(name):
    stream = vectors()
    learner = started(make(name), stream, SEEDS)
    learner.learn(stream[0])
    old = copy.deepcopy(learner.heads_[0])
    learner.learn(stream[1])
    still = all(map(torch.equal, old.state_dict().values(), learner.heads_[0].state_dict().values()))
    assert still == (name not in {"lwf", "replay", "der", "dgr"})


OFF = {
    "lwf": [{"weight": 0.0}, {"size": 0}, {"weight": 0.0, "form": "classic"}],
    "ewc": [{"weight": 0.0}],
    "si": [{"weight": 0.0}],
    "gem": [{"size": 0}],
    "agem": [{"size": 0}],
    "er": [{"weight": 0.0}, {"size": 0}],
    "replay": [{"weight": 0.0}, {"size": 0}, {"size": 0, "selection": "balanced"}],
    "der": [{"weight": 0.0, "label_weight": 0.0}, {"size": 0}],
    "dgr": [{"weight": 0.0}],
}


def networks(learner, result):
    named = {"encoder": learner.encoder_, "heads": learner.heads_, "inputs": learner.inputs_}
    state = {f"{part}.{key}": t for part, module in named.items() for key, t in module.state_dict().items()}
    return state | {"matrix": torch.from_numpy(np.nan_to_num(result.matrix))}


STREAMS = {"heads": blobs(), "one head": one_head()}


@functools.cache
def trained(name, stream="heads", **settings):
    """Networks and accuracies, with a learning rate so high that tasks interfere and gradients are projected."""
    generator = {"epochs_generator": 10} if name == "dgr" else {}
    learner = LEARNERS[name](**TINY | generator | {"epochs": 4, "lr": 5e-3} | settings)
    return networks(learner, learn(STREAMS[stream], learner, seeds=2, device="cpu"))


@pytest.mark.parametrize("stream", STREAMS)
@pytest.mark.parametrize("name", BASELINES)
def test_a_method_of_strength_zero_is_naive_and_otherwise_it_is_not(name, stream):
    naive = trained("naive", stream)
    for settings in OFF[name]:
        off = trained(name, stream, **settings)
        assert off.keys() == naive.keys()
        assert all(torch.equal(off[key], naive[key]) for key in naive), settings
    on = trained(name, stream)
    for key in naive:
        if key.startswith("encoder"):
            assert not torch.equal(on[key], naive[key]), key


CHOICES = [
    ("lwf", {"form": "classic"}), ("lwf", {"softness": 4.0}), ("lwf", {"memory_batch": 8}),
    ("ewc", {"form": "online"}), ("ewc", {"fisher": "empirical"}), ("ewc", {"samples": 5}), ("si", {"damping": 0.1}),
    ("gem", {"margin": 0.0}), ("gem", {"memory_batch": 0}), ("agem", {"memory_batch": 8}), ("er", {"distance": "l2"}),
    ("replay", {"selection": "balanced", "size": 30}), ("der", {"label_weight": 0.0}), ("der", {"weight": 0.0}),
]  # fmt: skip


@pytest.mark.parametrize(("name", "settings"), CHOICES, ids=lambda v: str(v))
def test_every_setting_makes_a_difference(name, settings):
    usual, other = (trained(name, **more)["encoder.layers.0.layer.weight"] for more in ({}, settings))
    assert not torch.equal(usual, other)
