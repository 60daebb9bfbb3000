"""The tables of the benchmark, one for each part."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from prer.terminal.console import say, whole


def show(console: Console, record: dict[str, Any]) -> None:
    """Print all tables, and the environment in which they were measured."""
    titles = {"steps": "A training step, one seed", "flow": "The flow, one seed"}
    for part, title in titles.items():
        if part in record:
            whole(console, compared(title, record[part]))
    whole(console, seeds(record["seeds"]))
    say(console, place(record["environment"]))


def compared(title: str, results: dict[str, Any]) -> Table:
    """Table of milliseconds, and of our speed-up over each of the others."""
    others = list(dict.fromkeys(name for found in results.values() for name in found["times as fast as"]))
    header = ["", "ours, ms", *(f"{name}, ms" for name in others), *(f"times as fast as {name}" for name in others)]
    table = new_table(f"{title}; below 1: ours is slower; in brackets: quartiles over neighbouring turns", header)
    for name, found in results.items():
        times = [milliseconds(found["median"].get(other)) for other in ("ours", *others)]
        table.add_row(name, *times, *(ratio_text(found["times as fast as"].get(other)) for other in others))
    return table


def seeds(results: dict[str, Any]) -> Table:
    """Table of milliseconds a step, and of each seed's throughput relative to a seed alone."""
    numbers = list(next(iter(results.values()))["median"])
    header = ["", *(f"{n} seeds, ms" if n != "1" else "1 seed, ms" for n in numbers)]
    header += [f"throughput of each of {n}" for n in numbers[1:]]
    table = new_table("Seeds trained together; throughput of each, relative to a seed alone", header)
    for name, found in results.items():
        times = (milliseconds(found["median"][n]) for n in numbers)
        table.add_row(name, *times, *(ratio_text(found["throughput of a seed"][n]) for n in numbers[1:]))
    return table


def place(environment: dict[str, Any]) -> str:
    """Hardware, versions and commit in one line."""
    hardware = environment["gpu"] if environment["device"] == "cuda" else f"{environment['processor']}, CPU"
    versions = {"torch": environment["packages"].get("torch"), **environment.get("peers", {})}
    listed = ", ".join(f"{name} {version}" for name, version in versions.items())
    commit = environment["commit"] or "unknown"
    return f"On {hardware}, {environment['threads']} of {environment['cores']} cores; {listed}; commit {commit}"


def new_table(title: str, header: Iterable[str]) -> Table:
    """A table whose first column is text."""
    table = Table(title=Text(title), title_justify="left")
    for name in header:
        table.add_column(name, justify="right" if name else "left")
    return table


def milliseconds(value: float | None) -> str:
    """A time as text; empty if there is none."""
    return "" if value is None else f"{value:.2f}"


def ratio_text(found: dict[str, float] | None) -> str:
    """The median with its quartiles as text; empty if there is none."""
    return "" if found is None else f"{found['median']:.2f} ({found['low']:.2f} to {found['high']:.2f})"
