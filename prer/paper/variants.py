"""The ablation: PRER with one thing changed at a time."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from prer.learners.base import Learner
from prer.paper import ABLATION, DATA, file_of
from prer.paper.plan import EXTRA, SIGNIFICANCE_SEEDS, Key, Request, data_of, those
from prer.paper.significance import TESTS
from prer.paper.table1 import (
    METRICS,
    Outcomes,
    cell_of,
    failures,
    overlap_of,
    paired,
    result_of,
    spread,
    title_of,
)
from prer.paper.tables import Cell, Probability, Table, Value
from prer.runs import metrics as evaluation
from prer.runs.experiment import Experiment
from prer.runs.folder import RunFolder
from prer.runs.significance import Comparison, compared
from prer.sweeps.engines.base import Outcome

OURS = "ours"
UNLABELLED = "prer-unlabelled"


@dataclass(frozen=True)
class Variant:
    """One change of PRER, and the question that it answers.

    Attributes:
        name: the name of the row.
        question: what is changed.
        overrides: the settings that are changed.
        besides: further changes, computed from the learner's settings in ours, so that nothing else changes.
    """

    name: str
    question: str
    overrides: tuple[str, ...] = ()
    besides: Callable[[Mapping[str, Any]], Mapping[str, Any]] = lambda ours: {}


VARIANTS = (
    Variant(OURS, "nothing; phase 1 sees no labels"),
    Variant("no-anchor", "no anchor, which is ours: no pull on new samples", ("learner.anchor=0",)),
    Variant("no-r", "no pull on old samples", ("learner.weight=0",)),
    Variant("augment-only", "neither pull: old samples only augment", ("learner.weight=0", "learner.anchor=0")),
    Variant("regularise-only", "old samples do not augment", ("learner.augment=false",)),
    Variant("anchor-only", "no old samples at all, but the pull on new ones", ("learner.share=0", "learner.weight=0")),
    Variant("neither", "no old samples and no pull", ("learner.share=0", "learner.weight=0", "learner.anchor=0")),
    Variant("gaussian", "a Gaussian for each class, no flow", ("learner.density=gaussian",)),
    Variant("pixels", "pixels instead of embeddings: DGR, same networks"),
    Variant("no-sparsity", "no sparsity penalty", ("learner.sparsity=0",)),
    Variant(
        "sparse-layers",
        "sparsity of every layer, as much of z",
        ("learner.sparsity_on=layers",),
        lambda ours: {"sparsity": ours["sparsity"] * ours["embedding"]},  # a layer's is a mean, ours a sum over z
    ),
    Variant("labels-head", "phase 1 sees labels by the head", ("learner.labels=head",)),
    Variant("labels-auxiliary", "phase 1 sees labels by a classifier", ("learner.labels=auxiliary",)),
    Variant(
        "one-level",
        "one level of the flow, with the blocks of two",
        ("learner.density.levels=1",),
        lambda ours: {"density.blocks": ours["density"]["levels"] * ours["density"]["blocks"]},
    ),
    Variant(
        "no-class-prior", "every coupling sees the class, the prior does not", ("learner.density.class_prior=false",)
    ),
    Variant(
        "first-and-prior",
        "only the coupling next to the data and the prior see the class",
        ("learner.density.condition=first",),
    ),
    Variant(
        "condition-first",
        "only the coupling next to the data sees the class",
        ("learner.density.condition=first", "learner.density.class_prior=false"),
    ),
    Variant(
        "condition-last",
        "only the coupling next to the noise sees the class",
        ("learner.density.condition=last", "learner.density.class_prior=false"),
    ),
    Variant(
        "temperature",
        "a temperature of 1.0, or of 0.8 where ours is 1.0",
        besides=lambda ours: {"temperature": 0.8 if ours["temperature"] == 1.0 else 1.0},
    ),
    Variant("random-order", "the paper's permutations in the flow", ("learner.permutation=random",)),
    Variant("own-samples", "the flow learns its own samples again", ("learner.reencode=false",)),
    Variant("unbounded", "the scale of couplings not bounded", ("learner.bounded=false",)),
    Variant("slow-flow", "the paper's rate for the flow", ("learner.density.lr=1e-4", "learner.density.decay=false")),
    Variant("running-norm", "the paper's norm in the flow", ("learner.norm=running",)),
    Variant(
        "one-phase",
        "one phase instead of three, with the longest one's epochs",
        ("learner.schedule=joint",),
        lambda ours: {"epochs_autoencoder": max(ours["epochs_autoencoder"], ours["density"]["epochs"], ours["epochs"])},
    ),
    Variant("literal", "all that the paper states at once; the coupling next to the data sees the class"),
    Variant("literal-no-r", "literal without R", ("learner.weight=0",)),
    Variant(
        "literal-last",
        "literal, but the coupling next to the noise sees the class",
        ("learner.density.condition=last",),
    ),
)
NAMES = tuple(variant.name for variant in VARIANTS)
# The rows that carry the conclusions run again with twenty seeds, on data where seeds differ by more than most effects.
KEY = {"cifar10": (OURS, "no-anchor", "no-r", "anchor-only", "neither")}
MORE = f"-{SIGNIFICANCE_SEEDS}"  # ends the name of such a row
CONDITION = (
    "What the flow knows of the class can change BWT only through p(z), the distribution of all samples together. "
    "Phase 1 does not see the classes of samples of the past: they are reconstructed, and R compares their "
    "embeddings, both without labels (labels-auxiliary is the exception). A new head learns from new samples alone, "
    "and old heads are frozen. The class of a sample matters where it is used as a sample of its class: in `prer "
    "sample`, for a head that several tasks share, and for a head that grows"
)


def experiments(request: Request) -> dict[Key, Experiment]:
    """Ours and each requested variant on the data sets of the ablation, and key rows again with more seeds."""
    if "prer" not in request.methods() and not any(name in NAMES for name in request.only):
        return {}
    asked = [name for name in request.only if name in NAMES]
    chosen = [variant for variant in VARIANTS if not asked or variant.name in (OURS, *asked)]
    found = {(data, v.name): _experiment(request, data, v) for data in request.data(ABLATION) for v in chosen}
    if request.seeds or request.fast:
        return found
    seeds = tuple(range(SIGNIFICANCE_SEEDS))
    key = [(data, name) for data, name in found if name in KEY.get(data, ())]
    return found | {(data, name + MORE): replace(found[data, name], seeds=seeds) for data, name in key}


def base_of(data: str) -> str:
    """The file that the ablation starts from: of PRER with the anchor, without labels in phase 1."""
    return UNLABELLED if file_of(data, UNLABELLED).exists() else "prer"


def _experiment(request: Request, data: str, variant: Variant) -> Experiment:
    ours = request.experiment(data, base_of(data))
    if variant.name == "pixels":
        return _pixels(data, ours)
    if variant.name.startswith("literal"):
        return _literal(request, data, variant.overrides)
    besides = [f"learner.{key}={value}" for key, value in variant.besides(ours.tables()["learner"]).items()]
    return request.experiment(data, base_of(data), [*variant.overrides, *besides])


def _literal(request: Request, data: str, overrides: Sequence[str]) -> Experiment:
    """The paper's own settings; for data that is not in the paper, only those that do not depend on the data."""
    if data in DATA:
        return request.experiment(data, EXTRA, overrides)
    literal, ours = (_flat(tomllib.loads(file_of("mnist", m).read_text("utf-8"))["learner"]) for m in (EXTRA, "prer"))
    of_data = ("channels", "embedding", "batch", "epochs", "epochs_autoencoder", "density.epochs", "lr", "optimiser")
    of_data += ("weight", "sparsity")  # which the paper does not state
    changed = [key for key in literal if key not in of_data and literal[key] != ours.get(key)]
    stated = [f"learner.{key}={json.dumps(literal[key])}" for key in changed]
    return request.experiment(data, "prer", [*stated, *overrides])


