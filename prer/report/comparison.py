"""Comparison of several runs: one row for each, paired tests, and accuracy against cost."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from prer.report.formatting import is_number, metric, size, with_spread
from prer.report.run import Run
from prer.runs.significance import Comparison, compared
from prer.text import clock, excerpt

COLUMNS = (  # key in result.json, name on the page
    ("accuracy", "Accuracy"),
    ("bwt", "BWT"),
    ("final_accuracy", "final accuracy"),
    ("average_incremental_accuracy", "average incremental accuracy"),
    ("forgetting_best", "forgetting"),
    ("forward_transfer", "forward transfer"),
)


CLASS_FIRST = ("final_accuracy", "average_incremental_accuracy")


@dataclass(frozen=True)
class Cell:
    """One cell of a table: its text and its sort key."""

    shown: str
    value: float | str | None


def columns(runs: Sequence[Run]) -> dict[str, str]:
    """The metrics that at least one of the runs has; in the scenario "class" its main metrics come first."""
    by_class = any(run.scenario == "class" for run in runs)
    found = {key: name for key, name in COLUMNS if any(metric(run.result, key) for run in runs)}
    if not by_class:
        return {key: name for key, name in found.items() if key != CLASS_FIRST[1]}
    return {key: found[key] for key in (*CLASS_FIRST, *found) if key in found}


def row(run: Run, keys: Iterable[str]) -> list[Cell]:
    """The row of a run in the table of runs, with these metrics."""
    about = (run.about("learner"), run.about("stream"), run.scenario, run.state)
    learner, *words = (Cell(word, word) for word in about)
    metrics = [metric(run.result, key) for key in keys]
    figures = [Cell(with_spread(found), found["mean"] if found else None) for found in metrics]
    kept = [_count(_last(run, "memory_samples")), _count(_last(run, "memory_floats"))]
    kept.append(Cell(size(_last(run, "memory_bytes")), _last(run, "memory_bytes")))
    return [learner, *figures, *kept, _time(seconds_of(run)), Cell(str(len(run.seeds)), len(run.seeds)), *words]


def _last(run: Run, key: str) -> float | None:
    values = run.result.get(key) if run.result else None
    return values[-1] if isinstance(values, list) and values and is_number(values[-1]) else None


def seconds_of(run: Run) -> float | None:
    """Total seconds of the run; None without a result."""
    return run.result["seconds"]["total"] if run.result else None


def _count(value: float | None) -> Cell:
    return Cell("–" if value is None else f"{value:,.0f}", value)


def _time(value: float | None) -> Cell:
    return Cell("–" if value is None else clock(value), value)


@dataclass(frozen=True)
class Tests:
    """Paired tests of the runs on one stream against a reference run."""

    reference: str
    stream: str
    metric: str
    rows: list[
        tuple[str, int, Comparison | None]
    ]  # run, number of common seeds, the comparison if there are two or more


def tests(runs: Sequence[Run]) -> list[Tests]:
    """For every stream with several runs: each run against PRER's if there is exactly one, else the first."""
    streams: dict[str, list[Run]] = {}
    for run in runs:
        if run.result and metric(run.result, run.main_metric):
            streams.setdefault(_stream(run), []).append(run)
    return [_against(alike) for alike in streams.values() if len(alike) > 1]


def _stream(run: Run) -> str:
    """A key that two runs share if they have seen the same samples in the same order."""
    from prer.runs.folder import RunFolder

    return json.dumps([run.experiment.get("stream"), RunFolder(run.path).data_sha256], sort_keys=True, default=str)


def _against(runs: Sequence[Run]) -> Tests:
    of_prer = [run for run in runs if run.about("learner") == "prer"]
    reference = of_prer[0] if len(of_prer) == 1 else runs[0]
    others = [run for run in runs if run is not reference]
    pairs = [_paired(run, reference) for run in others]
    decided = compared({i: pair for i, pair in enumerate(pairs) if len(pair[0]) > 1})
    rows = [(run.name, len(pairs[i][0]), decided.get(i)) for i, run in enumerate(others)]
    return Tests(reference.name, reference.about("stream"), main_name([reference]), rows)


def _paired(run: Run, reference: Run) -> tuple[list[float], list[float]]:
    """The main metric of both over their common seeds."""
    first, second = _by_seed(run), _by_seed(reference)
    common = [seed for seed in first if seed in second]
    return [first[seed] for seed in common], [second[seed] for seed in common]


def _by_seed(run: Run) -> dict[str, float]:
    found = metric(run.result, run.main_metric)
    return dict(zip(run.seeds, found["values"] if found else [], strict=False))


def main_name(runs: Sequence[Run]) -> str:
    """The name of the metric that runs are compared by: the final accuracy if one has the scenario "class"."""
    return "Final accuracy" if any(run.scenario == "class" for run in runs) else "Accuracy"


def costs(runs: Sequence[Run]) -> dict[str, tuple[list[float], list[float], list[str]]]:
    """Costs, accuracies and learners of the runs for which they are known, by the name of the cost."""
    found: dict[str, tuple[list[float], list[float], list[str]]] = {}
    final = main_name(runs) == "Final accuracy"
    key, kept, stored = (
        ("final_accuracy", "memory_bytes", "stored bytes") if final else ("accuracy", "memory_floats", "stored floats")
    )
    for name, of in ((stored, lambda run: _last(run, kept)), ("seconds", seconds_of)):
        points: list[tuple[Any, float, str]] = [
            (cost, accuracy["mean"], excerpt(run.about("learner"), 60))
            for run in runs
            if (accuracy := metric(run.result, key)) and (cost := of(run)) is not None and math.isfinite(cost)
        ]
        found[name] = tuple(map(list, zip(*points, strict=True))) if points else ([], [], [])  # type: ignore[assignment]
    return found
