"""The paper's claims: PRER with one thing changed at a time, and what follows by rules that are stated."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields

import numpy as np

from prer.engines import Outcome
from prer.experiment import Experiment, merged
from prer.learners.base import Learner
from prer.paper import LITERAL, file_of
from prer.paper.plan import EXTRA, Key, Request
from prer.paper.significance import RULE
from prer.paper.table1 import METRICS, Outcomes, cell_of, failures, missing, result_of, spread, values_of
from prer.paper.tables import Cell, Table, Value
from prer.record import Record
from prer.significance import LEVEL, Comparison, compare, family

OURS = "ours"
TESTED = ("pixels", "augment-only")  # what claims are about; to ask many other things must not make these undecided
AGREEMENT = 95.0  # per cent of a class's samples that its head must take for that class
GROWTH = 1.0  # per cent by which a memory may grow from the first task to the last and still count as constant


@dataclass(frozen=True)
class Variant:
    """One change of PRER, and what is asked by it."""

    name: str
    question: str
    overrides: tuple[str, ...] = ()


VARIANTS = (
    Variant(OURS, "PRER as in Table 1"),
    Variant("augment-only", "regulariser off: old samples only augment", ("learner.weight=0", "learner.anchor=0")),
    Variant("regularise-only", "old samples serve R alone", ("learner.augment=false",)),
    Variant("neither", "no old samples at all", ("learner.share=0", "learner.weight=0", "learner.anchor=0")),
    Variant("no-anchor", "no pull on new samples", ("learner.anchor=0",)),
    Variant("gaussian", "a Gaussian for each class, no flow", ("learner.density=gaussian",)),
    Variant("pixels", "pixels instead of embeddings: DGR, same networks"),
    Variant("no-sparsity", "no sparsity penalty", ("learner.sparsity=0",)),
    Variant("sparse-layers", "sparsity of every layer", ("learner.sparsity_on=layers",)),
    Variant("labels-head", "phase 1 sees labels by the head", ("learner.labels=head",)),
    Variant("labels-auxiliary", "phase 1 sees labels by a classifier", ("learner.labels=auxiliary",)),
    Variant("one-level", "one level of the flow", ("learner.levels=1",)),
    Variant("condition-first", "only the first coupling sees the class", ("learner.condition=first",)),
    Variant("temperature", "the other temperature, of 1.0 and 0.8"),
    Variant("own-samples", "the flow learns its own samples again", ("learner.reencode=false",)),
    Variant("unbounded", "the scale of couplings not bounded", ("learner.bounded=false",)),
    Variant("slow-flow", "the paper's rate for the flow", ("learner.lr_flow=1e-4",)),
    Variant("running-norm", "the paper's norm in the flow", ("learner.norm=running",)),
    Variant("joint", "one phase instead of three, with the first one's epochs", ("learner.schedule=joint",)),
    Variant("literal", "all that the paper states at once"),
)
NAMES = tuple(variant.name for variant in VARIANTS)


def experiments(request: Request) -> dict[Key, Experiment]:
    """Ours and each variant that is asked for, on data sets that have a literal file."""
    if "prer" not in request.methods() and not any(name in NAMES for name in request.only):
        return {}
    asked = [name for name in request.only if name in NAMES]
    chosen = [variant for variant in VARIANTS if not asked or variant.name in (OURS, *asked)]
    return {(data, v.name): _experiment(request, data, v) for data in request.data(LITERAL) for v in chosen}


def _experiment(request: Request, data: str, variant: Variant) -> Experiment:
    ours = request.experiment(data, "prer")
    if variant.name == "literal":
        return _literal(request, data)
    if variant.name == "pixels":
        return _pixels(data, ours)
    overrides = variant.overrides
    if variant.name == "temperature":
        overrides = ("learner.temperature=0.8" if _setting(ours, "temperature") == 1.0 else "learner.temperature=1.0",)
    return request.experiment(data, "prer", overrides)


def _setting(experiment: Experiment, key: str) -> object:
    return experiment.tables()["learner"][key]


def _literal(request: Request, data: str) -> Experiment:
    """The paper's own settings; of data that it does not have, those that do not depend on the data."""
    if data in LITERAL:
        return request.experiment(data, EXTRA)
    literal, ours = (tomllib.loads(file_of("mnist", m).read_text("utf-8"))["learner"] for m in (EXTRA, "prer"))
    of_data = ("channels", "embedding", "batch", "epochs", "epochs_autoencoder", "epochs_flow", "lr", "optimiser")
    changed = [key for key in literal if key not in of_data and literal[key] != ours[key]]
    return request.experiment(data, "prer", [f"learner.{key}={json.dumps(literal[key])}" for key in changed])


def _pixels(data: str, ours: Experiment) -> Experiment:
    """DGR with our networks, classifier and epochs."""
    tables = ours.tables()
    learner = {key: tables["learner"][key] for key in (f.name for f in fields(Learner))}
    epochs = {"epochs_generator": tables["learner"]["epochs_autoencoder"], "latent": learner["embedding"]}
    learner |= {"name": "dgr", "memory_batch": learner["batch"]} | epochs
    return Experiment.parse(merged(tables, {"name": f"{data}-dgr"}) | {"learner": learner})


