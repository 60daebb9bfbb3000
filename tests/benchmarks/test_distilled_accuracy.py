"""The runs of distilled labels without decoder and density have the settings of the files otherwise."""

from argparse import Namespace
from pathlib import Path

from support.benchmarks import script

from prer.paper import DATA, file_of
from prer.runs.experiment import Experiment

distilled_accuracy = script("distilled_accuracy")
LEFT_OUT = ("epochs_autoencoder", "density")


def options(settings=(), quick=False):
    return Namespace(settings=list(settings), quick=quick, seeds=5)


def test_all_but_decoder_and_density_is_as_in_the_files(monkeypatch):
    monkeypatch.setenv("PRER_DATA", "data")
    for data in DATA:
        found = distilled_accuracy.experiment(data, options()).tables()
        whole = Experiment.read(file_of(data, "prer-distilled")).tables()
        changed = [key for key, value in whole["learner"].items() if found["learner"][key] != value]
        assert changed == list(LEFT_OUT) and found["seeds"] == [0, 1, 2, 3, 4]
        place = str(Path("data") / distilled_accuracy.PARTS[data]) if data in distilled_accuracy.PARTS else data
        assert found["stream"] == whole["stream"] | {"data": place}
        assert found["learner"]["epochs_autoencoder"] == 0 and found["learner"]["density"] == {"name": "gaussian"}


def test_settings_can_be_given():
    found = distilled_accuracy.experiment("mnist", options(["learner.anchor=3.0"])).learner
    assert (found.anchor, found.labels) == (3.0, "distilled")
