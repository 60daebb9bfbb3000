"""Extractors by name or from what a user gives; a model accepts the one that it was taught with, and no other."""

import sys
import tomllib
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from support.extractors import SHAS, letters
from torch import nn

from prer.data.reading import Reading
from prer.errors import InputError
from prer.features import efficientnet, minilm, named
from prer.features.extractor import Extractor, of_module, sha256_of
from prer.features.named import NAMES, OF_TEXTS, as_extractor, extractor_of

EXTRAS = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]["optional-dependencies"]
PLAIN = Reading(shape=(3,))


def taught(name, sha256=""):
    return Reading(extractor=name, weights=sha256, inputs="vectors", shape=(3,))


@pytest.mark.usefixtures("extractors")
def test_a_name_is_loaded_once_for_each_device(monkeypatch):
    loaded = []
    monkeypatch.setitem(NAMES, "minilm", lambda device: loaded.append(device) or Extractor("minilm", "", letters))
    named.named.cache_clear()
    assert named.named("minilm", "cpu") is named.named("minilm", "cpu")
    named.named("minilm", "other")
    assert loaded == ["cpu", "other"]


@pytest.mark.parametrize(
    ("name", "hint"), [("minlm", "did you mean 'minilm'"), ("x", "known: minilm, efficientnet-lite0"), ("", "known")]
)
def test_an_unknown_name_is_refused_with_a_hint(name, hint):
    with pytest.raises(InputError, match=f"there is no feature extractor {name!r}.*{hint}"):
        as_extractor(name, "cpu")


@pytest.mark.parametrize("module", [minilm, efficientnet])
def test_an_extra_that_is_not_installed_is_named_with_its_command(module, monkeypatch):
    named.named.cache_clear()
    for missing in module.PACKAGES:
        find = lambda package, missing=missing: None if package == missing else SimpleNamespace()  # noqa: E731
        monkeypatch.setattr("prer.features.weights.find_spec", find)
        sentence = rf"{module.NAME} is not installed; install it with: pip install 'prer\[{module.EXTRA}\]'"
        with pytest.raises(InputError, match=sentence):
            named.named(module.NAME, "cpu")
        with pytest.raises(InputError, match=sentence):  # the failure is not remembered as an extractor
            extractor_of(taught(module.NAME, module.SHA256), None, "cpu")


@pytest.mark.parametrize(("module", "batch"), [(minilm, ["a"]), (efficientnet, torch.zeros(1, 3, 8, 8))])
def test_a_network_is_loaded_at_the_first_batch_and_a_broken_package_is_one_sentence(module, batch, monkeypatch):
    monkeypatch.setattr("prer.features.weights.find_spec", lambda package: package)
    monkeypatch.setattr(module, "find_spec", lambda package: SimpleNamespace(origin=package))
    monkeypatch.setattr(module, "verified", lambda file, sha256: b"")
    monkeypatch.setitem(sys.modules, module.PACKAGES[1], None)
    extractor = module.load("cpu")  # the package is not imported
    sentence = (
        rf"{module.NAME} cannot be loaded \(import of .*\); install it again: pip install 'prer\[{module.EXTRA}\]'"
    )
    with pytest.raises(InputError, match=sentence):
        extractor(batch)


def test_the_names_are_those_of_the_extras():
    assert list(NAMES) == ["minilm", "efficientnet-lite0"] and OF_TEXTS == ("minilm",)
    for module in (minilm, efficientnet):
        lines = {line.partition(">")[0].replace("-", "_") for line in EXTRAS[module.EXTRA]}
        assert lines == set(module.PACKAGES)
        assert len(module.SHA256) == 64


def test_anything_that_maps_a_batch_to_vectors_is_an_extractor():
    made = Extractor("mine", "", letters)
    assert as_extractor(made, "cpu") is made
    assert as_extractor(letters, "cpu").name == "letters"
    assert as_extractor(nn.Linear(2, 3), "cpu").name == "Linear"
    encoding = SimpleNamespace(encode=lambda texts, **_: np.ones((len(texts), 2)))
    assert as_extractor(encoding, "cpu")(["a", "b"]).shape == (2, 2)


@pytest.mark.parametrize("given", [3, None, b"minilm", ["minilm"], {"name": "minilm"}, SimpleNamespace(encode=3)])
def test_anything_else_is_refused(given):
    with pytest.raises(
        InputError, match=r"features=.*: give 'minilm' or 'efficientnet-lite0', a torch module, or a fun"
    ):
        as_extractor(given, "cpu")


# -- of a model --------------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("extractors")
def test_a_model_finds_its_extractor_by_name():
    assert extractor_of(PLAIN, None, "cpu") is None
    found = extractor_of(taught("minilm", SHAS["minilm"]), None, "cpu")
    assert found.name == "minilm" and extractor_of(taught("minilm", SHAS["minilm"]), "minilm", "cpu") is found


def test_a_network_of_the_users_own_is_given_again():
    net = nn.Linear(2, 3)
    reading = taught("Linear", sha256_of(net))
    same = nn.Linear(2, 3)
    same.load_state_dict(net.state_dict())
    assert extractor_of(reading, same, "cpu").sha256 == sha256_of(net)
    with pytest.raises(
        InputError, match=r"features of Linear, which is not part of prer; give it in Python: prer\.load"
    ):
        extractor_of(reading, None, "cpu")


@pytest.mark.usefixtures("extractors")
@pytest.mark.parametrize(
    ("reading", "given", "sentence"),
    [
        (PLAIN, "minilm", "the model was taught without a feature extractor; leave out features, or make a new model"),
        (taught("minilm", "c" * 64), None, "extractor minilm cccccccc, but this is minilm aaaaaaaa; give the same one"),
        (
            taught("minilm", SHAS["minilm"]),
            "efficientnet-lite0",
            "minilm aaaaaaaa, but this is efficientnet-lite0 bbbb",
        ),
        (taught("minilm", SHAS["minilm"]), letters, "minilm aaaaaaaa, but this is letters; give the same one"),
        (taught("letters"), len, "the feature extractor letters, but this is len; give the same one"),
        (taught("Linear", "d" * 64), nn.Linear(2, 3), "Linear dddddddd, but this is Linear "),
        (taught("a\nb" + "c" * 99), None, r"features of \.\.\.c+, which is not part of prer"),
        (taught("\x1b[31m"), letters, r"the feature extractor \\x1b\[31m, but this is letters"),
    ],
)
def test_another_extractor_is_refused(reading, given, sentence):
    with pytest.raises(InputError, match=sentence) as caught:
        extractor_of(reading, given, "cpu")
    assert str(caught.value).isprintable()


def test_changed_weights_are_another_extractor():
    net = nn.Linear(2, 3)
    reading = taught("Linear", of_module(net).sha256)
    with torch.no_grad():
        net.weight[0, 0] += 1e-3
    with pytest.raises(InputError, match="give the same one"):
        extractor_of(reading, net, "cpu")
