"""The evidence that runs give for a claim on a data set, and the verdict by the claim's rule."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from prer.paper import METHODS, rules
from prer.paper.plan import NOT_RUN
from prer.paper.published import TITLES
from prer.paper.rules import FAILS, HOLDS, OPEN, Both
from prer.paper.table1 import METRICS, missing, paired, result_of, title_of, values_of
from prer.paper.table2 import stored_bytes
from prer.paper.tables import Probability
from prer.paper.variants import OURS, agreement_of
from prer.runs.metrics import spread
from prer.runs.significance import Comparison, compare, compared
from prer.sweeps.engines.base import Outcome

GROWTH = 1.0  # per cent by which a memory may grow from the first task to the last and still count as constant
MUCH = 0.5  # share of Naive's forgetting: a method that removes more is much better
Verdict = tuple[str, str]  # the evidence, and the conclusion
Pair = tuple[str, str]  # of variants or of methods: first minus second


@dataclass(frozen=True)
class Evidence:
    """The evidence on one data set.

    Attributes:
        runs: outcomes of variants and of methods, by name.
        costs: outcomes of methods, one seed each, alone on the machine.
        against: PRER against each other method by metric, as in the table of significance.
        pairs: comparisons that claims need, one Holm family over both metrics; only those that have run.
        overlap: n_test / n_train of the corrected test, as in `compare`; 0: the plain test.
        shape: of the images.
    """

    runs: Mapping[str, Outcome]
    costs: Mapping[str, Outcome]
    against: Mapping[str, Mapping[str, Comparison]]
    pairs: Mapping[Pair, Both]
    overlap: float = 0.0
    shape: Sequence[int] = ()


def judged(runs: Mapping[str, Outcome], pairs: Sequence[Pair], overlap: float = 0.0) -> dict[Pair, Both]:
    """Comparisons of the pairs in which both have run, Holm-corrected over all pairs and both metrics."""
    values = {(a, b, m): paired(runs.get(a), runs.get(b), m) for a, b in pairs for m in METRICS}
    tests = compared(values, overlap)
    return {(a, b): Both(*(tests[a, b, m] for m in METRICS)) for a, b in pairs if (a, b, "bwt") in tests}


def by(rule: Callable[..., str]) -> Callable[..., Verdict]:
    """A judge that applies a rule to the comparisons of pairs."""

    def judge(evidence: Evidence, *pairs: Pair) -> Verdict:
        if any(pair not in evidence.pairs for pair in pairs):
            names = dict.fromkeys(name for pair in pairs for name in pair)
            return "", _reasons([evidence.runs.get(name) for name in names])
        return _listed(evidence, pairs), rule(*(evidence.pairs[pair] for pair in pairs))

    return judge


def _reasons(outcomes: Sequence[Outcome | None]) -> str:
    """Why there is no verdict: errors of runs, or "not decided" for a single seed."""
    return "; ".join(dict.fromkeys(missing(outcome) for outcome in outcomes if not result_of(outcome))) or OPEN


def _lacking(outcomes: Mapping[str, Outcome]) -> str:
    """Why a claim about all methods cannot be judged; empty if all have run."""
    every = [outcomes.get(method) for method in METHODS]
    return "" if all(map(result_of, every)) else _reasons(every)


def _listed(evidence: Evidence, pairs: Sequence[Pair]) -> str:
    return "; ".join(
        f"{TITLES.get(a, a)} - {TITLES.get(b, b)}, {len(paired(evidence.runs[a], evidence.runs[b], 'bwt')[0])} seeds: "
        + ", ".join(compared_by(label, c) for label, c in zip(METRICS.values(), evidence.pairs[a, b], strict=True))
        for a, b in pairs
    )


def compared_by(name: str, c: Comparison) -> str:
    """As in "BWT +0.83 (better, p 0.012)"."""
    return f"{name} {c.difference:+z.2f} ({c.verdict}, p {Probability(c.adjusted, digits=3)})"


def by_floats(evidence: Evidence, *pairs: Pair) -> Verdict:
    """Judge whether the first keeps fewer scalars than the second."""
    results = {name: result_of(evidence.runs.get(name)) for name in pairs[0]}
    if not all(results.values()):
        return "", _reasons([evidence.runs.get(name) for name in pairs[0]])
    ours, other = ((result or {})["memory_floats"][-1] for result in results.values())
    return f"{ours:,} floats against {other:,}", HOLDS if ours < other else FAILS


def by_share(evidence: Evidence, *pairs: Pair) -> Verdict:
    """Judge whether methods remove little of Naive's forgetting."""
    text, reason = by(rules.better)(evidence, *pairs)
    if not text:
        return text, reason
    bwt = [paired(evidence.runs[a], evidence.runs[b], "bwt") for a, b in pairs]
    shares = [compare(of_a, [(1 - MUCH) * value for value in of_b], evidence.overlap) for of_a, of_b in bwt]
    gone = ", ".join(
        f"{TITLES[a]} {100 * (1 - np.mean(of_a) / np.mean(of_b)):.0f} %"
        for (a, _), (of_a, of_b) in zip(pairs, bwt, strict=True)
    )
    return f"share of Naive's forgetting removed: {gone}", rules.little(shares)


