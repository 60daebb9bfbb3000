"""The paper's experiments as files."""

import tomllib

import pytest

from prer.paper import DATA, METHODS, file_of, more_methods
from prer.presets import experiment_file, recommended
from prer.runs.experiment import Experiment

FILES = [(data, method) for data in DATA for method in METHODS] + [(data, "prer-literal") for data in DATA]
FILES += [(data, method) for data in DATA for method in more_methods(data)]
FILES += [("cifar10", "prer-unlabelled")]  # of the ablation; its runs have the name of PRER


@pytest.mark.parametrize(("data", "method"), FILES)
def test_a_file_says_every_setting_and_is_what_runs(data, method):
    tables = tomllib.loads(file_of(data, method).read_text())
    experiment = Experiment.read(file_of(data, method))
    assert experiment.tables() == tables  # nothing is left to a default that may change
    assert (experiment.name, experiment.stream.data) == (f"{data}-{method.removesuffix('-unlabelled')}", data)
    learner = "prer-variant" if method == "prer-literal" else method.partition("-")[0]
    assert (experiment.learner.name, experiment.seeds) == (learner, (0, 1, 2, 3, 4))
    assert experiment.stream.validation == 0.0
    by_name = Experiment.parse({"stream": {"data": data}, "learner": {"name": experiment.learner.name}})
    assert (by_name.hash == experiment.hash) == (method == learner)  # `prer run stream.data=mnist` is the paper's


def test_every_file_is_one_of_them():
    folders = {file_of("mnist", method).parent for method in ("prer", "prer-literal")}
    found = {path.stem for folder in folders for path in folder.glob("*.toml")}
    assert found == {f"{d}-{m}" for d, m in FILES} | {f"class-{d}" for d in (*DATA, "digits")} | {"features"}


def test_what_the_paper_has_no_experiment_of():
    for data, method in (("digits", "prer"), ("mnist", "si"), ("mnist", "prer-literal")):
        assert not experiment_file(data, method).exists()
    assert recommended("../presets/mnist", "prer") == {"stream": {}, "learner": {}}


@pytest.mark.parametrize("data", DATA)
def test_the_literal_files_deviate_in_nothing_that_is_stated(data):
    text = file_of(data, "prer-literal").read_text()
    assert "the paper has" not in text  # the remark of a deviation
    learner = tomllib.loads(text)["learner"]
    flow = {"name": "flow", "lr": 1e-4, "decay": False, "levels": 2, "blocks": 10, "class_prior": False}
    assert learner["density"].items() >= (flow | {"condition": "first", "condition_size": 10}).items()
    stated = {"lr_autoencoder": 1e-3, "norm": "running", "one_hot": True, "bounded": False, "permutation": "random"}
    stated |= {"anchor": 0.0, "temperature": 1.0, "schedule": "separate", "augment": True, "dropout": 0.2}
    stated |= {"decay_autoencoder": False, "reencode": False}
    stated |= {"optimiser": "sgd", "lr": 0.1} if data in ("mnist", "kmnist") else {"optimiser": "adam", "lr": 1e-3}
    assert learner.items() >= stated.items()
