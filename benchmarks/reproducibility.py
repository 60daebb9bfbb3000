"""Write REPRODUCIBILITY.md: every number of the paper's tables beside ours, from finished runs only.

python benchmarks/reproducibility.py RUNS [NAME=PATH ...] [--fast] [-o REPRODUCIBILITY.md]

RUNS is a folder of runs from `prer reproduce`, or from `paper_records.py unpack` and records/paper.jsonl.
NAME=PATH names data sets that were read from other paths; for the recorded runs: kmnist=kmnist10k svhn=svhn46k.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from pathlib import Path

from inconsistencies import inconsistencies
from verdicts_in_short import in_short, of_claims

from prer.paper import table2
from prer.paper.plan import Key, Request, data_of, places
from prer.paper.reproduce import NEEDED, Clock, clocks, existing, tables_of
from prer.paper.table1 import Outcomes, missing, result_of, title_of, with_rows
from prer.paper.tables import Cell, Table, Value, markdown
from prer.paper.variants import NAMES
from prer.sweeps.engines.base import Outcome

SECTIONS = {"table1": "Table 1", "significance": "Significance", "table2": "Table 2", "claims": "Claims"}
HEAD = """# Reproducibility

Every number in the tables of *Pseudo-Rehearsal for Continual Learning with Normalizing Flows* (Pomponi, Scardapane,
Uncini 2020) beside ours. `benchmarks/reproducibility.py` writes this file from the records of runs; none of our numbers
is typed by hand. "Not run" marks experiments that were not run.

The setting is task-incremental: each task of two classes has a head of its own, and the task of a sample is given at
test time, so chance is 50 %. ER is the paper's embedding regularisation with stored samples, not experience replay.
LWF is the paper's variant with rehearsal: it stores 500 samples of each task and the old predictions for them.
"Above" and "below" the paper mean p below 0.05 in Welch's t-test. "Other data" means that we had only a part of that
data set.
"""
FIGURE = """## Figure 2

Embeddings and images that PRER generates after the five tasks of MNIST, beside real ones:
[docs/figure2.png](docs/figure2.png), made by `prer reproduce figure2`.
"""
DIRTY = """A commit that ends in -dirty means that commit with changes that were not committed yet; docs/benchmarks.md says which
changes the recorded runs had. The digest covers everything that was learned: two runs with the same digest have learned
the same.
"""


def text(request: Request, outcomes: Mapping[str, Mapping[Key, Outcome]], clocks: Mapping[str, Clock]) -> str:
    """The document, from the existing runs of each table and the time they took."""
    tables = {name: tables_of(name, request, outcomes) for name, of_table in outcomes.items() if of_table}
    every = {table.name: table for of_part in tables.values() for table in of_part}
    parts = [HEAD, "## In short\n", "\n".join(f"- {line}" for line in in_short(every.values())) + "\n"]
    parts += [markdown(of_claims(every["claims"]))] if "claims" in every else []
    for name in outcomes:
        parts += [f"## {SECTIONS[name]}\n", *map(markdown, tables.get(name, []))]
    parts += [] if request.fast else [FIGURE]
    of_runs = [markdown(runs(request, outcomes[name], name, clocks.get(name))) for name in tables]
    parts += ["## Runs\n", *([DIRTY] if any("-dirty |" in table for table in of_runs) else []), *of_runs]
    parts += [
        "## Where the paper contradicts itself\n",
        "\n".join(f"- {i}" for i in inconsistencies()),
    ]
    return "\n".join(parts) + "\n"


def runs(request: Request, outcomes: Outcomes, name: str, clock: Clock | None = None) -> Table:
    """A row for each run: seeds, time, hardware, versions, digest, and the command that repeats it."""
    rows: list[list[Cell]] = []
    for (data, method), outcome in with_rows(outcomes).items() if name != "claims" else outcomes.items():
        result = result_of(outcome)
        command = f"`prer reproduce {name} --only {data},{method}{_options(request, data, name)}`"
        about: list[Cell] = [missing(outcome), *["-"] * 5]
        if result is not None:
            seeds, time = _together(result["seeds"]), Value(result["seconds"]["total"], digits=1)
            environment = outcome.folder.environment
            commit = environment.get("commit") or f"version {result.get('version', 'unknown')}"
            packages = environment.get("packages")
            torch = packages.get("torch") if isinstance(packages, dict) else None
            versions = f"{environment.get('python', 'unknown')}, {torch or 'unknown'}"
            digest = f"`{str(result.get('digest', ''))[:12]}`"
            about = [seeds, time, table2.hardware(outcome.folder), versions, commit, digest]
        rows.append([f"{title_of(method, outcome)} on {request.title(data)}", *about, command])
    notes = request.remarks(data_of(outcomes))
    here = {outcome.folder.path.name for outcome in outcomes.values()}
    if clock is not None and (made := len(here & set(clock.folders))):
        beside = "" if clock.workers == 1 else "; the seconds above were measured with these runs in parallel"
        notes += [
            f"{made} of these {len(here)} runs come from one command, which took {clock.seconds:.0f} s for "
            f"{len(clock.folders)} runs, {clock.workers} at a time{beside}."
        ]
    columns = [name, "seeds", "seconds", "hardware", "Python, torch", "code", "digest", "command"]
    return Table(
        f"runs-{name}",
        f"The runs of {name}",
        columns,
        rows,
        notes,
    )


def _together(seeds: Sequence[int]) -> str:
    """Seeds as text, consecutive ones as a range.

    Example:
        >>> _together([0, 1, 2]), _together([0, 1, 7])
        ('0 to 2', '0, 1, 7')
    """
    in_a_row = len(seeds) > 2 and list(seeds) == list(range(seeds[0], seeds[0] + len(seeds)))
    return f"{seeds[0]} to {seeds[-1]}" if in_a_row else ", ".join(map(str, seeds))


def _options(request: Request, data: str, name: str) -> str:
    """The options of a row's command; paths are reduced to their last part, since the rest depends on the machine."""
    path = f" --data {data}=PATH/{Path(request.paths[data]).resolve().name}" if data in request.paths else ""
    given = {"--seeds": None if name == "table2" else request.seeds, "--device": request.device}
    return path + "".join(f" {key} {value}" for key, value in given.items() if value) + " --fast" * request.fast


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", type=Path)
    parser.add_argument("paths", nargs="*", metavar="NAME=PATH")
    parser.add_argument("--fast", action="store_true")
    parser.add_argument("-o", "--out", type=Path, default=Path("REPRODUCIBILITY.md"))
    options = parser.parse_args()
    request = Request(paths=places(options.paths), fast=options.fast, variants=NAMES, finished=True)
    outcomes = {name: existing(NEEDED[name](request), options.runs) for name in SECTIONS}
    options.out.write_text(text(request, outcomes, clocks(options.runs)), "utf-8")


if __name__ == "__main__":
    main()
