"""Evidence of runs with known numbers, and the verdict of each judge."""

from dataclasses import replace

import numpy as np
import pytest
from support.fake_runs import fake_run_of
from support.paper import MNIST

from prer.paper import METHODS, evidence, plan, rules, variants
from prer.paper.evidence import Evidence, by, compared_by, judged, of_cost, of_samples
from prer.paper.rules import FAILS, HOLDS, OPEN
from prer.runs.folder import RunFolder
from prer.runs.significance import Comparison, compare, holm
from prer.sweeps.engines.base import Outcome

NOISE = np.array([0.0, 0.1, -0.1, 0.05, -0.05])
BETTER, WORSE = Comparison(1.0, 0.5, 1.5, 0.001, 0.002), Comparison(-1.0, -1.5, -0.5, 0.001, 0.002)
SHAPE = (1, 28, 28)
NOTHING = "-"  # there is no such experiment
LITTLE = Comparison(0.01, -0.05, 0.07, 0.5, 0.6)


@pytest.fixture
def made(tmp_path):
    """Makes the outcome of a run with these diagonals, BWTs and costs; the name only tells folders apart."""
    experiments = {name: run for (_, name), run in (plan.of_significance(MNIST) | variants.experiments(MNIST)).items()}

    def outcome(name, diagonal=90.0, bwt=0.0, spread=1.0, health=(), noise=NOISE, **about):
        values = diagonal + spread * noise, bwt + spread * noise[::-1]
        folder = fake_run_of(tmp_path / str(len(list(tmp_path.iterdir()))), experiments[name], *values, health, **about)
        return Outcome(experiments[name], folder)

    return outcome


@pytest.fixture
def failed(tmp_path):
    experiment = plan.of_significance(MNIST)["mnist", "er"]
    return Outcome(experiment, RunFolder(tmp_path / "none"), "the loss became nan")


def of(runs=(), costs=(), against=None, pairs=()):
    runs = dict(runs)
    return Evidence(runs, dict(costs), against or {"bwt": {}, "accuracy": {}}, judged(runs, pairs), 0.0, SHAPE)


# -- pairs -------------------------------------------------------------------------------------------------------------


def test_pairs_that_have_run_are_one_holm_family_over_both_metrics(made, failed):
    runs = {
        "ours": made("ours", 92, -1),
        "one-phase": made("one-phase", 91, -2, 3),
        "gaussian": made("gaussian", 91.9, -1, 2),
    }
    runs["er"] = failed
    pairs = [("ours", "one-phase"), ("gaussian", "ours"), ("ours", "er"), ("ours", "pixels")]
    found = judged(runs, pairs)
    assert list(found) == pairs[:2]
    tests = [c for pair in found.values() for c in pair]
    values = {name: runs[name].folder.result for name in ("ours", "one-phase", "gaussian")}
    expected = [
        compare(values[a][metric]["values"], values[b][metric]["values"]).p
        for a, b in pairs[:2]
        for metric in ("bwt", "accuracy")
    ]
    assert [c.p for c in tests] == expected and [c.adjusted for c in tests] == holm(expected)


def test_a_pair_is_compared_over_the_seeds_that_both_have(made):
    runs = {"ours": made("ours", 92, -1, noise=MANY), "one-phase": made("one-phase", 91, -2, noise=MANY[:5] ** 2)}
    (found,) = judged(runs, [("ours", "one-phase")]).values()
    values = [run.folder.result["bwt"]["values"][:5] for run in runs.values()]
    assert found.bwt == replace(compare(*values), adjusted=found.bwt.adjusted)


def test_a_rule_is_applied_to_the_comparisons_and_they_are_listed(made):
    pairs = [("ours", "one-phase"), ("gem", "one-phase")]
    runs = {"ours": made("ours", 92, 0), "one-phase": made("one-phase", 90, -1, 0.5), "gem": made("gem", 93, 0)}
    text, word = by(rules.better)(of(runs, pairs=pairs), *pairs)
    assert word == HOLDS
    assert text.startswith("ours - one-phase, 5 seeds: BWT +1.00 (better, p <0.001), Accuracy +2.")
    assert "; GEM - one-phase, 5 seeds: " in text
    assert by(lambda *both: "as many" if len(both) == 2 else "other")(of(runs, pairs=pairs), *pairs)[1] == "as many"


