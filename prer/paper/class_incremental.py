"""Class-incremental learning: nobody tells the task. All learners, accuracy against bytes, and PRER's condition.

The paper leaves this scenario to future work. Published numbers of others are beside ours.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from prer.paper.plan import SIGNIFICANCE_SEEDS, Key, Request, data_of, those
from prer.paper.published import TITLES as PAPER_TITLES
from prer.paper.table1 import Outcomes, cell_of, failures, missing, result_of, spread
from prer.paper.tables import Cell, Table, Value
from prer.presets import CLOSED_FORMS, recommended
from prer.runs.experiment import Experiment
from prer.settings import merged
from prer.sweeps.engines.base import Outcome

TITLES = PAPER_TITLES | {"si": "SI", "lwf": "LWF, rehearsal", "lwf-classic": "LWF, classic", "agem": "A-GEM"}
TITLES |= {"replay": "Replay", "der": "DER++", "dgr": "DGR", "joint": "Joint"}
TITLES |= {"ncm": "NCM, pixels", "slda": "SLDA, pixels", "ranpac": "RanPAC, pixels"}
TITLES |= {"prer-flow": "PRER, network, flow", "prer-network": "PRER, network, mixture"}
TITLES |= {"prer-patches": "PRER, patches, flow"}
TITLES |= {
    f"{method}-patches": f"{TITLES[method].removesuffix(', pixels')}, patches"
    for method in ("ncm", "slda", "ranpac", "replay", "der")
}
METHODS = ("naive", "ewc", "si", "lwf-classic", "lwf", "gem", "agem", "er", "replay", "der", "dgr")
METHODS += ("ncm", "slda", "ranpac", "prer-flow", "prer-network", "joint")  # pixels, or networks that are trained
METHODS += ("ncm-patches", "slda-patches", "ranpac-patches", "replay-patches", "der-patches", "prer-patches")
METHODS += ("prer",)
KINDS: dict[str, dict[str, Any]] = {  # what the second part of a method's name sets
    "classic": {"form": "classic"},
    "patches": {"encoder": "patches", "embedding": "auto"},
    "flow": {},
    "network": {"encoder": "rests", "labels": "none", "density": {"name": "mixture"}, "answer": "both"},
}
SIZES, CONDITION, CHOICES = "sizes", "condition", "choices"  # the other tables
NAMES = (*METHODS, SIZES, CONDITION, CHOICES)  # that --only may have besides data sets

# Five tasks of two classes, task unknown, no stored samples, trained from scratch.
SOURCES = {
    "a": "van de Ven, Li and Tolias 2021, Class-Incremental Learning with Generative Classifiers, Table 2",
}
PUBLISHED: dict[str, dict[str, tuple[float, str]]] = {
    "mnist": {
        "naive": (19.9, "a"),
        "ewc": (19.95, "a"),
        "si": (19.95, "a"),
        "dgr": (91.30, "a"),
        "slda": (87.30, "a"),
        "joint": (98.23, "a"),
    },
    "cifar10": {"ewc": (18.63, "a"), "dgr": (17.21, "a"), "slda": (38.35, "a"), "joint": (82.07, "a")},
}
BESIDE = {"mnist": "A VAE for each class has 93.79 (a)", "cifar10": "A VAE for each class has 56.03 (a)"}

SAMPLES = (100, 300, 1000, 3000, 10_000)  # sizes of the memories of replay and DER++
MIXTURES = ((25, 1), (50, 4), (100, 4), (100, 16), (200, 16))  # numbers of an embedding, components of a class
SIZED = ("replay", "der", "slda-patches", "ranpac-patches", "prer")
NO_DECODER = "learner.epochs_autoencoder=0"  # of an encoder that is computed, the decoder does not change predictions
SIZED_BY: dict[str, Mapping[str, Sequence[str]]] = {  # the settings of each size
    **{m: {str(n): (f"learner.size={n}",) for n in SAMPLES} for m in ("replay", "der")},
    "slda-patches": {str(n): (f"learner.embedding={n}",) for n in (25, 50, 100, 200, 400)},
    "ranpac-patches": {str(n): (f"learner.size={n}",) for n in (250, 500, 1000, 2000, 4000)},
    "prer": {
        f"{D}x{K}": (NO_DECODER, f"learner.embedding={D}", f"learner.density.components={K}") for D, K in MIXTURES
    },
}
# Less training, for a smoke test on the digits.
FAST = {
    "prer-flow": ("learner.epochs_autoencoder=60", "learner.density.epochs=60"),
    "prer-patches": ("learner.epochs_autoencoder=20", "learner.density.epochs=60"),
    "prer-network": ("learner.epochs_autoencoder=60",),
    "prer": ("learner.epochs_autoencoder=20",),
    "dgr": ("learner.epochs_generator=30",),
}
WITHOUT_DECODER = ("svhn", "cifar10")  # where training it takes long, and no prediction depends on it
WHAT = {"replay": "{} samples", "der": "{} samples", "slda-patches": "embedding of {}"}
WHAT |= {"ranpac-patches": "{} random features", "prer": "embedding of {}, {} components a class"}
LONGER = {"mnist": 40, "kmnist": 80, "svhn": 40, "cifar10": 30}  # epochs of a flow over patches; by default 10 or 20
CONDITIONED = ("mnist", "cifar10")  # data sets of the table about PRER's condition


class Change(NamedTuple):
    """One change of PRER, and what it means."""

    what: str
    overrides: tuple[str, ...]


NO_PRIOR = "learner.density.class_prior=false"
CHANGES = {
    "every": Change("every coupling and the prior see the class (ours)", ()),
    "no-prior": Change("every coupling sees the class, the prior does not", (NO_PRIOR,)),
    "data-side": Change(
        "only the coupling on the data side sees the class", ("learner.density.condition=first", NO_PRIOR)
    ),
    "noise-side": Change(
        "only the coupling on the noise side sees the class", ("learner.density.condition=last", NO_PRIOR)
    ),
    "gaussian": Change("a Gaussian for each class, no flow", ("learner.density=gaussian",)),
    "anchor-only": Change(
        "no samples, the pull on new samples alone",
        ("learner.share=0", "learner.weight=0", "learner.anchor=1", "learner.encoder=continues", "learner.answer=head"),
    ),
}

# The choices that make PRER's default, each one changed; as many seeds as the significance tests have.
CHOSEN_ON = ("kmnist",)
CHOSEN = {
    "ours": Change("PRER", (NO_DECODER,)),
    "encoder-rests": Change("encoder: a network that is trained on the first task", ("learner.encoder=rests",)),
    "encoder-continues": Change(
        "encoder: a network that continues to learn, held by R and the anchor",
        ("learner.encoder=continues", "learner.anchor=1", "learner.reencode=false"),
    ),
    "density-gaussian": Change("density: one Gaussian for each class", ("learner.density=gaussian", NO_DECODER)),
    "density-flow": Change("density: a flow", ("learner.density=flow", "learner.reencode=false", NO_DECODER)),
    "density-longer": Change(
        "density: a flow, fitted four times as long",
        ("learner.density=flow", "learner.density.epochs=80", "learner.reencode=false", NO_DECODER),
    ),
    "components": Change("at most 4 components for each class, not 16", ("learner.density.components=4", NO_DECODER)),
    "shrinkage": Change("covariances are not shrunk", ("learner.density.shrinkage=0", NO_DECODER)),
    "answer-head": Change("answer: the head alone", ("learner.answer=head", NO_DECODER)),
    "answer-density": Change("answer: the likelihood alone", ("learner.answer=density", NO_DECODER)),
}


def experiments(request: Request) -> dict[Key, Experiment]:
    """Every learner on every data set; memories of five sizes; PRER's condition, in both scenarios; its choices."""
    datas = request.data()
    names = [name for name in request.only if name in METHODS]
    extras = [name for name in request.only if name in (SIZES, CONDITION, CHOICES)]
    everything = not names and not extras
    methods = METHODS if everything else tuple(names)
    found: dict[Key, Experiment] = {(d, m): of_method(request, d, m) for d in datas for m in methods}
    if SIZES in extras or (everything and not request.fast):
        found |= _sizes(request, datas)
    if CONDITION in extras or (everything and not request.fast):
        found |= _conditions(request, [d for d in datas if request.fast or d in CONDITIONED])
    if CHOICES in extras or (everything and not request.fast):
        found |= _choices(request, [d for d in datas if request.fast or d in CHOSEN_ON])
    return found


