"""The paper's claims, judged from run folders with known numbers."""

import shutil

import numpy as np
import pytest
from support.fake_runs import fake_run_of
from support.paper import BWTS, DIAGONALS, MNIST

from prer.paper import METHODS, claims, plan, variants
from prer.paper.plan import Request
from prer.paper.reproduce import existing
from prer.paper.rules import FAILS, HOLDS
from prer.runs.significance import compare, holm

HEALTH = [{"event": "health", "task": t, "class": c, "agreement": [0.99, 0.98, 1.0]} for t in (0, 4) for c in (0, 1)]
ONE = np.array([1, 1.001, 0.999])  # a point, and hardly any doubt
COSTS = ("memory", "bytes", "time", "cheaper", "quicker")
METHODS_CLAIMS = ("strong-lwf", "strong-ewc", "above-naive", "little", "er-bwt", "er-accuracy")
METHODS_CLAIMS += ("bwt", "accuracy", "robust", *COSTS)


def judged(folder, request=MNIST):
    """The evidence and the verdicts, by claim."""
    needed = {"claims": variants.experiments, "significance": plan.of_significance, "table2": plan.of_table2}
    table = claims.table(
        request, {name: existing(experiments(request), folder) for name, experiments in needed.items()}
    )
    names = {claim.says: name for name, claim in claims.CLAIMS.items()}
    return {names[row[0]]: tuple(map(str, row[2:4])) for row in table.rows}


def of_variants(request=MNIST):
    return {variant: experiment for (_, variant), experiment in variants.experiments(request).items()}


def test_claims_about_variants(tmp_path):
    runs = of_variants()
    kept = {"memory_floats": [1000] * 4 + [1005]}
    fake_run_of(tmp_path, runs["ours"], DIAGONALS, BWTS, HEALTH, **kept)
    more = {"memory_floats": [2000] * 5, "seconds": {"total": 13.0}}
    fake_run_of(tmp_path, runs["pixels"], DIAGONALS - ONE, BWTS - 5 * ONE, **more)
    fake_run_of(tmp_path, runs["neither"], DIAGONALS - 2 * ONE, BWTS - 6 * ONE)
    fake_run_of(tmp_path, runs["no-anchor"], DIAGONALS, BWTS - ONE)
    fake_run_of(tmp_path, runs["augment-only"], DIAGONALS, BWTS)
    fake_run_of(tmp_path, runs["labels-head"], DIAGONALS + 0.6 * ONE, BWTS)
    fake_run_of(tmp_path, runs["one-phase"], DIAGONALS + 0.1 * ONE, BWTS)  # better than ours
    fake_run_of(tmp_path, runs["gaussian"], DIAGONALS + 0.01 * ONE, BWTS)
    fake_run_of(tmp_path, runs["one-level"], DIAGONALS - ONE, BWTS, memory_floats=[2000] * 5)
    half = [event | {"agreement": [0.5, 0.52, 0.49]} for event in HEALTH]
    fake_run_of(tmp_path, runs["literal"], DIAGONALS, BWTS, half)
    fake_run_of(tmp_path, runs["condition-first"], DIAGONALS, BWTS, half)
    fake_run_of(tmp_path, runs["condition-last"], DIAGONALS, BWTS, HEALTH)
    fake_run_of(tmp_path, runs["literal-last"], DIAGONALS, BWTS, HEALTH)
    evidence = judged(tmp_path)
    assert {claim: verdict for claim, (_, verdict) in evidence.items()} == {
        "embeddings": "holds",
        "regularise": "does not hold",
        "regularise-literal": "not run",
        "sparsity": "not run",
        "phases": "holds",
        "flow": "does not hold",
        "levels-better": "holds",
        "levels-smaller": "holds",
        "condition-data": "does not hold",
        "condition-noise": "holds",
        "literal-data": "does not hold",
        "literal-noise": "holds",
        "ours": "holds",
        "constant": "holds",
        "smaller": "holds",
        "faster": "not decided",
    } | dict.fromkeys(METHODS_CLAIMS, "not run")
    assert "+0.50 %" in evidence["constant"][0] and "samples 99.0 %, test images 98.8 % (+0.2, " in evidence["ours"][0]
    assert evidence["smaller"][0] == "ours 1,005 floats, pixels 2,000 floats"
    assert evidence["levels-smaller"][0] == "1,005 floats against 2,000"
    assert (
        "ours - pixels, 3 seeds: BWT +5.00 (better, p <0.001), Accuracy +4.33 (better, p <0.001); "
        "neither - pixels, 3 seeds: BWT" in evidence["embeddings"][0]
    )


