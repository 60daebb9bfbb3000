"""Variants of PRER: each changes one thing, and stands beside ours."""

import json
from itertools import product

import numpy as np
import pytest
from support.benchmarks import RECORDS
from support.fake_runs import fake_run_of
from support.paper import BWTS, DIAGONALS, MNIST, cells

from prer.migration import SWITCHES
from prer.paper import ABLATION, plan, table1, variants
from prer.paper.plan import Request
from prer.paper.reproduce import existing
from prer.runs.learn import learn
from prer.runs.significance import compare


def test_the_ablation_has_every_variant_beside_ours(tmp_path):
    of = {variant: experiment for (_, variant), experiment in variants.experiments(MNIST).items()}
    health = [{"event": "health", "task": 4, "class": c, "agreement": [0.99, 0.98, 1.0]} for c in (0, 1)]
    fake_run_of(tmp_path, of["ours"], DIAGONALS, BWTS, health)
    fake_run_of(tmp_path, of["one-phase"], DIAGONALS - np.array([1, 1.1, 0.9]), BWTS)
    half = [event | {"agreement": [0.5, 0.52, 0.49]} for event in health]
    fake_run_of(tmp_path, of["literal"], DIAGONALS, BWTS, half)
    (table,) = variants.tables(MNIST, existing(variants.experiments(MNIST), tmp_path))
    rows = {row[1]: list(map(str, row)) for row in table.rows}
    assert rows["one-phase"][3:5] == ["3", "-0.50 ± 0.25"] and rows["gaussian"][3:5] == ["-", "not run"]
    assert rows["one-phase"][8:10] == ["97.92 ± 0.29", "-1.00"]
    assert "what the flow knows of the class can change bwt only through p(z)" in " ".join(table.notes).lower()
    assert (rows["ours"][-1], rows["literal"][-1], rows["one-phase"][-1]) == ("99.0 ± 1.0", "50.3 ± 1.5", "-")
    literal = table1.tables(MNIST, existing({("mnist", "prer-literal"): of["literal"]}, tmp_path))
    assert cells(literal[0])["PRER, literal"]["MNIST BWT"] == "-0.50 ± 0.25"  # the same run


def test_key_rows_run_again_with_twenty_seeds_on_cifar10_unless_told_otherwise():
    key = {"ours", "no-anchor", "no-r", "anchor-only", "neither"}
    found = variants.experiments(Request())
    assert {data for data, _ in found} == set(ABLATION)
    assert {v for _, v in found} == {*variants.NAMES, *(f"{name}-20" for name in key)}
    for (data, variant), experiment in found.items():
        plain = variant.removesuffix("-20")
        assert experiment.seeds == tuple(range(5 if plain == variant else 20))
        assert experiment.tables() | {"seeds": 5} == found[data, plain].tables() | {"seeds": 5}
        assert plain == variant or data == "cifar10"
    assert {v for _, v in variants.experiments(Request(only=("cifar10", "no-r")))} == {
        "ours",
        "no-r",
        "ours-20",
        "no-r-20",
    }
    for told, count in ((Request(seeds="4"), 4), (Request(fast=True), 3)):
        of_told = variants.experiments(told)
        assert {len(experiment.seeds) for experiment in of_told.values()} == {count}
        assert {v for _, v in of_told} == set(variants.NAMES)


def test_the_ablation_starts_from_a_phase_1_without_labels():
    found, table = variants.experiments(Request()), plan.of_table1(Request())
    labelled = {"labels-head": "head", "labels-auxiliary": "auxiliary"}
    for (_, variant), experiment in found.items():
        assert getattr(experiment.learner, "labels", "none") == labelled.get(variant, "none")
    assert found["mnist", "ours"] == table["mnist", "prer"]
    ours, prer = (flat(e.tables()["learner"]) for e in (found["cifar10", "ours"], table["cifar10", "prer"]))
    assert ours["anchor"] == prer["anchor"] == 1 and prer["labels"] == "head"
    assert {key: ours[key] for key in ("epochs", "epochs_autoencoder")} == {"epochs": 20, "epochs_autoencoder": 20}


def test_a_variant_that_is_the_same_as_ours_is_the_same_run(monkeypatch):
    monkeypatch.setattr(variants, "VARIANTS", (*variants.VARIANTS, variants.Variant("same", "nothing")))
    found = variants.experiments(MNIST)
    assert found["mnist", "same"] == found["mnist", "ours"]


def test_both_readings_of_the_first_coupling():
    found = variants.experiments(Request())
    sides = {"condition-first": "first", "condition-last": "last", "literal": "first", "literal-last": "last"}
    for data, (variant, side) in product(ABLATION, sides.items()):
        density = found[data, variant].learner.density
        assert (density.condition, density.class_prior) == (side, False)
    for data in ABLATION:
        first, last = (flat(found[data, v].tables()["learner"]) for v in ("literal", "literal-last"))
        assert [key for key in first if first[key] != last[key]] == ["density.condition"]


