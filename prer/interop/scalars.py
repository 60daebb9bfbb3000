"""The events of a run as scalars (name, step, value), which every experiment tracker accepts.

A few lines send them to any tracker, here MLflow:

    with mlflow.start_run(run_name=run.name):
        for scalar in scalars(run):
            mlflow.log_metric(f"seed {scalar.seed}/{scalar.name}", scalar.value, step=scalar.step)
"""

# S seeds

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from prer.runs.experiment import seeds_of
from prer.runs.folder import RunFolder


class Scalar(NamedTuple):
    """One scalar of one seed."""

    seed: int
    name: str
    step: int  # an epoch of a phase, counted through all tasks, or a task
    value: float


def scalars(run: Path, follow: bool = False, pause: float = 1.0) -> Iterator[Scalar]:
    """Yield all scalars of a run's events, in order; with `follow`, until the run ends or is stopped."""
    folder = RunFolder(run)
    seeds = seeds_of(folder.experiment)
    for event in folder.events(follow, pause):
        try:
            yield from of_event(event, seeds)
        except (KeyError, TypeError, ValueError, AttributeError):  # not an event of prer
            continue


def of_event(event: dict[str, Any], seeds: Sequence[int]) -> Iterator[Scalar]:
    """Yield the scalars of one event: losses of an epoch, accuracies after a task, the health of a class."""
    kind, task = event["event"], event["task"]
    if kind == "epoch":
        step = task * event["epochs"] + event["epoch"]
        named = {f"loss/{event['phase']}": event["loss"], f"seconds/{event['phase']}": [event["seconds"]] * len(seeds)}
    elif kind == "task":
        step, named = task, {f"memory/{key}": [event[key]] * len(seeds) for key in event if key.startswith("memory")}
        for j, of_task in enumerate(zip(*event["accuracy"], strict=True), 1):
            named[f"accuracy/task {j}"] = list(of_task)
    elif kind == "health":
        step, about = task, f"class {event['class']}"
        named = {f"{key}/{about}": event[key] for key in ("agreement", "agreement_decoded", "nll") if key in event}
    else:
        return
    for name, values in named.items():
        for seed, value in zip(seeds, values, strict=True):
            if value is not None and abs(step) < 2**62:  # None: it was not finite
                yield Scalar(seed, name, int(step), float(value))
