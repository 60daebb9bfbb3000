"""The tables of class-incremental learning: what is run, and what the cells say."""

import csv
import json

import pytest
from support.commands import reproduced
from support.learners import CLOSED

from prer.errors import InputError
from prer.paper import class_incremental as tables
from prer.paper.plan import Request
from prer.presets import recommended

FAST = ("--fast", "--seeds", "2", "--device", "cpu")


HEAD_ALONE = {"batch", "epochs", "embedding", "channels"}  # only a head is trained, as PRER trains it


@pytest.fixture
def quick_class(monkeypatch, no_terminal):
    """Runs train hardly at all."""
    usual = Request.parsed

    def parsed(self, data, about, name, overrides=()):
        tiny = () if about["learner"]["name"] in CLOSED else ("learner.epochs=1", "learner.embedding=4")
        if about["learner"].get("density", {}).get("name") == "flow":
            tiny += ("learner.epochs_autoencoder=1", "learner.density.epochs=1", "learner.density.blocks=1")
        return usual(self, data, about, name, (*tiny, *overrides))

    monkeypatch.setattr(Request, "parsed", parsed)


def keys(*only, fast=False):
    return list(tables.experiments(Request(only=only, fast=fast)))


def test_only_what_is_named_is_run():
    choices = len(tables.CHOSEN_ON) * len(tables.CHOSEN)
    assert len(keys()) == 4 * len(tables.METHODS) + 4 * 5 * 5 + 2 * 2 * len(tables.CHANGES) + choices
    assert keys("mnist", "prer", "slda") == [("mnist", "prer"), ("mnist", "slda")]
    sized = [("cifar10", f"{method}-{size}") for method, sizes in tables.SIZED_BY.items() for size in sizes]
    assert keys("cifar10", "sizes") == sized and len(sized) == 25
    assert keys("kmnist", "choices") == [("kmnist", f"choice/{name}") for name in tables.CHOSEN]
    assert keys("mnist", "condition") == [("mnist", f"{c}/{s}") for c in tables.CHANGES for s in ("class", "task")]
    assert keys("kmnist", "condition") == []
    assert keys(fast=True) == [("digits", method) for method in tables.METHODS]


def test_every_experiment_has_the_settings_of_the_scenario():
    for (data, method), experiment in tables.experiments(Request(only=tables.METHODS)).items():
        assert experiment.stream.scenario == "class"
        assert experiment.name == f"{data}-{method.removesuffix('-flow')}-class"
        expected = recommended(data, method, "class")["learner"]
        chosen = experiment.tables()["learner"]
        own = {"density"} | (HEAD_ALONE if method.endswith("-patches") else set())
        assert {key: chosen[key] for key in expected.keys() - own} == {
            key: expected[key] for key in expected.keys() - own
        }
        assert method.startswith("ncm") or expected, (data, method)


def test_variants_of_prer_are_what_they_are_called():
    found = tables.experiments(Request(only=("mnist", "condition")))
    density = {name: found["mnist", f"{name}/class"].tables()["learner"]["density"] for name in tables.CHANGES}
    assert [density[name].get("condition") for name in ("every", "data-side", "noise-side")] == [
        "every",
        "first",
        "last",
    ]
    assert [density[name].get("class_prior") for name in ("every", "no-prior", "data-side")] == [True, False, False]
    assert density["gaussian"]["name"] == "gaussian"
    alone = found["mnist", "anchor-only/class"].tables()["learner"]
    assert (alone["share"], alone["weight"], alone["anchor"]) == (0, 0, 1)
    given = found["mnist", "every/task"].tables()
    assert (
        given["stream"]["scenario"] == "task" and given["learner"] == found["mnist", "every/class"].tables()["learner"]
    )


@pytest.mark.usefixtures("quick_class")
def test_one_command_writes_all_forms_of_the_tables(capsys, tmp_path):
    out, _ = reproduced(capsys, "class", *FAST, "--only", "naive,ncm,prer,condition")
    assert "task unknown: accuracy in per cent over all classes" in out and "NCM, pixels" in out
    names = {path.name for path in (tmp_path / "runs").glob("class*")}
    pictures = {f"class.{kind}" for kind in ("svg", "pdf", "png")}
    assert names == {"class.md", "class.tex", "class-digits.csv", "class-condition.csv"} | pictures
    lines = (tmp_path / "runs/class-digits.csv").read_text("utf-8").splitlines()
    rows = {row[""]: row for row in csv.DictReader(lines)}
    assert rows["Joint"]["final accuracy"] == "not run"
    for result in map(json.loads, (path.read_text() for path in (tmp_path / "runs").glob("*/result.json"))):
        if result["scenario"] == "class" and result["learner"] in ("naive", "ncm"):
            row = rows[tables.TITLES[result["learner"]]]
            assert float(row["final accuracy"]) == result["final_accuracy"]["mean"]
            assert float(row["kB kept"]) == result["memory_bytes"][-1] / 1000
            assert row["published"] == "-"  # published numbers are about other data


def test_an_unknown_name_is_refused(capsys):
    _, err = reproduced(capsys, "class", *FAST, "--only", "slad", code=2)
    assert "slda" in err


def test_published_numbers_have_a_source():
    for of_data in tables.PUBLISHED.values():
        assert all(method in tables.METHODS and source in tables.SOURCES for method, (_, source) in of_data.items())


def test_results_of_local_data_are_not_compared_with_published_ones(tmp_path):
    with pytest.raises(InputError):
        Request(only=("nothing",)).check(tables.NAMES)
