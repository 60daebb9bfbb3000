"""The events of a run as scalars, as every tracker of experiments takes them: a name, a step, a value.

Any tracker is fed in a few lines; here MLflow:

    with mlflow.start_run(run_name=run.name):
        for scalar in scalars(run):
            mlflow.log_metric(f"seed {scalar.seed}/{scalar.name}", scalar.value, step=scalar.step)
"""

# S seeds

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from stat import S_ISREG
from typing import Any, NamedTuple

from prer.record import Record

MOST_LINE = 2**24  # characters of an event that is looked at


class Scalar(NamedTuple):
    """One number of one seed."""

    seed: int
    name: str
    step: int  # an epoch of a phase, counted through all tasks, or a task
    value: float


def scalars(run: Path, follow: bool = False, pause: float = 1.0) -> Iterator[Scalar]:
    """All numbers of a run's events, in their order; with `follow` until the run ends or is stopped."""
    record = Record(run)
    seeds = [seed for seed in record.experiment.get("seeds", []) if type(seed) is int]
    for event in events(record, follow, pause):
        try:
            yield from of_event(event, seeds)
        except (KeyError, TypeError, ValueError, AttributeError):  # not one of ours
            continue


def of_event(event: dict[str, Any], seeds: list[int]) -> Iterator[Scalar]:
    """The numbers of one event: losses of an epoch, accuracies after a task, the health of a class."""
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


def events(record: Record, follow: bool = False, pause: float = 1.0) -> Iterator[dict[str, Any]]:
    """The events that are whole; with `follow` also those that come while the run is running."""
    position = 0
    while True:
        ended = not record.running()  # asked before reading: what comes before is then there
        try:
            if not S_ISREG((record.path / "events.jsonl").lstat().st_mode):
                return  # a pipe would keep us waiting
            with (record.path / "events.jsonl").open("rb") as file:
                file.seek(0, 2)
                position = position if position <= file.tell() else 0  # the run began anew
                file.seek(position)
                for line in iter(lambda: file.readline(MOST_LINE), b""):
                    if not line.endswith(b"\n") and len(line) < MOST_LINE:
                        break  # it is being written
                    position = file.tell()
                    event = _parsed(line)
                    if event is not None:
                        yield event
        except FileNotFoundError:
            pass
        if ended or not follow:
            return
        time.sleep(pause)


def _parsed(line: bytes) -> dict[str, Any] | None:
    try:
        event = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return event if isinstance(event, dict) else None
