"""The paper's claims: each rule by a table of what it is given and what follows, and the rows from run folders."""

import shutil

import numpy as np
import pytest
from scipy.stats import expon, norm
from support.folders import pretended

from prer.paper import METHODS, claims, plan, rules
from prer.paper import variants as ablation
from prer.paper.plan import Request
from prer.paper.reproduce import existing
from prer.paper.rules import FAILS, HOLDS, OPEN, Both
from prer.runs.significance import Comparison, compare, holm

MNIST = Request(only=("mnist",), variants=ablation.NAMES)
DIAGONALS, BWTS = np.array([99.0, 99.5, 99.25]), np.array([-0.5, -0.25, -0.75])
HEALTH = [{"event": "health", "task": t, "class": c, "agreement": [0.99, 0.98, 1.0]} for t in (0, 4) for c in (0, 1)]
ONE = np.array([1, 1.001, 0.999])  # a point, and hardly any doubt


def of(difference, half, p):
    return Comparison(difference, difference - half, difference + half, p / 20, p)


BETTER, WORSE, UNKNOWN = of(1.0, 0.5, 0.01), of(-1.0, 0.5, 0.01), of(0.5, 1.0, 0.3)
NOT_WORSE, SAME, SLIGHTLY_LESS = of(0.1, 0.2, 0.4), of(0.0, 0.1, 0.9), of(-0.1, 0.05, 0.01)
SLIGHTLY_MORE, PERHAPS_LESS = of(0.1, 0.05, 0.01), of(-0.3, 0.4, 0.2)
FEW, LARGE = of(-1.0, 0.5, 1), of(1.0, 0.5, 1)  # what is left of half of Naive's forgetting


def test_the_words_of_the_tables_below():
    words = [c.verdict for c in (BETTER, WORSE, UNKNOWN, NOT_WORSE, SAME, SLIGHTLY_LESS)]
    assert words == ["better", "worse", "not decided", "not worse", "not worse", "not worse"]
    assert (SLIGHTLY_MORE.verdict, PERHAPS_LESS.verdict) == ("better", "not decided")


@pytest.mark.parametrize(
    ("rule", "pairs", "verdict"),
    [
        (rules.better, [(BETTER, BETTER)], HOLDS),
        (rules.better, [(BETTER, BETTER), (BETTER, BETTER)], HOLDS),
        (rules.better, [(BETTER, BETTER), (BETTER, NOT_WORSE)], OPEN),
        (rules.better, [(BETTER, BETTER), (WORSE, BETTER)], FAILS),
        (rules.better, [(SAME, SAME)], OPEN),
        (rules.improves, [(BETTER, BETTER)], HOLDS),
        (rules.improves, [(BETTER, NOT_WORSE)], HOLDS),
        (rules.improves, [(SLIGHTLY_LESS, BETTER)], HOLDS),
        (rules.improves, [(BETTER, UNKNOWN)], OPEN),
        (rules.improves, [(BETTER, WORSE)], FAILS),
        (rules.improves, [(WORSE, UNKNOWN)], FAILS),
        (rules.improves, [(NOT_WORSE, SAME)], OPEN),  # may be better by more than the margin
        (rules.improves, [(SAME, SAME)], FAILS),  # cannot
        (rules.improves, [(SAME, UNKNOWN)], OPEN),
        (rules.improves, [(SLIGHTLY_MORE, PERHAPS_LESS)], FAILS),  # the one surely, and both by a trifle at most
        (rules.remembers, [(BETTER, NOT_WORSE)], HOLDS),
        (rules.remembers, [(BETTER, BETTER)], HOLDS),
        (rules.remembers, [(BETTER, UNKNOWN)], OPEN),
        (rules.remembers, [(BETTER, WORSE)], FAILS),
        (rules.remembers, [(NOT_WORSE, BETTER)], OPEN),
        (rules.remembers, [(WORSE, BETTER)], FAILS),
        (rules.classifies, [(WORSE, BETTER)], HOLDS),
        (rules.classifies, [(BETTER, WORSE)], FAILS),
        (rules.classifies, [(BETTER, NOT_WORSE)], OPEN),
        (rules.easier, [(BETTER, BETTER), (WORSE, WORSE)], HOLDS),
        (rules.easier, [(BETTER, BETTER), (NOT_WORSE, UNKNOWN)], HOLDS),
        (rules.easier, [(BETTER, BETTER), (BETTER, WORSE)], OPEN),
        (rules.easier, [(BETTER, BETTER), (WORSE, BETTER)], OPEN),
        (rules.easier, [(BETTER, NOT_WORSE), (WORSE, WORSE)], OPEN),
        (rules.easier, [(WORSE, WORSE), (WORSE, WORSE)], OPEN),
    ],
)
def test_rules_of_pairs(rule, pairs, verdict):
    assert rule(*(Both(*pair) for pair in pairs)) == verdict


