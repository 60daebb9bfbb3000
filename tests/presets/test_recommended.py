"""Recommended settings: those of each data set and learner, and how an experiment takes them."""

import tomllib

import pytest
from support.experiments import parsed

from prer.data.catalogue import CATALOGUE
from prer.learners import LEARNERS
from prer.paper import DATA, METHODS
from prer.presets import recommended
from prer.presets.tables import TABLES
from prer.runs.experiment import Experiment
from prer.streams.config import StreamConfig

# -- the tables -------------------------------------------------------------------------------------------------------


def test_the_recommended_settings_of_each():
    pairs, wide = {"classes_per_task": 2, "resplit": 0.2}, {"channels": (24, 48, 96)}
    ten = {"batch": 64, "epochs": 10}
    for name in ("mnist", "kmnist", "fashion_mnist"):
        assert recommended(name, "si") == {"stream": pairs, "learner": ten}
    phases = {"epochs_autoencoder": 10, "density": {"name": "flow", "epochs": 10}}
    assert recommended("fashion_mnist", "prer") == {"stream": pairs, "learner": ten | phases}
    assert recommended("svhn", "si") == {"stream": pairs, "learner": ten | wide | {"embedding": 100}}
    cifar = ten | wide | {"embedding": 200, "batch": 128}
    assert recommended("cifar10", "si") == {"stream": pairs, "learner": cifar}
    flow = {"name": "flow", "epochs": 20}
    own = {"epochs_autoencoder": 20, "epochs": 20, "temperature": 0.8, "density": flow}
    assert recommended("cifar100", "prer") == {"stream": pairs | {"classes_per_task": 10}, "learner": cifar | own}
    assert recommended("digits", "naive") == {"stream": pairs, "learner": {"batch": 32, "epochs": 20, "lr": 0.00058}}
    assert recommended("my.npz", "prer") == {"stream": {}, "learner": {}}
    recommended("cifar10", "si")["stream"]["resplit"] = 0.9
    assert recommended("svhn", "si")["stream"] == pairs


@pytest.mark.parametrize("data", DATA)
def test_all_learners_have_the_papers_networks(data):
    built_in = recommended(data, "si")["learner"]
    for method in METHODS:
        found = recommended(data, method)
        assert found["stream"]["classes_per_task"] == 2 and found["stream"]["resplit"] == 0.2
        same = [key for key in ("channels", "embedding", "batch") if key in built_in]
        assert all(found["learner"][key] == recommended_value(built_in[key]) for key in same)


@pytest.mark.parametrize("data", ["my.npz", "fashion_mnist", "digits", *DATA])
def test_if_nobody_tells_the_task_prer_has_one_default(data):
    settings = {
        "encoder": "patches",
        "embedding": "auto",
        "density": {"name": "mixture", "shrinkage": "auto"},
        "answer": "both",
    }
    assert recommended(data, "prer", "class")["learner"] == settings
    assert recommended(data, "prer")["learner"].get("encoder", "continues") == "continues"


def recommended_value(value):
    return list(value) if isinstance(value, tuple) else value


# -- in an experiment -------------------------------------------------------------------------------------------------


@pytest.fixture
def tuned(monkeypatch):
    """Recommendations that no tuning of the real ones can change."""
    settings = {"stream": {"resplit": 0.3}, "learner": {"epochs": 20, "batch": 31}}
    settings["prer"] = {"epochs": 41, "density": {"name": "flow", "blocks": 3}}
    monkeypatch.setitem(TABLES, "digits", settings)


@pytest.mark.usefixtures("tuned")
def test_recommended_settings_hold_until_somebody_says_otherwise():
    recommended, naive = parsed(), parsed("learner.name=naive")
    assert (recommended.stream.resplit, recommended.learner.batch) == (0.3, 31)
    assert (recommended.learner.epochs, recommended.learner.density.blocks) == (41, 3)
    assert (naive.learner.epochs, naive.learner.batch) == (20, 31)  # what is PRER's alone is not naive's
    assert parsed(learner={"blocks": 5}).learner.density.blocks == 5
    assert parsed("learner.density.blocks=6", learner={"blocks": 5}).learner.density.blocks == 6
    assert parsed(learner={"blocks": 5}).learner.epochs == 41
    assert parsed("stream.resplit=0").stream.resplit == 0


@pytest.mark.parametrize("name", LEARNERS)
@pytest.mark.parametrize("data", CATALOGUE)
def test_what_is_recommended_is_allowed(data, name):
    assert parsed(f"stream.data={data}", f"learner.name={name}").learner.name == name


def test_other_data_has_the_defaults():
    other = parsed("stream.data=my.npz")
    assert other.learner == LEARNERS["prer"]()
    assert other.stream == StreamConfig(data="my.npz")
    assert other.name == "my.npz-prer"


def test_recommended_settings_stay_as_they_are_when_an_experiment_changes_its_own():
    before = parsed()
    parsed("learner.embedding=9", "stream.resplit=0.5")
    assert parsed() == before


def test_the_settings_of_another_data_set_can_be_taken():
    experiment = parsed("stream.data=my.npz", "like=digits", "learner.batch=7")
    digits = parsed()
    assert experiment.learner.embedding == digits.learner.embedding != parsed("stream.data=my.npz").learner.embedding
    assert experiment.learner.batch == 7
    assert experiment.stream.data == "my.npz"
    assert "like" not in experiment.tables()
    assert Experiment.parse(tomllib.loads(experiment.to_toml())).hash == experiment.hash


# -- over features -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("scenario", ["task", "class"])
@pytest.mark.parametrize("data", ["", "digits", "cifar10", "my.csv"])
def test_over_features_settings_of_a_data_set_do_not_apply(data, scenario):
    ours = recommended(data, "prer", scenario, features=True)
    assert ours == {"stream": {}, "learner": recommended("", "prer", "class")["learner"] | {"encoder": "identity"}}
    for name in ("joint", "naive", "replay", "der"):  # a head on all numbers of the features
        learner = recommended(data, name, scenario, features=True)["learner"]
        assert learner["encoder"] == "identity" and learner["embedding"] >= 4096
    for name in ("ncm", "slda", "ranpac"):
        assert recommended(data, name, scenario, features=True) == {"stream": {}, "learner": {}}


@pytest.mark.parametrize("scenario", ["task", "class"])
@pytest.mark.parametrize("name", LEARNERS)
def test_an_experiment_over_features_has_these_settings_unless_others_are_asked_for(name, scenario):
    words = ("stream.data=cifar10", "stream.features=efficientnet-lite0", f"stream.scenario={scenario}")
    words += (f"learner.name={name}",)
    learner = parsed(*words).tables()["learner"]
    expected = parsed(*words[2:], "stream.data=other.csv", learner=recommended("", name, scenario, True)["learner"])
    assert learner == expected.tables()["learner"]
    if name == "prer":
        assert parsed(*words, "learner.embedding=17").tables()["learner"] == learner | {"embedding": 17}
        assert parsed(*words, "like=cifar10").tables()["learner"]["encoder"] != "identity"
