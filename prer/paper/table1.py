"""Table 1: BWT and Accuracy of every method on every data set, ours beside the paper's."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np

from prer.paper import METHODS
from prer.paper.plan import EXTRA, NOT_RUN, PLAIN, Key, Request, data_of, those
from prer.paper.published import TITLES, Figure, implied_diagonal, published, welch
from prer.paper.tables import Cell, Table, Value
from prer.runs import metrics as evaluation
from prer.runs.metrics import diagonal
from prer.runs.significance import LEVEL
from prer.sweeps.engines.base import Outcome

METRICS = {"bwt": "BWT", "accuracy": "Accuracy"}
Outcomes = Mapping[Key, Outcome]
VERDICT = (
    "Welch's t-test compares each number with the paper's: *above* or *below* means a significant difference (p < "
    f"{LEVEL}), *no difference found* means none. *Other data* means that we had only a part of the paper's data "
    "set. The test takes the seeds as independent, although they split the same images."
)
CHOSEN = "The settings of every method were chosen by Accuracy on validation data, not by BWT."
OF_TEST = "Welch's t-test"  # of a row with verdicts
MOST = 40  # characters of an error in a cell; a note has all of it


def tables(request: Request, outcomes: Outcomes, asked: Collection[Key] = ()) -> list[Table]:
    """The table, and a check that its numbers are consistent."""
    outcomes = those(with_rows(outcomes), asked)
    data, there = data_of(outcomes), dict.fromkeys(method for _, method in outcomes)
    methods = sorted(there, key=lambda method: [*TITLES].index(method) if method in TITLES else len(TITLES))
    return [_main(request, outcomes, data, methods), _check(request, outcomes, data, methods)]


def with_rows(outcomes: Outcomes) -> Outcomes:
    """Without the methods that are not in the paper and have not run."""
    started = {method for (_, method), outcome in outcomes.items() if outcome.error != NOT_RUN}
    return {key: outcome for key, outcome in outcomes.items() if key[1] in {*METHODS, EXTRA, *started}}


def title_of(method: str, outcome: Outcome | None) -> str:
    """The title of a method; that of PRER with the paper's labels says whether the anchor, which is ours, is used."""
    learner = None if outcome is None else outcome.experiment.learner
    anchored = getattr(learner, "anchor", 0) and getattr(learner, "labels", "") != "distilled"
    return TITLES.get(method, method) + (" + anchor" if anchored else "")


def titles_of(outcomes: Outcomes) -> dict[str, str]:
    """The titles of all methods of a table."""
    return {method: title_of(method, outcome) for (_, method), outcome in outcomes.items()}


def spread(outcomes: Outcomes) -> str:
    """What the numbers of a table are, and over how many seeds."""
    return f"mean ± standard deviation (n - 1){over(outcomes)}"


def over(outcomes: Outcomes) -> str:
    """How many seeds the runs have, as in " over 5/20 seeds"; empty if no run has a result."""
    seeds = {len(result["seeds"]) for result in map(result_of, outcomes.values()) if result}
    return f" over {'/'.join(map(str, sorted(seeds)))} seed{'' if seeds == {1} else 's'}" if seeds else ""


def result_of(outcome: Outcome | None) -> dict[str, Any] | None:
    """The result of a run; None if it has none."""
    return outcome.folder.result if outcome is not None and not outcome.error else None


def cell_of(outcome: Outcome | None, metric: str) -> Cell:
    """The cell for a metric of a run, or the reason why there is none."""
    result = result_of(outcome)
    if result is None or result[metric]["mean"] is None:
        return missing(outcome)
    return Value(result[metric]["mean"], result[metric]["std"])


def missing(outcome: Outcome | None) -> str:
    """The cell for a run without a result."""
    if outcome is None:
        return "-"
    if outcome.error == NOT_RUN:
        return outcome.error
    return f"failed: {outcome.error[:MOST]}{'...' if len(outcome.error) > MOST else ''}"


def failures(request: Request, outcomes: Outcomes) -> list[str]:
    """A note for each error, with the full message and the runs that failed."""
    runs: dict[str, list[str]] = {}
    for (data, method), outcome in outcomes.items():
        if outcome.error not in ("", NOT_RUN):
            runs.setdefault(outcome.error, []).append(f"{title_of(method, outcome)} on {request.title(data)}")
    return [f"Failed: {'; '.join(names)}: {error}" for error, names in runs.items()]


