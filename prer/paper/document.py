"""REPRODUCIBILITY.md: every number of the paper's tables beside ours, from the records of runs alone."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from prer.data.catalogue import CATALOGUE
from prer.engines import Outcome
from prer.errors import InputError
from prer.paper import ablation, claims, significance, table1, table2
from prer.paper.plan import EXTRA, Key, Request, data_of
from prer.paper.published import TABLE1, TABLE2, TITLES, implied_diagonal
from prer.paper.table1 import Outcomes, missing, result_of
from prer.paper.tables import Cell, Table, Value, markdown

TABLES = {  # in the order of the document
    "table1": table1.tables,
    "significance": significance.tables,
    "table2": table2.tables,
    "claims": ablation.tables,
}
SECTIONS = {"table1": "Table 1", "significance": "Significance", "table2": "Table 2", "claims": "Claims"}
HEAD = """# Reproducibility

Every number of the tables of *Pseudo-Rehearsal for Continual Learning with Normalizing Flows* (Pomponi, Scardapane,
Uncini 2020) beside ours. This file is written by `prer reproduce all --write` from the records of runs; no number of
ours is typed by hand. What has no run says "not run".
"""
BASELINES = (
    "LWF and EWC: the paper's BWT lies within two standard deviations of Naive's on every data set. The authors' "
    "public code computes EWC's penalty on detached weights and edits LWF's loss after its gradient is taken, so that "
    "both do nothing. Ours work, and are to be expected above the paper's."
)


class Clock(NamedTuple):
    """How long a command took, by which most runs of a part were made."""

    folders: Sequence[str]  # of the runs that it made
    workers: int
    seconds: float


def tables_of(
    part: str, request: Request, outcomes: Mapping[str, Mapping[Key, Outcome]], asked: Collection[Key] = ()
) -> list[Table]:
    """The tables of a part, from what there is of all runs; with rows of those that are asked for."""
    made = TABLES[part](request, outcomes[part], asked)
    return [*made, claims.table(request, outcomes)] if part == "claims" else made


def text(request: Request, outcomes: Mapping[str, Mapping[Key, Outcome]], clocks: Mapping[str, Clock]) -> str:
    """The document, from what there is of the runs of each table, and how long they took together."""
    tables = {name: tables_of(name, request, outcomes) for name, of_table in outcomes.items() if of_table}
    parts = [HEAD]
    for name in outcomes:
        parts += [f"## {SECTIONS[name]}\n", *map(markdown, tables.get(name, []))]
    parts += ["## Runs\n", *(markdown(runs(request, outcomes[name], name, clocks.get(name))) for name in tables)]
    parts += [
        "## What the paper says differently in different places\n",
        "\n".join(f"- {i}" for i in inconsistencies()),
    ]
    return "\n".join(parts) + "\n"


def runs(request: Request, outcomes: Outcomes, name: str, clock: Clock | None = None) -> Table:
    """Where and from what each row comes, and the command that makes it."""
    rows: list[list[Cell]] = []
    for (data, method), outcome in outcomes.items():
        result = result_of(outcome)
        command = f"`prer reproduce {name} --only {data},{method}{_options(request, data, name)}`"
        about: list[Cell] = [missing(outcome), "-", "-", "-", "-"]
        if result is not None:
            seeds, time = _together(result["seeds"]), Value(result["seconds"]["total"], digits=1)
            commit = outcome.record.environment.get("commit") or f"version {result.get('version', 'unknown')}"
            digest = f"`{str(result.get('digest', ''))[:12]}`"
            about = [seeds, time, table2.hardware(outcome.record), commit, digest]
        rows.append([f"{TITLES.get(method, method)} on {request.title(data)}", *about, command])
    notes = request.remarks(data_of(outcomes))
    here = {outcome.record.path.name for outcome in outcomes.values()}
    if clock is not None and (made := len(here & set(clock.folders))):
        beside = "" if clock.workers == 1 else "; the seconds above are those of each with others beside it"
        notes += [
            f"{made} of these {len(here)} runs were made by one command, which took {clock.seconds:.0f} s for "
            f"{len(clock.folders)} runs, {clock.workers} at a time{beside}."
        ]
    columns = [name, "seeds", "seconds", "hardware", "code", "digest", "command"]
    return Table(
        f"runs-{name}",
        f"The runs of {name}",
        columns,
        rows,
        notes,
    )


def _together(seeds: Sequence[int]) -> str:
    """Seeds as a person says them.

    Example:
        >>> _together([0, 1, 2]), _together([0, 1, 7])
        ('0 to 2', '0, 1, 7')
    """
    in_a_row = len(seeds) > 2 and list(seeds) == list(range(seeds[0], seeds[0] + len(seeds)))
    return f"{seeds[0]} to {seeds[-1]}" if in_a_row else ", ".join(map(str, seeds))


def _options(request: Request, data: str, name: str) -> str:
    """The options a row was made with; of a path its last part alone, for the others are a matter of the machine."""
    path = f" --data {data}=PATH/{Path(request.paths[data]).resolve().name}" if data in request.paths else ""
    given = {"--seeds": None if name == "table2" else request.seeds, "--device": request.device}
    return path + "".join(f" {key} {value}" for key, value in given.items() if value) + " --fast" * request.fast


def inconsistencies() -> list[str]:
    """The paper against itself, computed where it can be."""
    request = Request()
    impossible = [
        f"{TITLES[method]} on {TITLES[data]}: BWT {pair.bwt.mean} and Accuracy {pair.accuracy.mean} together imply a "
        f"diagonal of {implied_diagonal(pair.bwt.mean, pair.accuracy.mean):.2f} %, which no classifier has."
        for data, rows in TABLE1.items()
        for method, pair in rows.items()
        if round(implied_diagonal(pair.bwt.mean, pair.accuracy.mean), 6) > 100
    ]
    costs = []
    for data, rows in TABLE2.items():
        for method, cost in rows.items():
            literal = EXTRA if method == "prer" else method
            found = table2.symbols(request.experiment(data, literal), CATALOGUE[data].shape)
            formula = table2.KEPT[method](found)
            if cost.kilofloats is not None and abs(formula / (1000 * cost.kilofloats) - 1) > 0.01:
                costs.append(
                    f"Table 2, {TITLES[method]} on {TITLES[data]}: formula and networks as stated, counted by our "
                    f"rule, give {formula:,} floats; the paper prints {cost.kilofloats:,},000."
                )
    return [
        "The printed sum of Accuracy runs over i > j and leaves the diagonal out, which would cap it at "
        f"{100 * 4 / 6:.1f} % for five tasks; the text and the numbers include the diagonal, and so do we.",
        *impossible,
        *costs,
        BASELINES,
        '"Three different datasets" are four: MNIST, KMNIST, SVHN and CIFAR10. Table 2 is "only on MNIST" in the text '
        "and has CIFAR10, too.",
        "The log-determinant of the batch norm lacks its logarithm, σ is averaged where σ² is used, and Eq. 4 has x "
        "where it needs z.",
        "Whether labels are seen while the autoencoder is trained: section 3.3 says no, the introduction "
        '("simultaneously with the main classifier") and the caption of figure 1 say yes. Ours sees none; both other '
        "readings are variants above.",
        'The embedding is "the output of the last convolution" in the introduction and a fully connected layer later; '
        "ours is the latter.",
        "Epochs, the weight of R, the distance d, the sparsity penalty, the share of a batch that is overwritten and "
        "the kind of standard deviation are not given; ours is that of a sample (n - 1).",
    ]


def save(document: str, path: Path) -> Path:
    """Write it."""
    try:
        path.write_text(document, "utf-8")
    except OSError as error:
        raise InputError(f"cannot write {path}: {error.strerror}; give another file by --write") from None
    return path