def test_without_a_run_the_reason_is_the_verdict(made, failed):
    runs = {"ours": made("ours"), "er": failed}
    judge = by(rules.better)
    assert judge(of(runs), ("ours", "one-phase")) == ("", NOTHING)
    assert judge(of(runs), ("ours", "er")) == ("", "failed: the loss became nan")
    assert judge(of(runs), ("ours", "er"), ("one-phase", "er")) == ("", "failed: the loss became nan; -")
    assert judge(of(runs), ("ours", "ours")) == ("", OPEN)  # both have run, and there is no comparison


def test_a_comparison_in_words():
    assert compared_by("BWT", BETTER) == "BWT +1.00 (better, p 0.002)"
    assert compared_by("BWT", Comparison(-0.0001, -1, 1, 0.9, 0.9999)).startswith("BWT +0.00 (not decided, p ")


@pytest.mark.parametrize(("floats", "word"), [(1000, HOLDS), (2000, FAILS), (3000, FAILS)])
def test_floats_of_two_variants_are_compared(made, floats, word):
    pair = ("ours", "one-level")
    runs = {"ours": made("ours", 92, 0, memory_floats=[1] * 4 + [floats])}
    runs["one-level"] = made("one-level", 90, -1, memory_floats=[2000] * 5)
    assert evidence.by_floats(of(runs), pair) == (f"{floats:,} floats against 2,000", word)
    assert evidence.by_floats(of({"ours": runs["ours"]}), pair) == ("", NOTHING)


@pytest.mark.parametrize(("left", "word"), [(-3.0, HOLDS), (-1.0, FAILS), (-2.0, OPEN)])
def test_little_is_less_than_half_of_what_naive_forgets(made, left, word):
    pair = ("lwf", "naive")
    runs = {"lwf": made("lwf", 92, left), "naive": made("naive", 90, -4.0, 0.5)}
    text, found = evidence.by_share(of(runs, pairs=[pair]), pair)
    assert found == word and text.endswith(f"share of Naive's forgetting removed: LWF {100 * (1 + left / 4):.0f} %")
    assert evidence.by_share(of(), pair) == ("", NOTHING)


# -- one run -----------------------------------------------------------------------------------------------------------


def health(*agreement):
    return [{"event": "health", "task": 4, "class": c, "agreement": list(agreement)} for c in (0, 1)]


def test_samples_are_compared_with_test_images(made):
    near = made("ours", 90, 0, health=health(0.9, 0.91, 0.89, 0.9, 0.9))
    text, word = of_samples("ours")(of({"ours": near}))
    assert word == HOLDS and text.startswith("samples 90.0 %, test images 90.0 % (+0.0, 95 % interval from ")
    far = made("ours", 90, 0, health=health(0.5, 0.5, 0.5, 0.5, 0.5))
    assert of_samples("ours")(of({"ours": far}))[1] == FAILS
    assert of_samples("ours")(of({"ours": made("ours")})) == ("", "unknown")
    assert of_samples("ours")(of({"ours": made("ours", health=health(0.9, 0.9))})) == ("", "unknown")  # of other seeds
    assert of_samples("ours")(of()) == ("", NOTHING)


@pytest.mark.parametrize(("last", "word"), [(1000, HOLDS), (1009, HOLDS), (1010, FAILS), (900, HOLDS)])
def test_a_memory_that_grows_by_less_than_one_per_cent_is_constant(made, last, word):
    runs = {"ours": made("ours", memory_floats=[1000, 9000, 1, 1, last])}
    text, found = evidence.of_growth(of(runs))
    assert found == word
    assert text == f"1,000 floats after the first task, {last:,} after the last ({last / 10 - 100:+.2f} %)"
    assert evidence.of_growth(of()) == ("", NOTHING)


# -- all methods -------------------------------------------------------------------------------------------------------


MANY = np.random.default_rng(0).normal(size=20)


@pytest.fixture
def every(made):
    """Outcomes of all methods; PRER's accuracies vary least."""
    return {name: made(name, spread=0.01 if name == "prer" else 1 + i, noise=MANY) for i, name in enumerate(METHODS)}


def test_claims_about_all_methods_need_all_of_them(every):
    against = {metric: {"er": BETTER} for metric in ("bwt", "accuracy")}
    for method in METHODS:
        others = {name: outcome for name, outcome in every.items() if name != method}
        found = of(others, others, against)
        for judge in (evidence.of_bwt, evidence.of_accuracy, evidence.of_spread, of_cost("floats"), of_cost("seconds")):
            assert judge(found) == ("", NOTHING)


