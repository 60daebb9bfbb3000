"""Runs the experiments that a table still needs, and makes the tables from the results."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from rich.console import Console

from prer.data.catalogue import CATALOGUE
from prer.data.fetch import fetch
from prer.disk import content, replace_file
from prer.errors import InputError, RunError
from prer.paper import (
    claims,
    class_figure,
    class_incremental,
    features,
    figure2,
    plan,
    significance,
    table1,
    table2,
    variants,
)
from prer.paper.plan import NOT_RUN, Key, Request
from prer.paper.tables import Table, save, show
from prer.report.plotting import import_unconfigured
from prer.runs.experiment import Experiment
from prer.runs.folder import MOST_BYTES, RunFolder
from prer.sweeps.engines.base import Engine, Outcome, ended_before
from prer.sweeps.engines.local import Local
from prer.terminal.console import say
from prer.terminal.downloads import Downloads
from prer.terminal.sweeps import follow

CLOCKS = "clocks.json"
NEEDED: dict[str, Callable[[Request], dict[Key, Experiment]]] = {
    "table1": plan.of_table1,
    "table2": plan.of_table2,
    "figure2": plan.of_figure2,
    "significance": plan.of_significance,
    "claims": variants.experiments,
    "class": class_incremental.experiments,
    "features": features.experiments,
}
TABLES = {  # in the order of the document
    "table1": table1.tables,
    "significance": significance.tables,
    "table2": table2.tables,
    "claims": variants.tables,
    "class": class_incremental.tables,
    "features": features.tables,
}
NAMES: dict[str, tuple[Sequence[str], Sequence[str]]] = {  # that --only and --data know, if not the paper's
    "class": (class_incremental.NAMES, plan.DATA),
    "features": (tuple(features.METHODS), tuple(features.SOURCES)),
}
LARGE = ("claims", "class", "features")  # not parts of "all" with --fast
SLOW = ("prer", "dgr", "gem", "ewc")  # started first, so that no worker is still busy with them at the end


class Clock(NamedTuple):
    """The duration of the command that made most runs of a part."""

    folders: Sequence[str]  # of the runs that the command made
    workers: int
    seconds: float


def tables_of(
    part: str, request: Request, outcomes: Mapping[str, Mapping[Key, Outcome]], asked: Collection[Key] = ()
) -> list[Table]:
    """The tables of a part from all existing runs, with rows for the requested ones."""
    made = TABLES[part](request, outcomes[part], asked)
    return [*made, claims.table(request, outcomes)] if part == "claims" else made


def parts_of(part: str, fast: bool) -> list[str]:
    """The parts to make: the named one, or all of them for "all"."""
    return [name for name in NEEDED if part == name or (part == "all" and not (fast and name in LARGE))]


def reproduce(
    console: Console,
    part: str,
    request: Request,
    out: Path,
    workers: int | None = 1,
    engine: Callable[[int | None], Engine] = Local,
) -> None:
    """Make one of the paper's tables, its figure, or everything.

    Raises:
        RunError: a required run is missing; raised after everything else is done.
    """
    request.check(*NAMES.get(part, ()))
    whole = replace(request, only=())  # files include all existing runs; `only` limits only what is run and shown
    needed = {name: NEEDED[name](request) for name in parts_of(part, request.fast)}
    if not any(needed.values()):
        raise InputError(
            f"--only {','.join(request.only)} selects nothing of {part}; name one of its data sets or methods"
        )
    missing: set[str] = set()
    for name, experiments in needed.items():
        if experiments:
            # Times are measured with one run at a time on the machine.
            at_once = 1 if name == "table2" else workers
            ended = existing(experiments, out) if request.finished else None
            outcomes = ended or run_missing(console, name, experiments, out, at_once, engine)
            missing |= {outcome.folder.path.name for outcome in outcomes.values() if outcome.error}
            if name in TABLES:
                beside = TABLES if name == "claims" else (name,)  # claims are about runs of other parts, too
                every = {other: existing(NEEDED[other](whole), out) for other in beside}
                every[name] |= outcomes
                for table in tables_of(name, request, every, list(experiments)):
                    show(console, table)
                written = save(name, tables_of(name, whole, every), out)
                written += class_figure.write(whole, every[name], out) if name == "class" else []
                say(console, f"Written: {', '.join(map(str, written))}")
            else:
                missing |= plot(console, outcomes, out)
    if part == "all" and request.fast:
        for name in LARGE:
            say(console, f"{name} is skipped because it needs many runs; to run it: prer reproduce {name} --fast")
    if missing and not request.finished:
        what = "run is" if len(missing) == 1 else "runs are"
        raise RunError(f"{len(missing)} {what} missing; fix the errors above, then run the same command again")


def plot(console: Console, outcomes: Mapping[Key, Outcome], out: Path) -> set[str]:
    """Draw and save the figure of a run; return the names of runs for which that is not possible."""
    import_unconfigured()
    for outcome in outcomes.values():
        try:
            if outcome.error:
                raise InputError(outcome.error)
            what = figure2.remembered(outcome.folder.path)
            paths = figure2.save(figure2.plot(what), out)
            say(console, f"Written: {', '.join(map(str, paths))}")
            say(console, figure2.caption(what))
        except (InputError, RunError) as error:  # RunError: its data cannot be fetched
            say(console, f"no figure: {error}", "red")
            return {outcome.folder.path.name}
    return set()


def run_missing(
    console: Console,
    part: str,
    experiments: Mapping[Key, Experiment],
    out: Path,
    workers: int | None,
    engine: Callable[[int | None], Engine],
) -> dict[Key, Outcome]:
    """Run the unfinished experiments, resuming interrupted ones; return the outcomes of all."""
    every = list({experiment.hash: experiment for experiment in experiments.values()}.values())
    waiting = [experiment for experiment in every if ended_before(experiment, out) is None]
    if waiting:
        say(console, f"runs: {len(every)}; to do: {len(waiting)}; folder of runs: {out}")
    absent = unavailable(console, waiting)
    absent |= without_features(console, [e for e in waiting if e.stream.data not in absent])
    ready = [experiment for experiment in every if experiment not in waiting or experiment.stream.data not in absent]
    ready.sort(key=lambda experiment: experiment.learner.name not in SLOW)
    begin = time.perf_counter()
    ended = follow(console, engine(workers).run(ready, out), ready, out)
    made = [outcome.folder.path.name for outcome in ended if outcome.trained and not outcome.error]
    if workers:  # otherwise nobody knows how many runs there were at a time
        note_clock(console, out, part, Clock(made, workers, time.perf_counter() - begin))
    by_hash = {outcome.experiment.hash: outcome for outcome in ended}
    for experiment in every:
        if experiment.hash not in by_hash:
            error = absent[experiment.stream.data]
            by_hash[experiment.hash] = Outcome(experiment, RunFolder(experiment.path(out)), error, trained=False)
    return {key: by_hash[experiment.hash] for key, experiment in experiments.items()}


def note_clock(console: Console, out: Path, part: str, clock: Clock) -> None:
    """Save the total duration of the runs of a part, unless an earlier command made more of them."""
    known = clocks(out)
    if len(clock.folders) > len(known[part].folders if part in known else ()):
        plain = {name: of_part._asdict() for name, of_part in (known | {part: clock}).items()}
        try:
            replace_file(out / CLOCKS, json.dumps(plain, indent=1).encode() + b"\n")
        except OSError as error:  # not an error: the runs matter more than their duration
            say(console, f"warning: cannot write {out / CLOCKS}: {error.strerror}", "yellow")


def clocks(out: Path) -> dict[str, Clock]:
    """The command that made most runs of each part, by part."""
    try:
        found = json.loads(content(out / CLOCKS, MOST_BYTES))
        return {
            part: Clock(list(map(str, of["folders"])), int(of["workers"]), float(of["seconds"]))
            for part, of in found.items()
        }
    except (OSError, ValueError, TypeError, KeyError, AttributeError):  # missing or damaged: unknown
        return {}


def unavailable(console: Console, experiments: Sequence[Experiment]) -> dict[str, str]:
    """Fetch missing data sets; return the errors of those that cannot be fetched, by name."""
    absent = {}
    for name in sorted({e.stream.data for e in experiments if e.stream.data in CATALOGUE and not e.stream.is_there()}):
        try:
            with Downloads(console) as downloads:
                fetch(CATALOGUE[name], downloads)
        except (InputError, RunError) as error:
            absent[name] = str(error)
            say(console, f"{name}: {error}", "red")
    return absent


def without_features(console: Console, experiments: Sequence[Experiment]) -> dict[str, str]:
    """Compute missing features, which all runs then share; return the errors of data without them, by name."""
    streams = {e.stream.data: e.stream for e in experiments if e.stream.features}
    absent = {}
    for data, stream in streams.items():
        try:
            with Downloads(console) as downloads:
                stream.build(downloads)
        except InputError as error:
            absent[data] = str(error)
            say(console, f"{data}: {error}", "red")
    return absent


def existing(experiments: Mapping[Key, Experiment], out: Path) -> dict[Key, Outcome]:
    """The outcomes of these runs so far, without running anything."""
    outcomes = {}
    for key, experiment in experiments.items():
        outcomes[key] = ended_before(experiment, out) or not_finished(experiment, out)
    return outcomes


def not_finished(experiment: Experiment, out: Path) -> Outcome:
    """The outcome of a run without a result, with the reason if it failed."""
    folder = RunFolder(experiment.path(out))
    return Outcome(experiment, folder, folder.failure or NOT_RUN, trained=False)
