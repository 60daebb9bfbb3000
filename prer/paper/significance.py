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
    overlap_of,
    spread,
    titles_of,
    values_of,
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
    "Both tests are paired t-tests over seeds. With s the standard deviation of the differences of n seeds, the "
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
    f"{TESTS}. For each metric and data set, p is adjusted by Holm's method over all methods that PRER is compared "
    f"with. {WORDS}."
)


def tables(request: Request, outcomes: Outcomes, asked: Collection[Key] = ()) -> list[Table]:
    """The values of every method, and PRER against each of the others; corrected over all that have run."""
    outcomes = with_rows(outcomes)
    shown = those(outcomes, asked)
    made = [_values(request, shown, data_of(shown)), _compared(request, outcomes, shown)]
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


def _compared(request: Request, outcomes: Outcomes, shown: Collection[Key]) -> Table:
    """Which differences between PRER, with the anchor and without it, and the others are significant."""
    rows: list[list[Cell]] = []
    titles = titles_of(outcomes)
    for own, name, metric in product(("prer", PLAIN), data_of(shown), METRICS):
        plain, corrected = (comparisons(outcomes, name, metric, by, own) for by in (0.0, overlap_of(outcomes)))
        for method, c in plain.items():
            if (name, method) in shown:
                compared = f"{titles[own]} - {titles[method]}", Value(c.difference, signed=True)
                tested = [cell for test in (c, corrected[method]) for cell in _tested(test)]
                rows.append([f"{request.title(name)} {METRICS[metric]}", *compared, *tested])
    columns = ["", "compared", "difference"]
    columns += [f"{part}, {test}" for test in ("plain", "corrected") for part in ("from", "to", "p Holm", "verdict")]
    caption = "PRER against the other methods, by the plain and by the corrected paired t-test over seeds"
    return Table("significance", caption, columns, rows, [RULE, f"{MEANING}."])


def _tested(c: Comparison) -> list[Cell]:
    """The 95 % interval, the adjusted p and the verdict."""
    # Three digits, or an end of the interval close to zero would be shown as zero.
    return [*(Value(end, digits=3, signed=True) for end in (c.low, c.high)), Probability(c.adjusted), c.verdict]


def comparisons(
    outcomes: Outcomes, data: str, metric: str, overlap: float = 0.0, own: str = "prer"
) -> dict[str, Comparison]:
    """PRER against each other method on a data set, by method; only those that have run, with two seeds or more."""
    prer = values_of(outcomes.get((data, own)), metric)
    others = {m: o for (name, m), o in outcomes.items() if name == data and m != own}
    return compared({method: (prer, values_of(outcome, metric)) for method, outcome in others.items()}, overlap)