def test_bwt_is_judged_against_every_method(every):
    against = {"bwt": {"er": BETTER, "gem": BETTER}, "accuracy": {}}
    assert evidence.of_bwt(of(every, against=against)) == (
        "ER +1.00 (better, p 0.002), GEM +1.00 (better, p 0.002)",
        HOLDS,
    )
    assert evidence.of_bwt(of(every, against={"bwt": {"er": BETTER, "gem": WORSE}}))[1] == FAILS
    assert evidence.of_bwt(of(every, against={"bwt": {}})) == ("", OPEN)


def test_accuracy_is_judged_against_the_best_mean(every):
    text, word = evidence.of_accuracy(of(every, against={"accuracy": {"er": BETTER, "gem": LITTLE}}))
    assert (text, word) == ("+0.01 against GEM (95 % interval from -0.05 to +0.07)", HOLDS)
    assert evidence.of_accuracy(of(every, against={"accuracy": {"er": BETTER, "gem": WORSE}}))[1] == FAILS
    assert evidence.of_accuracy(of(every, against={"accuracy": {}})) == ("", OPEN)


def test_the_spread_of_prer_is_judged_against_the_others(every, made):
    text, word = evidence.of_spread(of(every))
    assert (
        word == HOLDS
        and text.startswith("Levene's test; standard deviation 0.01; ")
        and text.count(",") == len(METHODS) - 2
    )
    assert evidence.of_spread(of(every | {"prer": made("prer", spread=100, noise=MANY)}))[1] == FAILS
    assert evidence.of_spread(of({name: made(name, noise=MANY[:1]) for name in METHODS})) == ("", OPEN)


# -- costs -------------------------------------------------------------------------------------------------------------


@pytest.fixture
def costs(made):
    """The costs of all methods, some of them replaced; Naive keeps nothing."""

    def outcomes(**others):
        usual = dict.fromkeys(METHODS, (200, 10.0)) | {"naive": (0, 1.0), "prer": (100, 10.0)} | others
        about = {
            name: {"memory_floats": [1] * 4 + [f], "memory_bytes": [4] * 4 + [4 * f], "seconds": {"total": s}}
            for name, (f, s) in usual.items()
        }
        return of(costs={name: made(name, **cost) for name, cost in about.items()})

    return outcomes


def test_prer_needs_the_least_memory_of_all_that_keep_something(costs):
    text, word = of_cost("floats")(costs())
    assert word == HOLDS and "PRER + anchor 100" in text and "Naive" not in text
    assert of_cost("floats")(costs(er=(100, 1.0)))[1] == FAILS


def test_the_time_of_prer_is_competitive_if_somebody_takes_longer(costs):
    assert of_cost("seconds")(costs())[1] == FAILS  # as long as all others
    text, word = of_cost("seconds")(costs(gem=(200, 10.5)))
    assert word == HOLDS and "GEM 10.5 s" in text


@pytest.mark.parametrize(
    ("er", "floats", "seconds"),
    [((199, 9.0), HOLDS, HOLDS), ((200, 9.0), FAILS, HOLDS), ((199, 10.0), HOLDS, FAILS)],
)
def test_er_needs_less_than_gem(costs, er, floats, seconds):
    found = [evidence.of_er_and_gem(field)(costs(er=er)) for field in ("floats", "seconds")]
    assert found == [(f"ER {er[0]} floats, GEM 200 floats", floats), (f"ER {er[1]:.1f} s, GEM 10.0 s", seconds)]
    assert evidence.of_er_and_gem("floats")(costs(er=(0, 1.0))) == ("", "not run")


@pytest.mark.parametrize(("floats", "word"), [(99, HOLDS), (100, FAILS), (101, FAILS)])
def test_a_generator_of_embeddings_is_smaller_and_times_decide_nothing(made, floats, word):
    costs = {"ours": (floats, 9.0), "pixels": (100, 10.0)}
    runs = {name: made(name, memory_floats=[1] * 4 + [f], seconds={"total": s}) for name, (f, s) in costs.items()}
    assert evidence.of_generators("floats")(of(runs)) == (f"ours {floats} floats, pixels 100 floats", word)
    assert evidence.of_generators("seconds")(of(runs)) == ("ours 9.0 s, pixels 10.0 s", OPEN)
    assert evidence.of_generators("floats")(of({"ours": runs["ours"]})) == ("", NOTHING)


def test_memories_are_compared_in_bytes_too(costs):
    text, word = of_cost("bytes")(costs())
    assert word == HOLDS and "LWF 800 bytes" in text
