"""Features of pretrained networks, nobody tells the task: PRER beside closed forms and a head on all data, on the same.

The paper has no such experiment. Texts are read from a CSV with the columns text, label and split (train, test, other).
"""

from __future__ import annotations

import tomllib
from collections.abc import Collection, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from prer.errors import InputError
from prer.paper.plan import FAST, Key, Request, data_of, those
from prer.paper.table1 import Outcomes, cell_of, failures, result_of, spread
from prer.paper.tables import Cell, Table, Value
from prer.runs.experiment import Experiment


class Source(NamedTuple):
    """A data set, and the network that turns it into vectors."""

    features: str
    classes_per_task: int
    published: str = ""  # results of others


TEXT = {"text": "text", "label": "label", "part": "split"}  # columns of the tables of texts
BART = "Published with a frozen BART (Momeni, Mazumder and Liu 2025): "
SOURCES = {
    "clinc150": Source("minilm", 10, f"{BART}nearest mean 83.6, LDA 93.7, KLDA 95.9, joint 95.3."),
    "banking77": Source("minilm", 11, f"{BART}nearest mean 71.1, LDA 89.1, KLDA 92.2, joint 91.4."),
    "cifar10": Source("efficientnet-lite0", 2),
    "cifar100": Source("efficientnet-lite0", 10),
}
ON_DIGITS = Source("efficientnet-lite0", 2)
TITLES = {
    "ncm": "NCM",
    "slda": "SLDA",
    "ranpac-small": "RanPAC, fewer random features",
    "ranpac": "RanPAC",
    "prer-small": "PRER, one Gaussian for each class",
    "prer": "PRER",
    "joint": "Joint, a head on all data",
}
METHODS: dict[str, dict[str, Any]] = {
    "ncm": {},
    "slda": {},
    "ranpac-small": {"size": 1000},
    "ranpac": {},
    "prer-small": {"density": {"name": "mixture", "components": 1}},
    "prer": {},
    "joint": {"encoder": "identity", "embedding": 65_536, "restart": True},  # all numbers of the features
}

NOT_TESTED = "These are differences of means, without a test."
MORE = 1.1  # a closed form with so many times PRER's bytes still counts as one that keeps no more
CLOSED = ("ncm", "slda", "ranpac-small", "ranpac")


def found_settings() -> dict[str, dict[str, dict[str, Any]]]:
    """Settings of PRER's rivals by data set, which `benchmarks/search_features.py` found on validation data."""
    return tomllib.loads((Path(__file__).parents[1] / "presets" / "features.toml").read_text("utf-8"))


def experiments(request: Request) -> dict[Key, Experiment]:
    """Every method on every data set that can be read; a set of texts must be given by its path."""
    given = [name for name in (FAST,) if request.fast] or [n for n in SOURCES if readable(request, n)]
    asked = [name for name in request.only if name in (*SOURCES, FAST)]
    unread = [name for name in asked if name not in given and name != FAST]
    if unread:
        raise InputError(_path_of(unread[0]))
    methods = [name for name in METHODS if not set(request.only) & set(METHODS) or name in request.only]
    return {(d, m): of_method(request, d, m) for d in given if not asked or d in asked for m in methods}


def _path_of(data: str) -> str:
    """Why a set of texts is not read, and what to do."""
    return f"{data} is not downloaded; give its CSV with the columns text, label and split: --data {data}=FILE"


def readable(request: Request, data: str) -> bool:
    """Whether a data set is in the catalogue, or its path is given."""
    return data in request.paths or SOURCES[data].features != "minilm"


def of_method(request: Request, data: str, method: str) -> Experiment:
    """The experiment of a learner over the features of a data set."""
    source = ON_DIGITS if request.fast else SOURCES[data]
    name = method.partition("-")[0]
    stream: dict[str, Any] = {"features": source.features, "classes_per_task": source.classes_per_task}
    stream |= {"scenario": "class"} | (TEXT if source.features == "minilm" else {})
    learner = {"name": name} | found_settings().get(data, {}).get(name, {}) | METHODS[method]
    return request.parsed(data, {"stream": stream, "learner": learner}, f"{data}-{method}-features", like=False)


def tables(request: Request, outcomes: Outcomes, asked: Collection[Key] = ()) -> list[Table]:
    """A table for each data set; the last one says which others need a path."""
    shown = those(outcomes, asked)
    found = [_of_data(request, shown, data) for data in data_of(shown)]
    absent = [name for name in SOURCES if not (readable(request, name) or name in data_of(shown))]
    if found and absent and not (request.fast or request.only):
        notes = [*found[-1].notes, f"Not run: {', '.join(absent)}. {_path_of(absent[0])}"]
        found[-1] = replace(found[-1], notes=notes)
    return found


def _of_data(request: Request, outcomes: Outcomes, data: str) -> Table:
    own = {key: outcome for key, outcome in outcomes.items() if key[0] == data}
    results = {method: found for (_, method), outcome in own.items() if (found := result_of(outcome))}
    rows: list[list[Cell]] = []
    for (_, method), outcome in own.items():
        result = results.get(method)
        kept: list[Cell] = ["-", "-", "-"]
        if result is not None:
            size, samples = result["memory_bytes"][-1], result["memory_samples"][-1]
            kept = [Value(size / 1000, digits=0), Value(samples, digits=0), Value(result["seconds"]["total"], digits=0)]
        figures = [cell_of(outcome, key) for key in ("final_accuracy", "average_incremental_accuracy")]
        rows.append([TITLES[method], *figures, *kept])
    columns = ["", "final accuracy", "average incremental", "kB kept", "samples kept", "seconds"]
    source = ON_DIGITS if request.fast else SOURCES[data]
    what = f"{request.title(data)}, features of {source.features}, {source.classes_per_task} classes a task"
    said = verdicts(results)
    notes = [*said, *([NOT_TESTED] if said else []), *([source.published] if source.published else [])]
    notes += [*request.remarks([data]), *failures(request, own)]
    caption = f"{what}, task unknown: accuracy in per cent over all classes, {spread(own)}"
    return Table(f"features-{data}", caption, columns, rows, notes)


def verdicts(results: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Where PRER stands against the closed forms that keep at most its bytes, and against a head on all data."""
    if "prer" not in results:
        return []
    ours, size = _figures(results["prer"])
    rivals = {name: _figures(results[name]) for name in CLOSED if name in results}
    smaller = {name: accuracy for name, (accuracy, kept) in rivals.items() if kept <= MORE * size}
    said = []
    if smaller:
        best = max(smaller, key=lambda name: smaller[name])
        said.append(
            f"{_against(ours, smaller[best], TITLES[best])}, the best closed form with about its bytes or fewer."
        )
    for name, (accuracy, kept) in rivals.items():
        if kept > MORE * size and accuracy > ours:
            said.append(f"{TITLES[name]} keeps more bytes and is {accuracy - ours:.2f} points ahead of PRER.")
    if "joint" in results:
        said.append(f"{_against(ours, _figures(results['joint'])[0], 'a head that was trained on all data')}.")
    return said


def _figures(result: Mapping[str, Any]) -> tuple[float, float]:
    return result["final_accuracy"]["mean"], result["memory_bytes"][-1]


def _against(ours: float, theirs: float, name: str) -> str:
    if f"{ours - theirs:.2f}" in ("0.00", "-0.00"):
        return f"PRER is as accurate as {name}"
    where = "ahead of" if ours > theirs else "behind"
    return f"PRER is {abs(ours - theirs):.2f} points {where} {name}"
