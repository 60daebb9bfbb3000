"""What the paper claims, and whether it holds here, by rules that are stated."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from scipy.stats import levene

from prer.engines import Outcome
from prer.paper.ablation import OURS, agreement_of
from prer.paper.plan import NOT_RUN, Request, data_of
from prer.paper.published import TITLES
from prer.paper.significance import comparisons
from prer.paper.table1 import METRICS, Outcomes, missing, result_of, values_of
from prer.paper.tables import Cell, Table
from prer.significance import LEVEL, MARGIN, Comparison, compare, compared, holm

AGREEMENT = 95.0  # per cent of a class's samples that its head must take for that class
GROWTH = 1.0  # per cent by which a memory may grow from the first task to the last and still count as constant
HOLDS, FAILS, OPEN = "holds", "does not hold", "not decided"

CLAIMS = {
    "embeddings": "embeddings are easier to generate than inputs (introduction)",
    "regularise": "to regularise is better than to augment (introduction)",
    "sparsity": "sparsity improves the classification (section 3.3)",
    "phases": "three separate phases improve the results (section 3.3)",
    "condition": "a flow whose first coupling sees the class generates every class (section 3.4)",
    "ours": "the same of our flow, which sees it in every coupling and in its prior",
    "constant": "the memory is constant (abstract)",
    "bwt": "BWT is better than that of all other methods, by a significant margin (section 4)",
    "accuracy": "Accuracy is comparable to the best one's (section 4)",
    "robust": "it is more robust to the initial weights (section 4)",
    "memory": "it needs the least memory (section 4)",
    "time": "its time is competitive (section 4)",
}
RULES = {
    "embeddings": "ours against pixels (DGR with our networks, classifier and epochs; it also trains its encoder with "
    "labels); holds where BWT and Accuracy are both better, does not where one is worse",
    "regularise": "no-anchor against augment-only, as the anchor is ours; holds where BWT is better and Accuracy not "
    "worse, does not where one is worse",
    "sparsity": "ours against no-sparsity; by Accuracy alone",
    "phases": "ours against joint; holds where one of BWT and Accuracy is better and the other not worse, does not "
    "where one is worse",
    "condition": "the literal settings: the share of samples after the last task that the head takes for their class; "
    f"holds where its 95 % interval over seeds lies above {AGREEMENT:g} %, does not where it lies below",
    "ours": "the same rule",
    "constant": f"holds where it grows by less than {GROWTH:g} % from the first task to the last",
    "bwt": "by the tests of the table of significance; holds where PRER is better than each of the others, does not "
    "where it is worse than one",
    "accuracy": "PRER less the method with the best mean, paired over seeds; holds where the 95 % interval lies above "
    f"-{MARGIN} points, does not where it lies below",
    "robust": "Levene's test of the spread of Accuracy around its median, Holm's correction; holds where PRER's is the "
    "smallest and each difference is significant, does not where another is significantly smaller",
    "memory": "floats of Table 2 after the last task; holds where each method that keeps something keeps more",
    "time": "seconds of Table 2; holds where at least one of the methods that keep something takes longer",
}
PAIRS = {
    "embeddings": (OURS, "pixels"),
    "regularise": ("no-anchor", "augment-only"),
    "sparsity": (OURS, "no-sparsity"),
    "phases": (OURS, "joint"),
}
Verdict = tuple[str, str]  # the evidence, and what follows


def table(request: Request, every: Mapping[str, Outcomes]) -> Table:
    """A row for each claim and data set, from the runs of the ablation, of twenty seeds and of Table 2."""
    found: dict[str, dict[str, Verdict]] = {claim: {} for claim in CLAIMS}
    judges = {"claims": _of_ablation, "significance": _of_significance, "table2": _of_costs}
    for part, judge in judges.items():
        for data in data_of(every[part]):
            for claim, verdict in judge(every[part], data).items():
                found[claim][data] = verdict
    rows: list[list[Cell]] = [
        [CLAIMS[claim], request.title(data), *verdict] for claim in CLAIMS for data, verdict in found[claim].items()
    ]
    notes = [f"{CLAIMS[claim][0].upper()}{CLAIMS[claim][1:]}: {rule}." for claim, rule in RULES.items()]
    notes += [
        f"Better and worse: paired t-tests over seeds, p below {LEVEL} after Holm's correction over the claims that "
        f"are judged by pairs on a data set; not worse: the 95 % interval lies above -{MARGIN} points."
    ]
    return Table("claims", "The paper's claims", ["claim", "data", "evidence", "verdict"], rows, notes)


def _of_ablation(outcomes: Outcomes, data: str) -> dict[str, Verdict]:
    of = {variant: outcome for (name, variant), outcome in outcomes.items() if name == data}
    compared = {metric: _pairs(of, metric) for metric in METRICS}
    words = {claim: {m: c[claim].verdict for m, c in compared.items() if claim in c} for claim in PAIRS}
    enough = {
        "embeddings": lambda bwt, accuracy: bwt == accuracy == "better",
        "regularise": lambda bwt, accuracy: bwt == "better" and accuracy in ("better", "not worse"),
        "sparsity": lambda accuracy: accuracy == "better",
        "phases": lambda *both: "better" in both and set(both) <= {"better", "not worse"},
    }
    found: dict[str, Verdict] = {}
    for claim, pair in PAIRS.items():
        if len(words[claim]) < len(METRICS):
            found[claim] = "", "; ".join(dict.fromkeys(missing(of.get(v)) for v in pair if not result_of(of.get(v))))
            continue
        evidence = [f"{METRICS[m]} {c[claim].difference:+z.2f} ({words[claim][m]})" for m, c in compared.items()]
        judged = [words[claim][m] for m in METRICS if (claim, m) != ("sparsity", "bwt")]
        found[claim] = ", ".join(evidence), HOLDS if enough[claim](*judged) else FAILS if "worse" in judged else OPEN
    found["condition"], found["ours"] = _apart(of.get("literal")), _apart(of.get(OURS))
    found["constant"] = _constant(of.get(OURS))
    return found


def _pairs(of: Mapping[str, Outcome], metric: str) -> dict[str, Comparison]:
    """The first of each pair against the second, where both have run."""
    return compared({c: (values_of(of.get(a), metric), values_of(of.get(b), metric)) for c, (a, b) in PAIRS.items()})


def _apart(outcome: Outcome | None) -> Verdict:
    if result_of(outcome) is None or outcome is None:
        return "", missing(outcome)
    agreement = agreement_of(outcome.record)
    if agreement is None:
        return "", "not known"
    c = compare(agreement, [AGREEMENT] * len(agreement))
    interval = (
        f" (95 % interval from {c.low + AGREEMENT:.1f} to {c.high + AGREEMENT:.1f})" if len(agreement) > 1 else ""
    )
    real = (outcome.record.result or {})["final_accuracy"]["mean"]
    text = f"{np.mean(agreement):.1f} %{interval}; of real test samples {real:.1f} %"
    return text, HOLDS if c.low > 0 else FAILS if c.high < 0 and c.p < LEVEL else OPEN


def _constant(outcome: Outcome | None) -> Verdict:
    result = result_of(outcome)
    if result is None:
        return "", missing(outcome)
    kept = result["memory_floats"]
    growth = 100 * (kept[-1] / kept[0] - 1)
    text = f"{kept[0]:,} floats after the first task, {kept[-1]:,} after the last ({growth:+.2f} %)"
    return text, HOLDS if growth < GROWTH else FAILS


def _of_significance(outcomes: Outcomes, data: str) -> dict[str, Verdict]:
    values = {m: values_of(o, "accuracy") for (name, m), o in outcomes.items() if name == data}
    known = {method: of_method for method, of_method in values.items() if of_method}
    prer = known.pop("prer", None)
    if prer is None or not known:
        return dict.fromkeys(("bwt", "accuracy", "robust"), ("", NOT_RUN))
    best = max(known, key=lambda method: float(np.mean(known[method])))
    against = comparisons(outcomes, data, "accuracy")[best]
    evidence = (
        f"{against.difference:+z.2f} to {TITLES[best]} (95 % interval from {against.low:+.2f} to {against.high:+.2f})"
    )
    word = HOLDS if against.low > -MARGIN else FAILS if against.high < -MARGIN else OPEN
    return {
        "bwt": _better_than_all(comparisons(outcomes, data, "bwt")),
        "accuracy": (evidence, word),
        "robust": _robust(prer, known),
    }


def _better_than_all(of_methods: Mapping[str, Comparison]) -> Verdict:
    words = [c.verdict for c in of_methods.values()]
    evidence = ", ".join(f"{TITLES[m]} {c.difference:+z.2f} ({c.verdict})" for m, c in of_methods.items())
    return evidence, HOLDS if set(words) == {"better"} else FAILS if "worse" in words else OPEN


def _robust(prer: Sequence[float], others: Mapping[str, Sequence[float]]) -> Verdict:
    own = float(np.std(prer, ddof=1))
    spread = {method: float(np.std(values, ddof=1)) for method, values in others.items()}
    chance = holm([float(levene(prer, values).pvalue) for values in others.values()])
    sure = {method: p < LEVEL for method, p in zip(others, chance, strict=True)}
    evidence = f"standard deviation {own:.2f}; " + ", ".join(f"{TITLES[m]} {s:.2f}" for m, s in spread.items())
    if all(sure[method] and spread[method] > own for method in others):
        return evidence, HOLDS
    return evidence, FAILS if any(sure[method] and spread[method] < own for method in others) else OPEN


def _of_costs(outcomes: Outcomes, data: str) -> dict[str, Verdict]:
    results = {m: result_of(o) for (name, m), o in outcomes.items() if name == data}
    kept = {m: result["memory_floats"][-1] for m, result in results.items() if result}
    others = [method for method in kept if method != "prer" and kept[method]]
    if "prer" not in kept or not others:
        return dict.fromkeys(("memory", "time"), ("", NOT_RUN))
    seconds = {m: (results[m] or {})["seconds"]["total"] for m in ("prer", *others)}
    memory = ", ".join(f"{TITLES[m]} {kept[m]:,}" for m in ("prer", *others))
    time = ", ".join(f"{TITLES[m]} {seconds[m]:.1f} s" for m in ("prer", *others))
    least = all(kept[method] > kept["prer"] for method in others)
    slower = any(seconds[method] > seconds["prer"] for method in others)
    return {"memory": (memory, HOLDS if least else FAILS), "time": (time, HOLDS if slower else FAILS)}