def _flat(table: Mapping[str, Any]) -> dict[str, Any]:
    """A learner's settings by dotted names."""
    density = {f"density.{key}": value for key, value in table["density"].items()}
    return {key: value for key, value in table.items() if key != "density"} | density


def _pixels(data: str, ours: Experiment) -> Experiment:
    """DGR with our networks, classifier and epochs."""
    tables = ours.tables()
    learner = {key: tables["learner"][key] for key in (f.name for f in fields(Learner))}
    epochs = {"epochs_generator": tables["learner"]["epochs_autoencoder"], "latent": learner["embedding"]}
    learner |= {"name": "dgr", "memory_batch": learner["batch"]} | epochs
    return Experiment.parse(tables | {"name": f"{data}-dgr", "learner": learner})


def tables(request: Request, outcomes: Outcomes, asked: Collection[Key] = ()) -> list[Table]:
    """Each variant beside ours; p-values are corrected over all that have run, requested or not."""
    shown = those(outcomes, asked)
    data = data_of(shown)
    questions = {variant.name: variant.question for variant in VARIANTS}
    rows: list[list[Cell]] = []
    for name in data:
        tests = {m: [comparisons(outcomes, name, m, by) for by in (0.0, overlap_of(outcomes))] for m in METRICS}
        for (owner, variant), outcome in shown.items():
            if owner == name:
                same = variant != OURS and outcome.experiment.hash == outcomes[name, OURS].experiment.hash
                plain = variant.removesuffix(MORE)
                own = f"{title_of('prer', outcome)}: " if plain == OURS else ""
                question = own + questions[plain] + (", as ours has it" if same else "")
                result = result_of(outcome)
                cells: list[Cell] = [Value(len(result["seeds"]), digits=0) if result else "-"]
                cells += [c for metric in METRICS for c in _cells(outcome, variant, metric, tests[metric])]
                rows.append([request.title(name), variant, question, *cells, _kept(outcome)])
    columns = ["data", "variant", "what is changed", "seeds"]
    columns += [
        f"{label}{part}" for label in METRICS.values() for part in ("", ", difference", ", p plain", ", p corrected")
    ]
    columns += ["samples of their class, %"]
    notes = [
        f"A difference is the variant minus ours. Rows that end in {MORE} have more seeds, and {OURS}{MORE} is theirs. "
        f"{TESTS}. "
        "Each p is adjusted by Holm's method over all variants that have run on a data set, those with more seeds by "
        "themselves, for each metric by itself. The claims below are another family: the pairs that they name, both "
        "metrics together. Samples of their class: the share of the samples of the memory that the head of their task "
        "takes for the class that was asked for, after the last task, mean of the classes; chance is 50 %.",
        f"{CONDITION}.",
    ]
    notes += [*request.remarks(data), *failures(request, shown)]
    caption = f"PRER with one thing changed at a time, {spread(shown)}"
    return [Table("ablation", caption, columns, rows, notes)]