@pytest.mark.parametrize("method", METHODS)
def test_a_claim_about_all_methods_needs_all(tmp_path, method):
    request = Request(only=("mnist",), seeds="5", variants=variants.NAMES)
    for part in (plan.of_significance, plan.of_table2):
        for (_, name), experiment in part(request).items():
            if name != method:
                count = len(experiment.seeds)
                fake_run_of(tmp_path, experiment, np.linspace(99, 99.1, count), np.linspace(-1, -0.9, count))
    evidence = judged(tmp_path, request)
    for claim in ("bwt", "accuracy", "robust", "memory", "bytes", "time"):
        assert evidence[claim] == ("", "not run")


def test_the_table_of_claims_names_its_tests(tmp_path):
    every = {"claims": {}, "significance": {}, "table2": {}}
    table = claims.table(MNIST, every)
    assert table.columns[2:] == ["evidence, corrected test", "verdict, corrected test", "verdict, plain test"]


def test_costs_are_compared_with_those_of_the_papers_methods(tmp_path):
    costs = plan.of_table2(MNIST)
    for (_, method), experiment in costs.items():
        kept = 0 if method == "naive" else 100 + (method != "prer")
        fake_run_of(tmp_path, experiment, [90.0], [0.0], memory_floats=[kept] * 5)
    less = MNIST.experiment("mnist", "er", ["seeds=[0]", "learner.size=1"])
    fake_run_of(tmp_path, less, [90.0], [0.0], memory_floats=[1] * 5)
    every = {"claims": {}, "significance": {}, "table2": existing(costs | {("mnist", "der"): less}, tmp_path)}
    rows = {row[0]: row for row in claims.table(MNIST, every).rows}
    assert rows[claims.CLAIMS["memory"].says][3] == HOLDS


def test_rows_of_ours_change_no_verdict_about_the_papers_methods(tmp_path):
    runs, noise = plan.of_significance(MNIST), np.random.default_rng(0).normal(size=(9, 20))
    for number, method in enumerate((*METHODS, "der", "joint")):
        if method == "der":
            before = claims.gathered(
                {"significance": existing(runs, tmp_path), "claims": {}, "table2": {}}, "mnist", True
            )
        fake_run_of(tmp_path, runs["mnist", method], 90 + noise[number], -1 + noise[number])
    after = claims.gathered({"significance": existing(runs, tmp_path), "claims": {}, "table2": {}}, "mnist", True)
    assert set(before.against["bwt"]) == {*METHODS} - {"prer"} and after.against == before.against


def test_the_size_of_levels_and_generators(tmp_path):
    runs = of_variants()
    fake_run_of(tmp_path, runs["ours"], DIAGONALS, BWTS, memory_floats=[1000] * 5)
    fake_run_of(tmp_path, runs["one-level"], DIAGONALS - ONE, BWTS, memory_floats=[1000] * 5)
    fake_run_of(tmp_path, runs["pixels"], DIAGONALS, BWTS, memory_floats=[1001] * 5, seconds={"total": 12.0})
    evidence = judged(tmp_path)
    assert [evidence[claim][1] for claim in ("levels-better", "levels-smaller", "smaller")] == [HOLDS, FAILS, HOLDS]
    shutil.rmtree(tmp_path / runs["pixels"].folder)
    fake_run_of(tmp_path, runs["pixels"], DIAGONALS, BWTS, memory_floats=[999] * 5, seconds={"total": 99.0})
    assert judged(tmp_path)["smaller"][1] == FAILS


def test_the_pairs_of_the_claims_are_one_family_over_both_metrics(tmp_path):
    runs, twenty = of_variants(), plan.of_significance(MNIST)
    draw = np.random.default_rng(0).normal(size=(9, 3))
    for i, variant in enumerate(("ours", "pixels", "neither", "no-sparsity")):
        fake_run_of(tmp_path, runs[variant], DIAGONALS + draw[i], BWTS)
    for i, method in enumerate(("er", "gem")):
        fake_run_of(tmp_path, twenty["mnist", method], DIAGONALS + draw[4 + i], BWTS + 0.1 * draw[6 + i])
    needed = {"claims": variants.experiments, "significance": plan.of_significance, "table2": plan.of_table2}
    every = {name: existing(experiments(MNIST), tmp_path) for name, experiments in needed.items()}
    evidence = claims.gathered(every, "mnist")
    pairs = [("ours", "pixels"), ("neither", "pixels"), ("ours", "no-sparsity"), ("er", "gem")]
    assert list(evidence.pairs) == pairs  # not those of PRER against other methods, which are a family of their own
    tests = [c for pair in pairs for c in evidence.pairs[pair]]
    assert [c.adjusted for c in tests] == holm([c.p for c in tests]) and len(tests) == 8
    values = [every["significance"]["mnist", m].folder.result["bwt"]["values"] for m in ("er", "gem")]
    assert evidence.pairs["er", "gem"].bwt.p == compare(*values).p