def _main(request: Request, outcomes: Outcomes, data: Sequence[str], methods: Sequence[str]) -> Table:
    columns = ["", *(f"{request.title(name)} {label}" for name in data for label in METRICS.values())]
    rows: list[list[Cell]] = []
    titles = titles_of(outcomes)
    for method in methods:
        of_method = [
            _cells(request, outcomes.get((name, method)), name, method, key) for name in data for key in METRICS
        ]
        ours, theirs, apart, verdict = (list(column) for column in zip(*of_method, strict=True))
        title, in_the_paper = titles[method], method in METHODS
        paper = [[f"{TITLES[method]}, the paper", *theirs]] if in_the_paper else []
        if method not in (*METHODS, PLAIN, EXTRA):
            rows.append([title, *ours])
            continue
        rows += [[title, *ours], *paper, [f"{title}, difference", *apart], [f"{title}, {OF_TEST}", *verdict]]
    caption = f"Table 1: BWT and Accuracy in points and per cent, {spread(outcomes)}"
    impossible = [m for m in methods for name in data if _impossible(name, m) and m in METHODS]
    notes = [VERDICT, *(["* BWT and Accuracy contradict each other; see the diagonal."] if impossible else [])]
    return Table(
        "table1", caption, columns, rows, [*notes, CHOSEN, *request.remarks(data), *failures(request, outcomes)]
    )


def _cells(
    request: Request, outcome: Outcome | None, data: str, method: str, metric: str
) -> tuple[Cell, Cell, Cell, Cell]:
    """Ours, the paper's, the difference, and whether it is significant."""
    figures = published(data, method)
    ours = cell_of(outcome, metric)
    if figures is None or outcome is None:
        return ours, "-", "-", "-"
    figure = getattr(figures, metric)
    theirs = Value(figure.mean, figure.std, mark="*" if _impossible(data, method) else "")
    if not isinstance(ours, Value):
        return ours, theirs, "-", "-"
    whole = request.title(data) == TITLES[data]
    verdict = _verdict(ours, len((outcome.folder.result or {})["seeds"]), figure) if whole else "other data"
    return ours, theirs, Value(ours.mean - figure.mean, signed=True), verdict


def _verdict(ours: Value, n: int, figure: Figure) -> str:
    """Whether ours, over n seeds, is significantly above or below the paper's."""
    if ours.std is None:
        return "-"
    if welch(Figure(ours.mean, ours.std), n, figure) >= LEVEL:
        return "no difference found"
    return "above" if ours.mean > figure.mean else "below"


def _impossible(data: str, method: str) -> bool:
    figures = published(data, method)
    return figures is not None and round(implied_diagonal(figures.bwt.mean, figures.accuracy.mean), 6) > 100


def _check(request: Request, outcomes: Outcomes, data: Sequence[str], methods: Sequence[str]) -> Table:
    columns = ["", *(f"{request.title(name)} {whose}" for name in data for whose in ("ours", "the paper"))]
    titles = titles_of(outcomes)
    rows = [[titles[m], *(c for name in data for c in _diagonals(outcomes.get((name, m)), name, m))] for m in methods]
    caption = "The diagonal that BWT and Accuracy imply: D = Accuracy - (M - 1) / (M + 1) BWT for M tasks, in per cent"
    notes = ["* More than 100 %: no classifier has this pair of BWT and Accuracy."]
    marked = any(isinstance(cell, Value) and cell.mark for row in rows for cell in row)
    return Table("table1-diagonal", caption, columns, rows, notes if marked else [])


def _diagonals(outcome: Outcome | None, data: str, method: str) -> tuple[Cell, Cell]:
    result, figures = result_of(outcome), published(data, method)
    ours: Cell = missing(outcome)
    if result is not None:
        of_seeds = evaluation.spread([diagonal(np.array(matrix, float)) for matrix in result["matrix"]])
        ours = Value(of_seeds["mean"], of_seeds["std"])
    if figures is None or outcome is None:
        return ours, "-"
    theirs = implied_diagonal(figures.bwt.mean, figures.accuracy.mean)
    return ours, Value(theirs, mark="*" if _impossible(data, method) else "")


def overlap_of(outcomes: Outcomes) -> float:
    """Size of the test part over that of the training part, if each seed splits the data anew; 0 if none does."""
    share = max((outcome.experiment.stream.resplit for outcome in outcomes.values()), default=0.0)
    return share / (1 - share)


def values_of(outcome: Outcome | None, metric: str) -> list[float] | None:
    """A metric of each seed; None with fewer than two seeds, or if one has no value."""
    result = result_of(outcome)
    values = result[metric]["values"] if result else []
    return None if len(values) < 2 or None in values else values


def paired(first: Outcome | None, second: Outcome | None, metric: str) -> tuple[list[float], list[float]]:
    """A metric of the seeds that both runs have, in the same order; empty with fewer than two such seeds."""
    of_first, of_second = _by_seed(first, metric), _by_seed(second, metric)
    common = [seed for seed in of_first if seed in of_second]
    return ([of_first[seed] for seed in common], [of_second[seed] for seed in common]) if len(common) > 1 else ([], [])


def _by_seed(outcome: Outcome | None, metric: str) -> dict[int, float]:
    result, values = result_of(outcome), values_of(outcome, metric)
    return dict(zip(result["seeds"], values, strict=True)) if result and values else {}
