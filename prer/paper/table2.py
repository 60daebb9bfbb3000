"""Table 2: what each method keeps of the past, and how long it trains, for one seed."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace

import torch

from prer.data.catalogue import CATALOGUE
from prer.learners.prer import PRER
from prer.nn.stacked import floats
from prer.paper.plan import Key, Request, data_of, those
from prer.paper.published import FORMULAS, TABLE2, TASKS, TITLES
from prer.paper.table1 import Outcomes, failures, missing, result_of
from prer.paper.tables import Cell, Table, Value
from prer.runs.experiment import Experiment
from prer.runs.folder import RunFolder

Symbols = dict[str, int]
KEPT: dict[str, Callable[[Symbols], int]] = {  # the formulas of the paper's first column
    "naive": lambda s: 0,
    "lwf": lambda s: s["M"] * s["S"] * (s["c_m"] + s["IM"]),
    "ewc": lambda s: s["M"] * s["N"],
    "gem": lambda s: s["M"] * s["S"] * s["IM"],
    "er": lambda s: s["M"] * s["S"] * (s["E"] + s["IM"]),
    "prer": lambda s: s["NF"] + s["N"],
}


def symbols(experiment: Experiment, shape: Sequence[int]) -> Symbols:
    """The paper's symbols for an experiment on images of this shape, counted from live networks."""
    learner, c_m = replace(experiment.learner), experiment.stream.classes_per_task
    learner.start(shape, (0,))
    found = {"M": TASKS, "S": getattr(learner, "size", 0), "c_m": c_m, "IM": math.prod(shape)}
    found |= {"E": learner.dimension_, "N": floats(learner.encoder_), "NF": 0}
    if isinstance(learner, PRER):
        learner.density_.add(torch.ones(TASKS * c_m), learner.address_)
        found["NF"] = floats(learner.decoder_, learner.density_)
    return found


def hardware(folder: RunFolder) -> str:
    """The hardware that a run used."""
    about, result = folder.environment, folder.result or {}
    if result.get("device") == "cuda" and about.get("gpu"):
        return f"one {about['gpu']}"
    threads = about.get("threads")
    count = "" if threads is None else f", {threads} thread{'' if threads == 1 else 's'}"
    return f"CPU ({about.get('processor') or 'unknown'}{count})"


def tables(request: Request, outcomes: Outcomes, asked: Collection[Key] = ()) -> list[Table]:
    """The table, and the ratios between ours and the paper's."""
    outcomes = those(outcomes, asked)
    data = data_of(outcomes)
    methods = list(dict.fromkeys(method for _, method in outcomes))
    columns = ["", "formula"]
    for title in map(request.title, data):
        columns += [f"{title} floats, {whose}" for whose in ("ours", "formula", "the paper")]
        columns += [f"{title} samples, ours", f"{title} s, ours", f"{title} min, the paper"]
    rows = [[TITLES[m], FORMULAS[m], *(c for name in data for c in _cells(outcomes, name, m))] for m in methods]
    finished = [outcome.folder for outcome in outcomes.values() if result_of(outcome)]
    machines = "; ".join(dict.fromkeys(map(hardware, finished))) or "nothing yet"
    notes = [
        "Our floats are all scalars in memory after the last task, without encoder and heads. The formulas are the "
        "paper's: M tasks, S stored samples and c_m classes per task, images of IM values, embeddings of E values, N "
        "parameters of the encoder, NF parameters of flow and decoder, all with the values of our experiment.",
        f"Seconds are the time of a whole run with one seed, including tests, with one run at a time, on {machines}.",
    ]
    caption = "Table 2: scalars stored after the last task, and training time"
    notes += [*request.remarks(data), *failures(request, outcomes)]
    made = [Table("table2", caption, columns, rows, notes), _beside(request, outcomes, data, methods)]
    return [table for table in made if table.rows]


def _beside(request: Request, outcomes: Outcomes, data: Sequence[str], methods: Sequence[str]) -> Table:
    """Ratios between our costs and the paper's, for the methods that have run on the paper's data."""
    rows: list[list[Cell]] = []
    for name in data:
        for method in methods:
            result, cost = result_of(outcomes.get((name, method))), TABLE2.get(name, {}).get(method)
            if result is not None and cost is not None:
                kept = "-" if cost.kilofloats is None else Value(result["memory_floats"][-1] / (1000 * cost.kilofloats))
                faster = Value(60 * cost.minutes / result["seconds"]["total"], digits=0)
                rows.append([f"{TITLES[method]} on {request.title(name)}", kept, faster])
    columns = ["", "floats, ours / paper", "time, paper / ours"]
    return Table("table2-ratios", "Table 2, ours and the paper's", columns, rows)


def _cells(outcomes: Outcomes, data: str, method: str) -> list[Cell]:
    outcome = outcomes.get((data, method))
    if outcome is None:
        return ["-"] * 6
    result, cost = result_of(outcome), TABLE2.get(data, {}).get(method)
    formula = KEPT[method](symbols(outcome.experiment, CATALOGUE[data].shape))
    kept = "-" if cost is None or cost.kilofloats is None else Value(1000 * cost.kilofloats, digits=0)
    minutes = "-" if cost is None else Value(cost.minutes, digits=0)
    if result is None:
        return [missing(outcome), Value(formula, digits=0), kept, "-", "-", minutes]
    ours = [Value(result[key][-1], digits=0) for key in ("memory_floats", "memory_samples")]
    return [ours[0], Value(formula, digits=0), kept, ours[1], Value(result["seconds"]["total"], digits=1), minutes]
