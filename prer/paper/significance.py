"""Which differences between PRER and the other methods are significant: Table 1 again, with more seeds."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from itertools import product

from prer.paper.plan import PLAIN, Key, Request, data_of, those
from prer.paper.table1 import (
    CHOSEN,
    METRICS,
    Outcomes,
    cell_of,
    failures,
    over,
    overlap_of,
    paired,
    spread,
    title_of,
    titles_of,
    with_rows,
)
from prer.paper.tables import Cell, Probability, Table, Value
from prer.runs.significance import LEVEL, MARGIN, Comparison, compared

WORDS = (
    f"Better: the adjusted p is below {LEVEL} and the difference is positive. Not worse: the 95 % interval lies above "
    f"-{MARGIN} points, even if a small negative difference is significant (see p). Worse: the interval does not lie "
    f"above it, the adjusted p is below {LEVEL}, and the difference is negative. Otherwise: not decided"
)
TESTS = (
    "Both tests are paired t-tests over seeds. Let s be the standard deviation of the differences over n seeds. The "
    "standard error is s sqrt(1/n) in the plain test, and s sqrt(1/n + n_test/n_train) in the corrected one (Nadeau "
    "and Bengio 2003, Inference for the Generalization Error)"
)
MEANING = (
    "The plain test treats the seeds as independent. It asks whether the difference would remain if the same images "
    "were split again and again. But all seeds split the same images, so their training and test parts overlap. The "
    "corrected test asks whether the difference would remain on other images of the same kind. It assumes that the "
    "differences of two seeds are correlated, and that the correlation equals the share of the images that is tested "
    "on. This is a rule of thumb: the true correlation is unknown. Neither test is about other data sets or other "
    "settings"
)
RULE = (
    f"{TESTS}. For each metric and data set, p is adjusted by Holm's method over all methods that a row of PRER is "
    f"compared with. {WORDS}."
)
DISTILLED = "prer-distilled"
OWN = ("prer", PLAIN, DISTILLED)  # PRER's own rows
AMONG = ((DISTILLED, "prer"), ("prer", PLAIN))


def tables(request: Request, outcomes: Outcomes, asked: Collection[Key] = ()) -> list[Table]:
    """The values of every method, PRER's rows against the others and each other; corrected over all that have run."""
    outcomes = with_rows(outcomes)
    shown = those(outcomes, asked)
    made = [_values(request, shown, data_of(shown)), _against_others(request, outcomes, shown)]
    made += [_among(request, outcomes, shown)]
    return [table for table in made if table.rows]


def _values(request: Request, outcomes: Outcomes, data: Sequence[str]) -> Table:
    columns = ["", *(f"{request.title(name)} {label}" for name in data for label in METRICS.values())]
    titles = titles_of(outcomes)
    rows: list[list[Cell]] = [
        [title, *(cell_of(outcomes.get((name, m)), metric) for name in data for metric in METRICS)]
        for m, title in titles.items()
    ]
    caption = f"BWT and Accuracy with more seeds, {spread(outcomes)}"
    notes = [CHOSEN, *request.remarks(data), *failures(request, outcomes)]
    return Table("significance-values", caption, columns, rows, notes)


def _against_others(request: Request, outcomes: Outcomes, shown: Outcomes) -> Table:
    """Which differences between PRER's own rows and the other methods are significant."""
    rows: list[list[Cell]] = []
    for own, data, metric in product(OWN, data_of(shown), METRICS):
        plain, corrected = (comparisons(outcomes, data, metric, by, own) for by in _overlaps(outcomes))
        for method, c in plain.items():
            if (data, method) in shown:
                rows.append(_row(request, outcomes, data, metric, (own, method), (c, corrected[method])))
    caption = f"PRER against the other methods, by the plain and by the corrected paired t-test{over(outcomes)}"
    return Table("significance", caption, COLUMNS, rows, [RULE, f"{MEANING}."])


def _among(request: Request, outcomes: Outcomes, shown: Outcomes) -> Table:
    """Which differences among PRER's own rows are significant."""
    rows: list[list[Cell]] = []
    for data, metric in product(data_of(shown), METRICS):
        plain, corrected = (among(outcomes, data, metric, by) for by in _overlaps(outcomes))
        for pair, c in plain.items():
            if any((data, method) in shown for method in pair):
                rows.append(_row(request, outcomes, data, metric, pair, (c, corrected[pair])))
    caption = f"PRER's own rows, by the plain and by the corrected paired t-test{over(outcomes)}"
    note = "For each metric and data set, p is adjusted by Holm's method over these comparisons."
    return Table("significance-own", caption, COLUMNS, rows, [note])


COLUMNS = ["", "compared", "difference"]
COLUMNS += [f"{part}, {test}" for test in ("plain", "corrected") for part in ("from", "to", "p Holm", "verdict")]


def _overlaps(outcomes: Outcomes) -> tuple[float, float]:
    """What tells the plain test from the corrected one."""
    return 0.0, overlap_of(outcomes)


def _row(
    request: Request, outcomes: Outcomes, data: str, metric: str, pair: tuple[str, str], tests: Sequence[Comparison]
) -> list[Cell]:
    """A difference, and for each test its 95 % interval, the adjusted p and the verdict."""
    one, other = (title_of(method, outcomes[data, method]) for method in pair)
    row: list[Cell] = [f"{request.title(data)} {METRICS[metric]}", f"{one} - {other}"]
    row += [Value(tests[0].difference, signed=True)]
    for c in tests:  # three digits, or an end of the interval close to zero would be shown as zero
        row += [Value(c.low, digits=3, signed=True), Value(c.high, digits=3, signed=True), Probability(c.adjusted)]
        row += [c.verdict]
    return row


def comparisons(
    outcomes: Outcomes, data: str, metric: str, overlap: float = 0.0, own: str = "prer"
) -> dict[str, Comparison]:
    """A row of PRER against each method that is not PRER's own, by method; those that have two seeds in common."""
    others = {m: outcome for (name, m), outcome in outcomes.items() if name == data and m not in OWN}
    prer = outcomes.get((data, own))
    return compared({method: paired(prer, outcome, metric) for method, outcome in others.items()}, overlap)


def among(outcomes: Outcomes, data: str, metric: str, overlap: float = 0.0) -> dict[tuple[str, str], Comparison]:
    """PRER's own rows against each other, by pair."""
    runs = {method: outcomes.get((data, method)) for method in OWN}
    return compared({(one, other): paired(runs[one], runs[other], metric) for one, other in AMONG}, overlap)