@pytest.mark.parametrize(
    ("against", "verdict"),
    [
        ([BETTER, BETTER], HOLDS),
        ([BETTER, NOT_WORSE], OPEN),
        ([BETTER, UNKNOWN], OPEN),
        ([BETTER, WORSE], FAILS),
        ([BETTER, SAME], FAILS),  # by a trifle, if at all
        ([BETTER, SLIGHTLY_LESS], FAILS),
        ([BETTER, SLIGHTLY_MORE], FAILS),  # surely by a trifle
        ([UNKNOWN, SLIGHTLY_MORE], FAILS),
    ],
)
def test_the_rule_of_the_best_bwt(against, verdict):
    assert rules.best(dict(enumerate(against))) == verdict


@pytest.mark.parametrize(
    ("difference", "half", "verdict"),
    [(0.5, 0.6, HOLDS), (0.5, 0.8, OPEN), (-0.3, 0.2, OPEN), (-0.3, 0.05, FAILS), (-0.15, 0.04, HOLDS)],
)
def test_the_rule_of_a_comparable_accuracy(difference, half, verdict):
    assert rules.comparable(of(difference, half, 0.5)) == verdict


NORMAL, SKEWED = (law.ppf((np.arange(20) + 0.5) / 20) for law in (norm, expon))


@pytest.mark.parametrize(
    ("own", "others", "verdict"),
    [
        (NORMAL, [3 * NORMAL, 4 * NORMAL], HOLDS),
        (NORMAL, [3 * NORMAL, NORMAL], OPEN),
        (NORMAL, [3 * NORMAL, 0.2 * NORMAL], FAILS),
        (NORMAL, [1.8 * NORMAL], HOLDS),  # p = 0.024
        (NORMAL, [1.8 * NORMAL] * 3, OPEN),  # three times that
        (1.8 * NORMAL, [NORMAL] * 3, OPEN),
        ([1.0, 2.0], [[3.0, 9.0]], OPEN),  # of which the test would be sure, as of the next
        ([1.0, 2.0], [[3.0, 3.5]], OPEN),
        (SKEWED, [2 * SKEWED], OPEN),  # p = 0.065; around the mean it would be 0.023
        (SKEWED, [2.2 * SKEWED], HOLDS),
    ],
)
def test_the_rule_of_the_spread(own, others, verdict):
    assert rules.steadier(own, dict(enumerate(others))) == verdict


@pytest.mark.parametrize(
    ("behind", "wide", "verdict"),
    [(0, 1, HOLDS), (4, 0.1, HOLDS), (4, 5, OPEN), (6, 5, OPEN), (6, 0.1, FAILS), (-3, 1, HOLDS)],
)
def test_the_rule_of_samples_of_their_class(behind, wide, verdict):
    real = np.array([85.0, 86.0, 84.0, 85.0])
    assert rules.apart(compare(real - behind + wide * np.array([1.0, -1, 1, -1]), real)) == verdict
    assert rules.apart(compare([99.0], [99.0])) == OPEN


@pytest.mark.parametrize(
    ("words", "shares", "verdict"),
    [
        ((BETTER, BETTER), (FEW, FEW), HOLDS),
        ((BETTER, NOT_WORSE), (FEW, FEW), OPEN),
        ((BETTER, BETTER), (FEW, UNKNOWN), OPEN),
        ((BETTER, BETTER), (FEW, PERHAPS_LESS), OPEN),
        ((BETTER, BETTER), (FEW, LARGE), FAILS),
        ((BETTER, WORSE), (FEW, FEW), FAILS),
    ],
)
def test_the_rule_of_better_but_not_by_much(words, shares, verdict):
    assert rules.little([Both(*words), Both(BETTER, BETTER)], shares) == verdict


# -- rows from run folders --------------------------------------------------------------------------------------------


