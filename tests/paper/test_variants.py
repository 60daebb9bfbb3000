"""Variants of PRER: each changes one thing, and stands beside ours."""

import numpy as np
import pytest
from support.fake_runs import fake_run_of
from support.paper import BWTS, DIAGONALS, MNIST, cells

from prer.migration import SWITCHES
from prer.paper import table1, variants
from prer.paper.plan import Request
from prer.paper.reproduce import existing
from prer.runs.learn import learn


def test_the_ablation_has_every_variant_beside_ours(tmp_path):
    of = {variant: experiment for (_, variant), experiment in variants.experiments(MNIST).items()}
    health = [{"event": "health", "task": 4, "class": c, "agreement": [0.99, 0.98, 1.0]} for c in (0, 1)]
    fake_run_of(tmp_path, of["ours"], DIAGONALS, BWTS, health)
    fake_run_of(tmp_path, of["joint"], DIAGONALS - np.array([1, 1.1, 0.9]), BWTS)
    half = [event | {"agreement": [0.5, 0.52, 0.49]} for event in health]
    fake_run_of(tmp_path, of["literal"], DIAGONALS, BWTS, half)
    (table,) = variants.tables(MNIST, existing(variants.experiments(MNIST), tmp_path))
    rows = {row[1]: list(map(str, row)) for row in table.rows}
    assert rows["joint"][7:9] == ["97.92 ± 0.29", "-1.00"] and rows["gaussian"][3] == "not run"
    assert (rows["ours"][-1], rows["literal"][-1], rows["joint"][-1]) == ("99.0 ± 1.0", "50.3 ± 1.5", "-")
    literal = table1.tables(MNIST, existing({("mnist", "prer-literal"): of["literal"]}, tmp_path))
    assert cells(literal[0])["PRER, literal"]["MNIST BWT"] == "-0.50 ± 0.25"  # the same run


SEVERAL = ("augment-only", "anchor-only", "neither", "condition-first", "slow-flow")  # what is asked is not had by one
BESIDES = {
    "one-level": "density.blocks",
    "sparse-layers": "sparsity",
    "joint": "epochs_autoencoder",
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
            than = of["literal"] if variant.name == "literal-no-r" else ours
            changed = {key for key, value in of[variant.name].items() if value != (SWITCHES | than).get(key)} - {"name"}
            besides = {BESIDES[variant.name]} if variant.name in BESIDES else set()
            assert changed == named | besides
            assert len(named) == 1 or variant.name in SEVERAL
    assert of["one-level"]["density.blocks"] == 2 * ours["density.blocks"]
    assert of["sparse-layers"]["sparsity"] == ours["sparsity"] * ours["embedding"]
    assert of["joint"]["epochs_autoencoder"] == max(ours[f"{key}epochs{phase}"] for key, phase in PHASES)
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