def of_method(request: Request, data: str, method: str, overrides: Sequence[str] = ()) -> Experiment:
    """The experiment of a learner on a data set, with the settings for this scenario."""
    learner, _, kind = method.partition("-")
    named = learner if kind == "flow" else method
    own: dict[str, Any] = {"name": learner}
    if learner == "prer" and kind in ("flow", "network"):
        trained = {"encoder": "continues", "answer": "head"}
        own |= trained | recommended(data, "prer-flow", "class")["learner"] | KINDS[kind]
    elif learner == "prer":
        own |= {"epochs_autoencoder": 0} if data in WITHOUT_DECODER else {}
        own |= {"density": {"name": "flow", "epochs": LONGER.get(data, "auto")}, "reencode": False} if kind else {}
    elif kind == "patches" and learner not in CLOSED_FORMS:
        own |= KINDS[kind] | {"lr": 1e-3, "batch": "auto", "epochs": "auto"}  # as the head of PRER
    elif kind:
        own |= recommended(data, method, "class")["learner"] | KINDS[kind]
    if request.fast and learner not in CLOSED_FORMS:
        overrides = [*FAST.get(method, FAST.get(learner, ())), "learner.epochs=20", *overrides]
    return request.parsed(data, {"stream": {"scenario": "class"}, "learner": own}, f"{data}-{named}-class", overrides)