def test_claims_about_the_other_methods(tmp_path):
    twenty, costs = plan.of_significance(MNIST), plan.of_table2(MNIST)
    noise = np.random.default_rng(0).normal(size=20)
    lost = {"naive": 3, "lwf": 2, "ewc": 2, "gem": 1, "er": 0.5, "prer": 0}
    for method in METHODS:
        wide = 0.01 if method == "prer" else 1
        fake_run_of(
            tmp_path, twenty["mnist", method], 90 - lost[method] + wide * noise, -lost[method] + 0.1 * noise[::-1]
        )
        kept, seconds = (0, 1.0) if method == "naive" else (100 + 10 * (method != "prer") + (method == "gem"), 10.0)
        about = {
            "memory_floats": [kept] * 5,
            "memory_bytes": [4 * kept] * 5,
            "seconds": {"total": seconds + (method == "gem")},
        }
        fake_run_of(tmp_path, costs["mnist", method], [90.0], [0.0], **about)
    evidence = judged(tmp_path)
    assert {claim: evidence[claim][1] for claim in METHODS_CLAIMS} == dict.fromkeys(METHODS_CLAIMS, "holds")
    assert evidence["little"][0].endswith("share of Naive's forgetting removed: LWF 33 %, EWC 33 %")
    for method in ("er", "gem"):
        shutil.rmtree(tmp_path / costs["mnist", method].folder)
    shutil.rmtree(tmp_path / twenty["mnist", "er"].folder)
    shutil.rmtree(tmp_path / twenty["mnist", "lwf"].folder)
    fake_run_of(tmp_path, twenty["mnist", "er"], 95 + 0.001 * noise, np.ones(20))
    fake_run_of(tmp_path, twenty["mnist", "lwf"], 96 + noise, 2 * np.ones(20))
    fake_run_of(tmp_path, costs["mnist", "er"], [90.0], [0.0], memory_floats=[99] * 5, seconds={"total": 8.0})
    fake_run_of(tmp_path, costs["mnist", "gem"], [90.0], [0.0], memory_floats=[99] * 5, seconds={"total": 9.0})
    evidence = judged(tmp_path)
    assert {claim: evidence[claim][1] for claim in METHODS_CLAIMS} == dict.fromkeys(METHODS_CLAIMS, "does not hold") | {
        "strong-ewc": "holds",
        "above-naive": "holds",
        "er-bwt": "holds",
        "er-accuracy": "holds",
        "quicker": "holds",
    }
    assert "against LWF" in evidence["accuracy"][0] and "Naive" not in evidence["memory"][0]


@pytest.mark.parametrize(
    "text",
    [
        None,
        "{",
        '{"event": "health"}\n',
        '{"event": "task"}\n',
        '{"event": "health", "task": 4, "agreement": [null]}\n',
        '{"event": "health", "task": 4, "agreement": [0.9]}\n',
    ],
)
def test_a_claim_without_events_is_not_known(tmp_path, text):
    folder = fake_run_of(tmp_path, of_variants()["ours"], DIAGONALS, BWTS, memory_floats=[100] * 4 + [102])
    (folder.path / "events.jsonl").unlink() if text is None else (folder.path / "events.jsonl").write_text(text)
    verdicts = {claim: verdict for claim, (_, verdict) in judged(tmp_path).items()}
    assert (verdicts["ours"], verdicts["constant"], verdicts["phases"]) == ("unknown", "does not hold", "not run")


def test_one_seed_decides_no_claim(tmp_path):
    request = Request(only=("mnist",), seeds="1", variants=variants.NAMES)
    health = [event | {"agreement": [0.99]} for event in HEALTH]
    runs = [*of_variants(request).values(), *plan.of_significance(request).values()]
    for experiment in {run.hash: run for run in runs}.values():
        fake_run_of(tmp_path, experiment, [99.0], [-1.0], health)
    verdicts = {claim: verdict for claim, (_, verdict) in judged(tmp_path, request).items()}
    same = ("smaller", "levels-smaller", *COSTS)  # as much as the other
    of_costs = dict.fromkeys(same, "does not hold")
    assert verdicts == dict.fromkeys(claims.CLAIMS, "not decided") | {"constant": "holds"} | of_costs