def of_samples(variant: str) -> Callable[..., Verdict]:
    """A judge of whether the samples of a variant belong to the requested class."""

    def judge(evidence: Evidence) -> Verdict:
        outcome = evidence.runs.get(variant)
        if result_of(outcome) is None or outcome is None:
            return "", missing(outcome)
        samples, real = agreement_of(outcome.folder), (outcome.folder.result or {})["final_accuracy"]["values"]
        if samples is None or len(samples) != len(real):
            return "", "unknown"
        c = compare(samples, real, evidence.overlap)
        interval = f", 95 % interval from {c.low:+.1f} to {c.high:+.1f}, {len(real)} seeds" if len(real) > 1 else ""
        text = f"samples {np.mean(samples):.1f} %, test images {np.mean(real):.1f} % ({c.difference:+.1f}{interval})"
        return text, rules.apart(c)

    return judge


def of_growth(evidence: Evidence) -> Verdict:
    """Judge whether the memory of ours stays constant over the tasks."""
    result = result_of(evidence.runs.get(OURS))
    if result is None:
        return "", missing(evidence.runs.get(OURS))
    kept = result["memory_floats"]
    growth = 100 * (kept[-1] / kept[0] - 1)
    text = f"{kept[0]:,} floats after the first task, {kept[-1]:,} after the last ({growth:+.2f} %)"
    return text, HOLDS if growth < GROWTH else FAILS


def of_bwt(evidence: Evidence) -> Verdict:
    """Judge PRER's BWT against all other methods, as in the table of significance."""
    against, lacking = evidence.against["bwt"], _lacking(evidence.runs)
    if lacking or not against:
        return "", lacking or OPEN
    return ", ".join(compared_by(TITLES[m], c) for m, c in against.items()), rules.best(against)


def of_accuracy(evidence: Evidence) -> Verdict:
    """Judge PRER's Accuracy against the method with the best mean."""
    against, lacking = evidence.against["accuracy"], _lacking(evidence.runs)
    if lacking or not against:
        return "", lacking or OPEN
    first = min(against, key=lambda method: against[method].difference)
    c = against[first]
    text = f"{c.difference:+z.2f} against {TITLES[first]} (95 % interval from {c.low:+.2f} to {c.high:+.2f})"
    return text, rules.comparable(c)


def of_spread(evidence: Evidence) -> Verdict:
    """Judge the spread of PRER's Accuracy against that of the others."""
    if lacking := _lacking(evidence.runs):
        return "", lacking
    others = {m: values_of(evidence.runs[m], "accuracy") or [] for m in METHODS}
    own = others.pop("prer")
    if len(own) < 2:
        return "", OPEN
    text = ", ".join(f"{TITLES[m]} {spread(values)['std']:.2f}" for m, values in others.items())
    return f"Levene's test; standard deviation {spread(own)['std']:.2f}; {text}", rules.steadier(own, others)


class Cost(NamedTuple):
    """The floats and bytes that a run keeps, and its seconds."""

    floats: int
    bytes: int
    seconds: float

    def text(self, field: str) -> str:
        """One of them, as in "834,000 floats" or "3.0 s"."""
        return f"{self.seconds:.1f} s" if field == "seconds" else f"{getattr(self, field):,} {field}"


def _costs(outcomes: Mapping[str, Outcome], shape: Sequence[int]) -> dict[str, Cost]:
    """The costs of the finished runs that keep something."""
    costs = {
        name: Cost(result["memory_floats"][-1], stored_bytes(outcome, shape), result["seconds"]["total"])
        for name, outcome in outcomes.items()
        if (result := result_of(outcome))
    }
    return {name: cost for name, cost in costs.items() if cost.floats}


def of_cost(field: str) -> Callable[..., Verdict]:
    """A judge of whether PRER's memory is the smallest, or its time not the longest."""

    def judge(evidence: Evidence) -> Verdict:
        if lacking := _lacking(evidence.costs):
            return "", lacking
        costs = _costs(evidence.costs, evidence.shape)
        own = getattr(costs["prer"], field)
        more = [getattr(cost, field) > own for method, cost in costs.items() if method != "prer"]
        text = ", ".join(f"{title_of(m, evidence.costs[m])} {cost.text(field)}" for m, cost in costs.items())
        return text, HOLDS if (any(more) if field == "seconds" else all(more)) else FAILS

    return judge


def of_er_and_gem(field: str) -> Callable[..., Verdict]:
    """A judge of whether ER needs less than GEM, each alone on the machine."""

    def judge(evidence: Evidence) -> Verdict:
        costs = _costs(evidence.costs, evidence.shape)
        if "er" not in costs or "gem" not in costs:
            return "", NOT_RUN
        er, gem = (costs[name] for name in ("er", "gem"))
        text = f"ER {er.text(field)}, GEM {gem.text(field)}"
        return text, HOLDS if getattr(er, field) < getattr(gem, field) else FAILS

    return judge


def of_generators(field: str) -> Callable[..., Verdict]:
    """A judge of the costs of ours against pixels; seconds decide nothing, since runs were made in parallel."""

    def judge(evidence: Evidence) -> Verdict:
        names = (OURS, "pixels")
        costs = _costs({name: evidence.runs[name] for name in names if name in evidence.runs}, evidence.shape)
        if len(costs) < len(names):
            return "", _reasons([evidence.runs.get(name) for name in names])
        ours, pixels = (costs[name] for name in names)
        smaller = HOLDS if getattr(ours, field) < getattr(pixels, field) else FAILS
        return f"ours {ours.text(field)}, pixels {pixels.text(field)}", OPEN if field == "seconds" else smaller

    return judge