def judged(folder, request=MNIST):
    """The evidence and the verdicts, by claim."""
    needed = {"claims": ablation.experiments, "significance": plan.of_significance, "table2": plan.of_table2}
    table = claims.table(
        request, {name: existing(experiments(request), folder) for name, experiments in needed.items()}
    )
    names = {claim.says: name for name, claim in claims.CLAIMS.items()}
    return {names[row[0]]: tuple(map(str, row[2:])) for row in table.rows}


def variants(request=MNIST):
    return {variant: experiment for (_, variant), experiment in ablation.experiments(request).items()}


METHODS_CLAIMS = ("strong", "little", "er", "bwt", "accuracy", "robust", "memory", "time", "cheaper")


def test_claims_about_variants(tmp_path):
    runs = variants()
    kept = {"memory_floats": [1000] * 4 + [1005]}
    pretended(tmp_path, runs["ours"], DIAGONALS, BWTS, HEALTH, **kept)
    more = {"memory_floats": [2000] * 5, "seconds": {"total": 13.0}}
    pretended(tmp_path, runs["pixels"], DIAGONALS - ONE, BWTS - 5 * ONE, **more)
    pretended(tmp_path, runs["neither"], DIAGONALS - 2 * ONE, BWTS - 6 * ONE)
    pretended(tmp_path, runs["no-anchor"], DIAGONALS, BWTS - ONE)
    pretended(tmp_path, runs["augment-only"], DIAGONALS, BWTS)
    pretended(tmp_path, runs["labels-head"], DIAGONALS + 0.6 * ONE, BWTS)
    pretended(tmp_path, runs["joint"], DIAGONALS + 0.1 * ONE, BWTS)  # better than ours
    pretended(tmp_path, runs["gaussian"], DIAGONALS + 0.01 * ONE, BWTS)
    pretended(tmp_path, runs["one-level"], DIAGONALS - ONE, BWTS, memory_floats=[2000] * 5)
    half = [event | {"agreement": [0.5, 0.52, 0.49]} for event in HEALTH]
    pretended(tmp_path, runs["literal"], DIAGONALS, BWTS, half)
    pretended(tmp_path, runs["condition-first"], DIAGONALS, BWTS, HEALTH)
    found_now = judged(tmp_path)
    assert {claim: verdict for claim, (_, verdict) in found_now.items()} == {
        "embeddings": "holds",
        "regularise": "does not hold",
        "regularise-literal": "not run",
        "sparsity": "not run",
        "phases": "holds",
        "flow": "does not hold",
        "levels": "holds",
        "condition": "holds",
        "literal": "does not hold",
        "ours": "holds",
        "constant": "holds",
        "reduced": "holds",
    } | dict.fromkeys(METHODS_CLAIMS, "not run")
    assert (
        "+0.50 %" in found_now["constant"][0] and "samples 99.0 %, test images 98.8 % (+0.2, " in found_now["ours"][0]
    )
    assert found_now["reduced"][0] == "ours 1,005 floats, 12.5 s; pixels 2,000 floats, 13.0 s"
    assert found_now["levels"][0].endswith("; 1,005 floats against 2,000")
    assert (
        "ours - pixels: BWT +5.00 (better, p <0.001), Accuracy +4.33 (better, p <0.001); neither - pixels: BWT"
        in (found_now["embeddings"][0])
    )


@pytest.mark.parametrize("method", METHODS)
def test_a_claim_about_all_methods_needs_all(tmp_path, method):
    request = Request(only=("mnist",), seeds="5", variants=ablation.NAMES)
    for part in (plan.of_significance, plan.of_table2):
        for (_, name), experiment in part(request).items():
            if name != method:
                count = len(experiment.seeds)
                pretended(tmp_path, experiment, np.linspace(99, 99.1, count), np.linspace(-1, -0.9, count))
    found_now = judged(tmp_path, request)
    for claim in ("bwt", "accuracy", "robust", "memory", "time"):
        assert found_now[claim] == ("", "not run")


def test_the_size_of_levels_and_generators(tmp_path):
    runs = variants()
    pretended(tmp_path, runs["ours"], DIAGONALS, BWTS, memory_floats=[1000] * 5)
    pretended(tmp_path, runs["one-level"], DIAGONALS - ONE, BWTS, memory_floats=[1000] * 5)
    pretended(tmp_path, runs["pixels"], DIAGONALS, BWTS, memory_floats=[1001] * 5, seconds={"total": 12.0})
    found_now = judged(tmp_path)
    assert (found_now["levels"][1], found_now["reduced"][1]) == (FAILS, OPEN)  # better, but not smaller; slower
    shutil.rmtree(tmp_path / runs["pixels"].folder)
    pretended(tmp_path, runs["pixels"], DIAGONALS, BWTS, memory_floats=[999] * 5, seconds={"total": 99.0})
    assert judged(tmp_path)["reduced"][1] == FAILS