def _cells(outcome: Outcome, variant: str, metric: str, tests: Sequence[Mapping[str, Comparison]]) -> list[Cell]:
    value, (plain, _) = cell_of(outcome, metric), tests
    if variant not in plain:
        return [value, "-", "-", "-"]
    return [value, Value(plain[variant].difference, signed=True), *(Probability(t[variant].adjusted) for t in tests)]


def _kept(outcome: Outcome) -> Cell:
    agreement = agreement_of(outcome.folder) if result_of(outcome) else None
    if agreement is None:
        return "-"
    of_seeds = evaluation.spread(agreement)
    return Value(of_seeds["mean"], of_seeds["std"], digits=1)


def comparisons(outcomes: Outcomes, data: str, metric: str, overlap: float = 0.0) -> dict[str, Comparison]:
    """The variants against ours on a data set; only those that have run and differ from ours.

    Runs of more seeds are compared with that of ours, and are a family of their own in Holm's method.
    """
    found: dict[str, Comparison] = {}
    for end in ("", MORE):
        ours = outcomes.get((data, OURS + end))
        others = {v: o for (name, v), o in outcomes.items() if name == data and v.endswith(MORE) == bool(end)}
        if ours is not None:
            pairs = {v: paired(o, ours, metric) for v, o in others.items() if o.experiment.hash != ours.experiment.hash}
            found |= compared(pairs, overlap)
    return found


def agreement_of(folder: RunFolder) -> list[float] | None:
    """Per cent of the memory's samples recognised as their class after the last task, by seed; None: unknown."""
    health = [event for event in folder.events() if event.get("event") == "health"]
    try:
        last = [event["agreement"] for event in health if event["task"] == health[-1]["task"]]
        return (100 * np.mean(last, axis=0)).tolist() if last else None
    except (KeyError, TypeError, ValueError):  # the result is intact, but the events were altered
        return None