def _sizes(request: Request, datas: Sequence[str]) -> dict[Key, Experiment]:
    return {
        (data, f"{method}-{size}"): of_method(request, data, method, overrides)
        for data in datas
        for method, sizes in SIZED_BY.items()
        for size, overrides in sizes.items()
    }


def _choices(request: Request, datas: Sequence[str]) -> dict[Key, Experiment]:
    many = replace(request, seeds=request.seeds or str(SIGNIFICANCE_SEEDS))
    return {
        (data, f"choice/{name}"): of_method(many, data, "prer", change.overrides)
        for data in datas
        for name, change in CHOSEN.items()
    }


def _conditions(request: Request, datas: Sequence[str]) -> dict[Key, Experiment]:
    found: dict[Key, Experiment] = {}
    for data in datas:
        for name, change in CHANGES.items():
            unknown = of_method(request, data, "prer-flow", change.overrides)
            tables = unknown.tables()
            given = merged(tables, {"name": f"{data}-prer-task", "stream": {"scenario": "task"}}, {})
            found |= {(data, f"{name}/class"): unknown, (data, f"{name}/task"): Experiment.parse(given, presets=False)}
    return found


def tables(request: Request, outcomes: Outcomes, asked: Collection[Key] = ()) -> list[Table]:
    """A table for each data set, one of sizes and one of conditions."""
    shown = those(outcomes, asked)
    made = [_of_data(request, shown, data) for data in data_of(shown)]
    made += [_of_sizes(request, shown), _of_conditions(request, shown), _of_choices(request, shown)]
    return [table for table in made if table.rows]


