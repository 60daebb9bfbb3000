"""Write REPRODUCIBILITY.md and docs/reproducibility/: every number of the paper's tables beside ours, from finished runs only.

python benchmarks/reproducibility.py [RUNS] [NAME=PATH ...] [--fast] [-o FOLDER]

RUNS is a folder of runs from `prer reproduce`; without it, the recorded runs are used. NAME=PATH names data sets that were
read from other paths. The tables are those that `prer reproduce` writes beside its runs.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

import front_page
import paper_records
from differences import differences
from inconsistencies import inconsistencies
from record_tables import RECORDS, of_searches, of_seeds, twice
from verdicts_in_short import in_short

from prer.paper import table2
from prer.paper.plan import Key, Request, data_of, places
from prer.paper.reproduce import NEEDED, Clock, clocks, existing, tables_of
from prer.paper.table1 import Outcomes, missing, result_of, title_of, with_rows
from prer.paper.tables import Cell, Table, Value, csv_text, markdown
from prer.paper.variants import MORE, NAMES
from prer.sweeps.engines.base import Outcome

SECTIONS = {"table1": "Table 1", "significance": "Significance", "table2": "Table 2", "claims": "Claims"}
PLACES = {"kmnist": "kmnist10k", "svhn": "svhn46k"}  # of the recorded runs
FRONT, FOLDER = "REPRODUCIBILITY.md", "docs/reproducibility"
INDEX = """# All results

The summary is [REPRODUCIBILITY.md](../../REPRODUCIBILITY.md). `python benchmarks/reproducibility.py` writes it and these files
from the recorded runs; none of our numbers is typed by hand. Every table is also a CSV file with full precision.

"""
PAGES = {
    "table1": "Table 1: BWT and Accuracy, ours and the paper's, and the diagonals that they imply",
    "significance": "twenty seeds, PRER against every other method by two tests, and its own rows",
    "table2": "Table 2: memory in floats and bytes, and time",
    "claims": f"{len(NAMES) - 1} variants of PRER, and the evidence and rules for every claim",
    "paper": "how our runs differ from the paper, and where it contradicts itself",
    "searches": "points of the search for settings, and which could win",
    "twice": "the same five seeds, trained among five and among twenty",
    "runs": "every run with seeds, time, hardware, versions, digest and command",
}
ALSO = (
    "- [seeds](seeds.csv): BWT and Accuracy of every seed of every run",
    "- [figure 2](../figure2.png), made by `prer reproduce figure2`",
)
DIRTY = """A commit that ends in -dirty means that commit with changes that were not committed yet; docs/benchmarks.md says which
changes the recorded runs had. The digest covers everything that was learned: two runs with the same digest have learned
the same.
"""


def files(
    request: Request, outcomes: Mapping[str, Mapping[Key, Outcome]], clocks: Mapping[str, Clock]
) -> dict[str, str]:
    """The text of each file by its path, from the existing runs of each table and the time they took."""
    parts = {name: tables_of(name, request, outcomes) for name, of_part in outcomes.items() if of_part}
    parts |= {
        "searches": [of_searches(request)],
        "twice": [twice(request, outcomes["table1"], outcomes["significance"])],
    }
    parts["runs"] = [runs(request, outcomes[name], name, clocks.get(name)) for name in outcomes if name in parts]
    tables = {table.name: table for of_part in parts.values() for table in of_part}
    short = "\n".join(f"- {line}" for line in in_short(tables.values())) + "\n"
    above = {"significance": f"{short}\n" if "significance" in parts else "", "runs": dirty(parts["runs"])}
    listed = [f"- [{name}]({name}.md): {what}" for name, what in PAGES.items() if name in (*parts, "paper")]
    index = INDEX + "\n".join([*listed, *ALSO]) + "\n"
    pages = {"README": index, "paper": paper()}
    for name, of_part in parts.items():
        title = f"# {SECTIONS.get(name, name.capitalize())}\n\n"
        pages[name] = title + above.get(name, "") + "\n".join(map(markdown, of_part))
    seeds = of_seeds(request, outcomes)
    found = {f"{FOLDER}/{name}.md": text for name, text in pages.items()}
    found |= {f"{FOLDER}/{table.name}.csv": csv_text(table) for table in (*tables.values(), seeds)}
    return {FRONT: front_page.text(request, outcomes, tables)} | dict(sorted(found.items()))


def paper() -> str:
    """How our runs differ from the paper, and where the paper contradicts itself."""
    listed = "\n".join(f"- {line}" for line in inconsistencies())
    return f"# The paper\n\n## Differences\n\n{differences()}\n## Where the paper contradicts itself\n\n{listed}\n"


def dirty(tables: Sequence[Table]) -> str:
    """What -dirty means, if a run has it."""
    return f"{DIRTY}\n" if any("-dirty |" in markdown(table) for table in tables) else ""


def runs(request: Request, outcomes: Outcomes, name: str, clock: Clock | None = None) -> Table:
    """A row for each run: seeds, time, hardware, versions, digest, and the command that repeats it."""
    rows: list[list[Cell]] = []
    for (data, method), outcome in with_rows(outcomes).items() if name != "claims" else outcomes.items():
        result = result_of(outcome)
        what = f"{data},{method.removesuffix(MORE)}"  # rows with more seeds have the name of the variant
        command = f"`prer reproduce {name} --only {what}{_options(request, data, name)}`"
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


def recorded(folder: Path) -> Path:
    """The recorded runs as run folders."""
    paper_records.unpack((RECORDS / "paper.jsonl").read_text("utf-8").splitlines(), folder)
    return folder


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", type=Path, nargs="?")
    parser.add_argument("paths", nargs="*", metavar="NAME=PATH")
    parser.add_argument("--fast", action="store_true")
    parser.add_argument("-o", "--out", type=Path, default=Path())
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        found = options.runs or recorded(Path(folder))
        where = places(options.paths) if options.runs else PLACES
        request = Request(paths=where, fast=options.fast, variants=NAMES, finished=True)
        outcomes = {name: existing(NEEDED[name](request), found) for name in SECTIONS}
        for name, text in files(request, outcomes, clocks(found)).items():
            (options.out / name).parent.mkdir(parents=True, exist_ok=True)
            (options.out / name).write_text(text, "utf-8")


if __name__ == "__main__":
    main()
