"""What a person sees of the benchmark: one table for each part."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from prer.terminal.console import say, whole

SHOWN = (1, 2, 5, 10, 20, 50, 100)  # tasks


def show(console: Console, record: dict[str, Any]) -> None:
    """All tables, and where they were made."""
    titles = {"steps": "A training step, one seed", "flow": "The flow, one seed"}
    for part, title in titles.items():
        whole(console, compared(title, record[part]))
    whole(console, seeds(record["seeds"]))
    whole(console, growth(record["growth"]))
    say(console, place(record["environment"]))


def compared(title: str, results: dict[str, Any]) -> Table:
    """Our milliseconds, and how many times as fast we are as each of the others."""
    others = list(dict.fromkeys(name for found in results.values() for name in found["times as fast as"]))
    header = ["", "ours, ms", *(f"{name}, ms" for name in others), *(f"times as fast as {name}" for name in others)]
    table = _table(f"{title}; below 1 is slower, quartiles of neighbouring turns in brackets", header)
    for name, found in results.items():
        times = [_milliseconds(found["median"].get(other)) for other in ("ours", *others)]
        table.add_row(name, *times, *(_ratio(found["times as fast as"].get(other)) for other in others))
    return table


def seeds(results: dict[str, Any]) -> Table:
    """Milliseconds of a step, and what a seed gains by company."""
    numbers = list(next(iter(results.values()))["median"])
    header = ["", *(f"{n} seeds, ms" if n != "1" else "1 seed, ms" for n in numbers)]
    header += [f"throughput of each of {n}" for n in numbers[1:]]
    table = _table("Seeds that train together; throughput of each, that of a seed alone being 1", header)
    for name, found in results.items():
        times = (_milliseconds(found["median"][n]) for n in numbers)
        table.add_row(name, *times, *(_ratio(found["throughput of a seed"][n]) for n in numbers[1:]))
    return table


def growth(results: dict[str, Any]) -> Table:
    """Milliseconds of a step and floats kept, task after task, and the last task over an early one."""
    tasks = len(next(iter(results.values()))["milliseconds"])
    shown, late = [t for t in SHOWN if t <= tasks], next(k for k in next(iter(results.values())) if " over " in k)
    table = _table(
        "Task after task, 8x8 pictures, one seed", ["", *(f"task {t}, ms" for t in shown), late, "floats kept"]
    )
    for name, found in results.items():
        times = (_milliseconds(found["milliseconds"][t - 1]) for t in shown)
        floats = found["memory floats"]
        table.add_row(name, *times, _ratio(found[late]), f"{floats[0]:,} to {floats[-1]:,}")
    return table


def place(environment: dict[str, Any]) -> str:
    """Hardware, versions and commit in one line."""
    hardware = environment["gpu"] if environment["device"] == "cuda" else f"{environment['processor']}, CPU"
    versions = {"torch": environment["packages"].get("torch"), **environment["peers"]}
    listed = ", ".join(f"{name} {version}" for name, version in versions.items())
    commit = environment["commit"] or "unknown"
    return f"On {hardware}, {environment['threads']} of {environment['cores']} cores; {listed}; commit {commit}"


def _table(title: str, header: Iterable[str]) -> Table:
    table = Table(title=Text(title), title_justify="left")
    for name in header:
        table.add_column(name, justify="right" if name else "left")
    return table


def _milliseconds(value: float | None) -> str:
    return "" if value is None else f"{value:.2f}"


def _ratio(found: dict[str, float] | None) -> str:
    return "" if found is None else f"{found['median']:.2f} ({found['low']:.2f} to {found['high']:.2f})"