def test_a_row_is_compared_with_ours_of_as_many_seeds(tmp_path):
    cifar10 = Request(only=("cifar10",))
    of = {variant: experiment for (_, variant), experiment in variants.experiments(cifar10).items()}
    noise = np.random.default_rng(0).normal(size=(4, 20))
    fake_run_of(tmp_path, of["ours"], 90 + noise[0, :5], -noise[0, :5])
    fake_run_of(tmp_path, of["ours-20"], 91 + noise[1], -noise[1])
    fake_run_of(tmp_path, of["no-r"], 89 + noise[2, :5], -noise[2, :5])
    fake_run_of(tmp_path, of["no-r-20"], 88 + noise[3], -noise[3])
    outcomes = existing(variants.experiments(cifar10), tmp_path)
    found = variants.comparisons(outcomes, "cifar10", "accuracy")
    assert set(found) == {"no-r", "no-r-20"}
    for variant, ours in (("no-r", "ours"), ("no-r-20", "ours-20")):
        values = [outcomes["cifar10", v].folder.result["accuracy"]["values"] for v in (variant, ours)]
        assert (found[variant].p, found[variant].adjusted) == (compare(*values).p, compare(*values).p)
    (table,) = variants.tables(cifar10, outcomes)
    rows = {row[1]: list(map(str, row)) for row in table.rows}
    assert rows["no-r-20"][3] == "20" and rows["no-r"][3] == "5" and rows["no-r-20"][2] == rows["no-r"][2]


def test_the_literal_settings_on_digits_are_those_of_the_record():
    lines = map(json.loads, (RECORDS / "first_coupling_digits.jsonl").read_text("utf-8").splitlines())
    literal = [line["settings"]["learner"] for line in lines if line["settings"]["learner"]["density"]["lr"] == 1e-4]
    found = variants.experiments(Request(fast=True))
    ours = [found["digits", v].tables()["learner"] for v in ("literal", "literal-last")]
    assert sorted(literal, key=str) == sorted(ours, key=str)


SEVERAL = (
    "augment-only",
    "anchor-only",
    "neither",
    "condition-first",
    "condition-last",
    "slow-flow",
)  # what is asked is not had by one
BESIDES = {
    "one-level": "density.blocks",
    "sparse-layers": "sparsity",
    "one-phase": "epochs_autoencoder",
}  # so that it is but one


PHASES = (("", ""), ("", "_autoencoder"), ("density.", ""))


def flat(table):
    """Settings by dotted names; a Gaussian has none of a flow's."""
    density = table.get("density", {})
    of_density = {"density" if key == "name" else f"density.{key}": value for key, value in density.items()}
    return {key: value for key, value in table.items() if key != "density"} | of_density


def test_variants_change_one_thing():
    experiments = variants.experiments(MNIST)
    of = {variant: flat(experiment.tables()["learner"]) for (_, variant), experiment in experiments.items()}
    ours = of["ours"]
    for variant in variants.VARIANTS:
        if variant.overrides:
            named = {override.partition("=")[0].removeprefix("learner.") for override in variant.overrides}
            than = of["literal"] if variant.name.startswith("literal-") else ours
            changed = {key for key, value in of[variant.name].items() if value != (SWITCHES | than).get(key)} - {"name"}
            besides = {BESIDES[variant.name]} if variant.name in BESIDES else set()
            assert changed == named | besides
            assert len(named) == 1 or variant.name in SEVERAL
    assert of["one-level"]["density.blocks"] == 2 * ours["density.blocks"]
    assert of["sparse-layers"]["sparsity"] == ours["sparsity"] * ours["embedding"]
    assert of["one-phase"]["epochs_autoencoder"] == max(ours[f"{key}epochs{phase}"] for key, phase in PHASES)
    pixels = experiments["mnist", "pixels"].tables()["learner"]
    assert pixels["name"] == "dgr" and all(pixels[key] == ours[key] for key in ("channels", "embedding", "batch", "lr"))
    assert experiments["mnist", "pixels"].stream == experiments["mnist", "ours"].stream
    temperatures = {experiments["mnist", v].tables()["learner"]["temperature"] for v in ("ours", "temperature")}
    assert temperatures == {ours["temperature"], 0.8 if ours["temperature"] == 1.0 else 1.0}
    assert experiments["mnist", "literal"].name == "mnist-prer-literal"
    digits = variants.experiments(Request(fast=True))["digits", "literal"].learner
    assert (digits.norm, digits.permutation, digits.density.condition_size) == ("running", "random", 10)


@pytest.mark.usefixtures("quick")
def test_the_literal_settings_train_on_the_digits():
    request = Request(fast=True, only=("literal",), variants=variants.NAMES)
    experiment = variants.experiments(request)["digits", "literal"]
    assert (experiment.learner.norm, experiment.learner.bounded) == ("running", False)
    result = learn(experiment.stream.build(), experiment.learner, seeds=1, device="cpu")
    assert np.isfinite(result.metrics["accuracy"]["mean"])