def _of_data(request: Request, outcomes: Outcomes, data: str) -> Table:
    own = {key: outcome for key, outcome in outcomes.items() if key[0] == data and key[1] in METHODS}
    rows: list[list[Cell]] = []
    for method in (m for m in METHODS if (data, m) in own):
        outcome = own[data, method]
        result, (value, source) = result_of(outcome), PUBLISHED.get(data, {}).get(method, (None, ""))
        published = "-" if value is None or data in request.paths else Value(value, mark=f" ({source})")
        figures = [cell_of(outcome, key) for key in ("final_accuracy", "average_incremental_accuracy")]
        kept: list[Cell] = (
            ["-", "-"]
            if result is None
            else [
                Value(result["memory_bytes"][-1] / 1000, digits=0),
                Value(result["memory_samples"][-1], digits=0),
            ]
        )
        rows.append([TITLES[method], *figures, _given(outcome), published, *kept])
    columns = ["", "final accuracy", "average incremental", "task given", "published", "kB kept", "samples kept"]
    caption = f"{request.title(data)}, task unknown: accuracy in per cent over all classes, {spread(own)}"
    used = sorted({cell.mark.strip(" ()") for row in rows if isinstance(cell := row[4], Value)})
    notes = [f"({source}) {SOURCES[source]}." for source in used]
    notes += [f"{BESIDE[data]}."] if used and data in BESIDE else []
    return Table(f"class-{data}", caption, columns, rows, [*notes, *request.remarks([data]), *failures(request, own)])


def _given(outcome: Outcome | None) -> Cell:
    """The final accuracy if the task is given; of earlier results, the mean over tasks."""
    result = result_of(outcome)
    if result is None:
        return missing(outcome)
    if found := result.get("final_accuracy_task_given"):
        return Value(found["mean"], found["std"])
    values = np.array(result["matrix_task_given"], float)[:, -1].mean(1)
    return Value(float(values.mean()), float(values.std(ddof=1)) if len(values) > 1 else None)


def sized(outcomes: Outcomes, data: str, method: str) -> list[tuple[str, dict[str, Any]]]:
    """The sizes of a learner's memory that have run on a data set, in order, with their results."""
    found = [(size, result_of(outcomes.get((data, f"{method}-{size}")))) for size in SIZED_BY[method]]
    return [(size, result) for size, result in found if result is not None]


def _of_sizes(request: Request, outcomes: Outcomes) -> Table:
    rows: list[list[Cell]] = []
    for data in data_of(outcomes):
        for method in SIZED:
            for size, result in sized(outcomes, data, method):
                what = WHAT[method].format(*size.split("x"))
                figure = result["final_accuracy"]
                kept = Value(result["memory_bytes"][-1] / 1000, digits=0)
                rows.append([request.title(data), TITLES[method], what, kept, Value(figure["mean"], figure["std"])])
    columns = ["data", "", "memory", "kB kept", "final accuracy"]
    return Table("class-sizes", f"Accuracy against bytes kept, task unknown, {spread(outcomes)}", columns, rows)


def _of_choices(request: Request, outcomes: Outcomes) -> Table:
    own = {key: outcome for key, outcome in outcomes.items() if key[1].startswith("choice/")}
    rows: list[list[Cell]] = []
    for data in data_of(own):
        for name, change in CHOSEN.items():
            outcome = own.get((data, f"choice/{name}"))
            if outcome is not None:
                result = result_of(outcome)
                kept: Cell = "-" if result is None else Value(result["memory_bytes"][-1] / 1000, digits=0)
                rows.append([request.title(data), change.what, cell_of(outcome, "final_accuracy"), kept])
    columns = ["data", "one choice changed", "final accuracy", "kB kept"]
    return Table("class-choices", f"What PRER's choices are worth, task unknown, {spread(own)}", columns, rows)


def _of_conditions(request: Request, outcomes: Outcomes) -> Table:
    rows: list[list[Cell]] = []
    for data in data_of(outcomes):
        for name, change in CHANGES.items():
            unknown, given = (outcomes.get((data, f"{name}/{scenario}")) for scenario in ("class", "task"))
            if unknown is not None:
                cells = [cell_of(unknown, "final_accuracy"), _given(unknown), cell_of(given, "final_accuracy")]
                rows.append([request.title(data), change.what, *cells])
    columns = ["data", "PRER", "task unknown", "task given, one head", "task given, a head for each"]
    caption = f"What the condition is worth: mean accuracy after the last task, {spread(outcomes)}"
    return Table("class-condition", caption, columns, rows)
