"""Which differences between PRER and the other methods are significant: Table 1 again, with more seeds."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from prer.paper.plan import Key, Request, data_of, those
from prer.paper.published import TITLES
from prer.paper.table1 import METRICS, Outcomes, cell_of, failures, spread, values_of
from prer.paper.tables import Cell, Probability, Table, Value
from prer.runs.significance import LEVEL, MARGIN, Comparison, compared

WORDS = (
    f"Better: the corrected p is below {LEVEL} and the difference is positive. Not worse: the 95 % interval lies above "
    f"-{MARGIN} points, even if a small negative difference is significant (see p). Worse: the interval does not lie "
    f"above it, the corrected p is below {LEVEL}, and the difference is negative. Otherwise: not decided"
)
RULE = (
    "Paired t-tests over seeds. For each metric and data set, p is corrected by Holm's method over all methods that "
    f"PRER is compared with. {WORDS}."
)


def tables(request: Request, outcomes: Outcomes, asked: Collection[Key] = ()) -> list[Table]:
    """The values of every method, and PRER against each of the others; corrected over all that have run."""
    shown = those(outcomes, asked)
    made = [_values(request, shown, data_of(shown)), _compared(request, outcomes, shown)]
    return [table for table in made if table.rows]


def _values(request: Request, outcomes: Outcomes, data: Sequence[str]) -> Table:
    columns = ["", *(f"{request.title(name)} {label}" for name in data for label in METRICS.values())]
    methods = list(dict.fromkeys(method for _, method in outcomes))
    rows: list[list[Cell]] = [
        [TITLES[m], *(cell_of(outcomes.get((name, m)), metric) for name in data for metric in METRICS)] for m in methods
    ]
    caption = f"BWT and Accuracy with more seeds, {spread(outcomes)}"
    return Table("significance-values", caption, columns, rows, [*request.remarks(data), *failures(request, outcomes)])


def _compared(request: Request, outcomes: Outcomes, shown: Collection[Key]) -> Table:
    """Which differences between PRER and the others are significant."""
    rows: list[list[Cell]] = []
    for name in data_of(shown):
        for metric, label in METRICS.items():
            for method, c in comparisons(outcomes, name, metric).items():
                if (name, method) not in shown:
                    continue
                # Three digits, or an end of the interval close to zero would be shown as zero.
                interval = [Value(v, digits=d, signed=True) for v, d in ((c.difference, 2), (c.low, 3), (c.high, 3))]
                ps = [Probability(p) for p in (c.p, c.adjusted)]
                rows.append([f"{request.title(name)} {label}", f"PRER - {TITLES[method]}", *interval, *ps, c.verdict])
    columns = ["", "compared", "difference", "from", "to", "p", "p, Holm", "PRER is"]
    return Table("significance", "PRER against the other methods, paired over seeds", columns, rows, [RULE])


def comparisons(outcomes: Outcomes, data: str, metric: str) -> dict[str, Comparison]:
    """PRER against each other method on a data set, by method; only those that have run, with two seeds or more."""
    prer = values_of(outcomes.get((data, "prer")), metric)
    others = {m: o for (name, m), o in outcomes.items() if name == data and m != "prer"}
    return compared({method: (prer, values_of(outcome, metric)) for method, outcome in others.items()})
