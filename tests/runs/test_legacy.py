"""The names of run folders in version 0.1.0."""

import hashlib
import json

import pytest
from support.experiments import parsed

from prer.learners import LEARNERS
from prer.runs.legacy import OWN, hash_of_schema_1

FORMER = "f902fb16"  # of the built-in experiment, in the run folders that version 0.1.0 wrote


def test_the_former_name_of_the_built_in_experiment():
    assert hash_of_schema_1(parsed()) == FORMER


def test_version_0_1_0_could_not_express_a_setting_that_was_added_later(extra):
    assert hash_of_schema_1(parsed()) == hash_of_schema_1(parsed(f"{extra}=3")) == FORMER
    assert hash_of_schema_1(parsed(f"{extra}=4")) is None


def test_the_hash_covers_every_setting_of_that_version_under_its_former_name():
    """The tables are written out as version 0.1.0 had them."""
    stream = {"data": "my.npz", "kind": "split", "classes_per_task": 2, "tasks": [], "order": [], "shuffle": True}
    stream |= {"count": 10, "degrees": 180.0, "domains": [], "draw": 7, "label": "", "size": 0, "fit": "resize"}
    stream |= {"crop": 0, "flip": False, "resplit": 0.25, "validation": 0.0}
    learner = {"name": "ewc", "channels": [12, 24, 48], "hidden": [128, 64], "embedding": 50, "normalise": False}
    learner |= {"dropout": 0.2, "batch": 16, "epochs": 3, "lr": 0.001, "optimiser": "adam"}
    learner |= {"weight": 5.0, "form": "online", "fading": 1.0, "fisher": "model", "samples": 500}
    experiment = parsed(
        *("stream.data=my.npz", "stream.shuffle=true", "stream.shuffle_seed=7", "stream.resplit=0.25"),
        *("learner.name=ewc", "learner.batch=16", "learner.epochs=3", "learner.form=online", "learner.weight=5"),
        *("seeds=[4, 2]", "device=cpu"),
    )
    content = {"seeds": [4, 2], "device": "cpu", "stream": stream, "learner": learner}
    expected = hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:8]
    assert hash_of_schema_1(experiment) == expected


@pytest.mark.parametrize("name", sorted(OWN))
def test_every_learner_of_that_version_has_a_hash_that_differs_with_its_settings(name):
    hashes = [
        hash_of_schema_1(parsed(f"learner.name={name}", *more)) for more in ((), ("learner.lr=0.5",), ("seeds=1",))
    ]
    assert None not in hashes and len(set(hashes)) == 3


def test_a_switch_of_the_ablation_was_a_setting_of_prer():
    variant = parsed("learner.name=prer-variant", "learner.schedule=joint")
    assert hash_of_schema_1(variant) == hash_of_schema_1(parsed("learner.schedule=joint")) not in (None, FORMER)
    assert hash_of_schema_1(parsed("learner.name=prer-variant")) == FORMER


def test_a_later_learner_has_no_former_name(monkeypatch):
    later = type("Later", (LEARNERS["naive"],), {"name": "later"})
    monkeypatch.setitem(LEARNERS, "later", later)
    assert hash_of_schema_1(parsed("learner.name=later")) is None
