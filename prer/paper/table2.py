"""Table 2: what each method keeps of the past, and how long it trains, for one seed."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace

import torch

from prer.data.catalogue import CATALOGUE
from prer.learners.base import Learner
from prer.learners.prer import PRER
from prer.nn.stacked import floats, nbytes
from prer.paper.plan import Key, Request, data_of, those
from prer.paper.published import FORMULAS, TABLE2, TASKS
from prer.paper.table1 import Outcomes, failures, missing, result_of, titles_of, with_rows
from prer.paper.tables import Cell, Table, Value
from prer.runs.experiment import Experiment
from prer.runs.folder import RunFolder
from prer.sweeps.engines.base import Outcome

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
    learner, c_m = of_five_tasks(experiment, shape), experiment.stream.classes_per_task
    found = {"M": TASKS, "S": getattr(learner, "size", 0), "c_m": c_m, "IM": math.prod(shape)}
    found |= {"E": learner.dimension_, "N": floats(learner.encoder_), "NF": 0}
    if isinstance(learner, PRER):
        found["NF"] = floats(learner.decoder_, learner.density_)
    return found


def of_five_tasks(experiment: Experiment, shape: Sequence[int]) -> Learner:
    """The learner of an experiment with its networks; PRER's density knows the classes of five tasks."""
    learner = replace(experiment.learner)
    learner.start(shape, (0,))
    if isinstance(learner, PRER):
        learner.density_.add(torch.ones(TASKS * experiment.stream.classes_per_task), learner.address_)
    return learner


FLOAT, INTEGER, PIXEL = 4, 8, 1  # bytes
INTEGERS = {"lwf": 1, "gem": 1}  # that a method stores with each sample: its head, or its label


def stored_bytes(outcome: Outcome, shape: Sequence[int]) -> int:
    """Bytes on disk of the memory after the last task; computed if the version of the run did not count them."""
    result, learner = outcome.folder.result or {}, outcome.experiment.learner
    if (counted := (result.get("memory_bytes") or [None])[-1]) is not None:
        return counted
    numbers, samples = (result[key][-1] for key in ("memory_floats", "memory_samples"))
    if isinstance(learner, PRER):
        of_prer = of_five_tasks(outcome.experiment, shape).memory().values()
        return nbytes(*of_prer) + FLOAT * (numbers - floats(*of_prer))
    pixels, integers = samples * math.prod(shape), samples * INTEGERS.get(learner.name, 0)
    return FLOAT * (numbers - pixels - integers) + INTEGER * integers + PIXEL * pixels


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
    outcomes = those(with_rows(outcomes), asked)
    data, methods = data_of(outcomes), titles_of(outcomes)
    columns = ["", "formula"]
    for title in map(request.title, data):
        columns += [f"{title} floats, {whose}" for whose in ("ours", "formula", "the paper")]
        columns += [f"{title} samples, ours", f"{title} s, ours", f"{title} min, the paper"]
    rows = [
        [title, FORMULAS.get(m, "-"), *(c for name in data for c in _cells(outcomes, name, m))]
        for m, title in methods.items()
    ]
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
    made = [Table("table2", caption, columns, rows, notes), _in_bytes(request, outcomes, data, methods)]
    made += [_beside(request, outcomes, data, methods)]
    return [table for table in made if table.rows]


def _in_bytes(request: Request, outcomes: Outcomes, data: Sequence[str], methods: Mapping[str, str]) -> Table:
    """What is kept in bytes, and how many samples of each task would fit into PRER's bytes."""
    columns = [""]
    for title in map(request.title, data):
        columns += [f"{title} kB", f"{title}, times PRER's", f"{title}, samples of a task in PRER's kB"]
    rows: list[list[Cell]] = []
    for method, title in methods.items():
        row: list[Cell] = [title]
        for name in data:
            row += _sizes(outcomes.get((name, method)), outcomes.get((name, "prer")), CATALOGUE[name].shape)
        rows.append(row)
    notes = [
        "As the memory is stored: a pixel has one byte, an integer eight, any other number four. The runs recorded "
        "before bytes were counted have them from their numbers of scalars and samples.",
        "The last columns say how many samples of each task would take as many bytes as PRER's memory. We have not "
        "run the methods with so few samples on these data; `prer reproduce class` compares methods at equal bytes.",
    ]
    return Table("table2-bytes", "Table 2 in bytes, after the last task", columns, rows, notes)


def _sizes(outcome: Outcome | None, prer: Outcome | None, shape: Sequence[int]) -> list[Cell]:
    """The kilobytes of a run, how many times PRER's, and the samples of a task that fit into PRER's."""
    result = result_of(outcome)
    if outcome is None or result is None:
        return [missing(outcome), "-", "-"]
    size, samples = stored_bytes(outcome, shape), result["memory_samples"][-1]
    cells: list[Cell] = [Value(size / 1000, digits=0), "-", "-"]
    if prer is not None and result_of(prer) and prer is not outcome:
        of_prer = stored_bytes(prer, shape)
        cells[1] = Value(size / of_prer)
        cells[2] = Value(of_prer * samples // (size * TASKS), digits=0) if samples else "-"
    return cells


def _beside(request: Request, outcomes: Outcomes, data: Sequence[str], methods: Mapping[str, str]) -> Table:
    """Ratios between our costs and the paper's, for the methods that have run on the paper's data."""
    rows: list[list[Cell]] = []
    for name in data:
        for method, title in methods.items():
            result, cost = result_of(outcomes.get((name, method))), TABLE2.get(name, {}).get(method)
            if result is not None and cost is not None:
                kept = "-" if cost.kilofloats is None else Value(result["memory_floats"][-1] / (1000 * cost.kilofloats))
                faster = Value(60 * cost.minutes / result["seconds"]["total"], digits=0)
                rows.append([f"{title} on {request.title(name)}", kept, faster])
    columns = ["", "floats, ours / paper", "time, paper / ours"]
    return Table("table2-ratios", "Table 2, ours and the paper's", columns, rows)


def _cells(outcomes: Outcomes, data: str, method: str) -> list[Cell]:
    outcome = outcomes.get((data, method))
    if outcome is None:
        return ["-"] * 6
    result, cost = result_of(outcome), TABLE2.get(data, {}).get(method)
    formula: Cell = "-"
    if method in KEPT:
        formula = Value(KEPT[method](symbols(outcome.experiment, CATALOGUE[data].shape)), digits=0)
    kept = "-" if cost is None or cost.kilofloats is None else Value(1000 * cost.kilofloats, digits=0)
    minutes = "-" if cost is None else Value(cost.minutes, digits=0)
    if result is None:
        return [missing(outcome), formula, kept, "-", "-", minutes]
    ours = [Value(result[key][-1], digits=0) for key in ("memory_floats", "memory_samples")]
    return [ours[0], formula, kept, ours[1], Value(result["seconds"]["total"], digits=1), minutes]