def test_the_pairs_of_the_claims_are_one_family_over_both_metrics(tmp_path):
    runs, twenty = variants(), plan.of_significance(MNIST)
    draw = np.random.default_rng(0).normal(size=(9, 3))
    for i, variant in enumerate(("ours", "pixels", "neither", "no-sparsity")):
        pretended(tmp_path, runs[variant], DIAGONALS + draw[i], BWTS)
    for i, method in enumerate(("er", "gem", "prer")):
        pretended(tmp_path, twenty["mnist", method], DIAGONALS + draw[4 + i], BWTS + 0.1 * draw[6 + i])
    needed = {"claims": ablation.experiments, "significance": plan.of_significance, "table2": plan.of_table2}
    every = {name: existing(experiments(MNIST), tmp_path) for name, experiments in needed.items()}
    evidence = claims.gathered(every, "mnist")
    pairs = [("ours", "pixels"), ("neither", "pixels"), ("ours", "no-sparsity"), ("er", "gem")]
    assert list(evidence.pairs) == pairs  # not PRER's, which are the table of significance's
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
        pretended(
            tmp_path, twenty["mnist", method], 90 - lost[method] + wide * noise, -lost[method] + 0.1 * noise[::-1]
        )
        kept, seconds = (0, 1.0) if method == "naive" else (100 + 10 * (method != "prer") + (method == "gem"), 10.0)
        about = {"memory_floats": [kept] * 5, "seconds": {"total": seconds + (method == "gem")}}
        pretended(tmp_path, costs["mnist", method], [90.0], [0.0], **about)
    found_now = judged(tmp_path)
    assert {claim: found_now[claim][1] for claim in METHODS_CLAIMS} == dict.fromkeys(METHODS_CLAIMS, "holds")
    assert found_now["little"][0].endswith("of Naive's forgetting are gone: LWF 33 %, EWC 33 %")
    for method in ("er", "gem"):
        shutil.rmtree(tmp_path / costs["mnist", method].folder)
    shutil.rmtree(tmp_path / twenty["mnist", "er"].folder)
    shutil.rmtree(tmp_path / twenty["mnist", "lwf"].folder)
    pretended(tmp_path, twenty["mnist", "er"], 95 + 0.001 * noise, np.ones(20))
    pretended(tmp_path, twenty["mnist", "lwf"], 96 + noise, 2 * np.ones(20))
    pretended(tmp_path, costs["mnist", "er"], [90.0], [0.0], memory_floats=[99] * 5, seconds={"total": 8.0})
    pretended(tmp_path, costs["mnist", "gem"], [90.0], [0.0], memory_floats=[99] * 5, seconds={"total": 9.0})
    found_now = judged(tmp_path)
    assert {claim: found_now[claim][1] for claim in METHODS_CLAIMS} == dict.fromkeys(
        METHODS_CLAIMS, "does not hold"
    ) | {"er": "holds"}
    assert "to LWF" in found_now["accuracy"][0] and "Naive" not in found_now["memory"][0]


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
    record = pretended(tmp_path, variants()["ours"], DIAGONALS, BWTS, memory_floats=[100] * 4 + [102])
    (record.path / "events.jsonl").unlink() if text is None else (record.path / "events.jsonl").write_text(text)
    verdicts = {claim: verdict for claim, (_, verdict) in judged(tmp_path).items()}
    assert (verdicts["ours"], verdicts["constant"], verdicts["phases"]) == ("not known", "does not hold", "not run")


def test_one_seed_decides_no_claim(tmp_path):
    request = Request(only=("mnist",), seeds="1", variants=ablation.NAMES)
    health = [event | {"agreement": [0.99]} for event in HEALTH]
    runs = [*variants(request).values(), *plan.of_significance(request).values()]
    for experiment in {run.hash: run for run in runs}.values():
        pretended(tmp_path, experiment, [99.0], [-1.0], health)
    verdicts = {claim: verdict for claim, (_, verdict) in judged(tmp_path, request).items()}
    of_costs = dict.fromkeys(("reduced", "memory", "time", "cheaper"), "does not hold")  # all are the same
    assert verdicts == dict.fromkeys(claims.CLAIMS, "not decided") | {"constant": "holds"} | of_costs