def tables(request: Request, outcomes: Outcomes) -> list[Table]:
    """Each variant beside ours, and the claims."""
    data = list(dict.fromkeys(name for name, _ in outcomes))
    questions = {variant.name: variant.question for variant in VARIANTS}
    rows: list[list[Cell]] = []
    for name in data:
        against = {metric: comparisons(outcomes, name, metric) for metric in METRICS}
        for (owner, variant), outcome in outcomes.items():
            if owner == name:
                compared = {metric: of_metric.get(variant) for metric, of_metric in against.items()}
                same = variant != OURS and outcome.experiment.hash == outcomes[name, OURS].experiment.hash
                question = questions[variant] + (", as ours has it" if same else "")
                cells = [c for metric in METRICS for c in _cells(outcome, metric, compared[metric])]
                rows.append([request.title(name), variant, question, *cells])
    columns = ["data", "variant", "what is changed"]
    columns += [f"{label}{part}" for label in METRICS.values() for part in ("", ", difference", ", p Holm")]
    notes = [
        "Differences are variant minus ours, paired over seeds; Holm's correction over the variants of a data set."
    ]
    notes += [*request.remarks(data), *failures(request, outcomes)]
    caption = f"PRER with one thing changed at a time, {spread(outcomes)}"
    return [Table("claims-variants", caption, columns, rows, notes), verdicts(request, outcomes, data)]


def _cells(outcome: Outcome, metric: str, compared: Comparison | None) -> list[Cell]:
    value = cell_of(outcome, metric)
    if compared is None:
        return [value, "-", "-"]
    return [value, Value(compared.difference, signed=True), Value(compared.adjusted, digits=4)]


def comparisons(outcomes: Outcomes, data: str, metric: str, among: Sequence[str] = NAMES) -> dict[str, Comparison]:
    """Some variants against ours on a data set; only those that have run, and are not the same."""
    ours, own = values_of(outcomes[data, OURS], metric), outcomes[data, OURS].experiment.hash
    others = {v: o for (name, v), o in outcomes.items() if name == data and v in among and o.experiment.hash != own}
    values = {variant: values_of(outcome, metric) for variant, outcome in others.items()}
    pairs = {variant: compare(theirs, ours) for variant, theirs in values.items() if theirs and ours}
    return dict(zip(pairs, family(list(pairs.values())), strict=True))


CLAIMS = {
    "(i) embeddings are easier to generate than pixels": (
        "ours against pixels: holds where BWT and Accuracy are both better, does not where one is worse"
    ),
    "(ii) to regularise is better than to augment": (
        "ours against augment-only: holds where BWT is better and Accuracy not worse, does not where one is worse"
    ),
    "(iii) the memory is constant": f"holds where it grows by less than {GROWTH:g} % from the first to the last task",
    "(iv) samples of the flow keep classes apart": (
        f"the share of samples after the last task that the head takes for their class; holds where its 95 % interval "
        f"over seeds lies above {AGREEMENT:g} %, does not where it lies below"
    ),
}


def verdicts(request: Request, outcomes: Outcomes, data: Sequence[str]) -> Table:
    """For each claim and data set whether it holds, computed from the numbers."""
    rows: list[list[Cell]] = []
    for name in data:
        by_metric = {metric: comparisons(outcomes, name, metric, TESTED) for metric in METRICS}
        ours = outcomes[name, OURS]
        found = (
            _against({m: c.get("pixels") for m, c in by_metric.items()}, ("better", "better")),
            _against({m: c.get("augment-only") for m, c in by_metric.items()}, ("better", "not worse")),
            *((_constant(ours.record), _apart(ours.record)) if result_of(ours) else (("", missing(ours)),) * 2),
        )
        for claim, (evidence, verdict) in zip(CLAIMS, found, strict=True):
            rows.append([claim, request.title(name), evidence, verdict])
    notes = [f"{claim}: {rule}." for claim, rule in CLAIMS.items()]
    notes += [f"{RULE} Here these are {' and '.join(TESTED)}."]
    return Table("claims", "The paper's claims", ["claim", "data", "evidence", "verdict"], rows, notes)


def _against(of_metric: Mapping[str, Comparison | None], wanted: tuple[str, str]) -> tuple[str, str]:
    """The verdict on ours from comparisons of a variant with it, BWT first."""
    turned = {metric: _turned(c) for metric, c in of_metric.items() if c is not None}
    if len(turned) < len(METRICS):
        return "", "not run"
    texts = [f"{METRICS[m]} {c.difference:+z.2f} ({c.verdict})" for m, c in turned.items()]
    words = [c.verdict for c in turned.values()]
    enough = all(word == "better" or word == least for word, least in zip(words, wanted, strict=True))
    return ", ".join(texts), "holds" if enough else "does not hold" if "worse" in words else "not decided"


def _turned(c: Comparison) -> Comparison:
    return Comparison(-c.difference, -c.high, -c.low, c.p, c.adjusted)


def _constant(record: Record) -> tuple[str, str]:
    kept = (record.result or {})["memory_floats"]
    growth = 100 * (kept[-1] / kept[0] - 1)
    text = f"{kept[0]:,} floats after the first task, {kept[-1]:,} after the last ({growth:+.2f} %)"
    return text, "holds" if growth < GROWTH else "does not hold"


def _apart(record: Record) -> tuple[str, str]:
    """From the figures of health of the last task, mean over classes for each seed."""
    health = [event for event in record.events() if event.get("event") == "health"]
    try:
        last = [event["agreement"] for event in health if event["task"] == health[-1]["task"]]
    except KeyError:  # the result is whole, but what led to it was changed
        last = []
    if not last:
        return "", "not known"
    agreement = 100 * np.mean(last, axis=0)
    c = compare(agreement, [AGREEMENT] * len(agreement))
    interval = (
        f" (95 % interval from {c.low + AGREEMENT:.1f} to {c.high + AGREEMENT:.1f})" if len(agreement) > 1 else ""
    )
    real = (record.result or {})["final_accuracy"]["mean"]
    text = f"{agreement.mean():.1f} %{interval}; of real test samples {real:.1f} %"
    return text, "holds" if c.low > 0 else "does not hold" if c.high < 0 and c.p < LEVEL else "not decided"
