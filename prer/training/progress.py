"""How long training still takes, from the events of its epochs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def time_left(event: Mapping[str, Any], tasks: int, phases: Mapping[str, int], pace: Mapping[str, float]) -> float:
    """Estimated seconds left, each phase at the pace of its newest epoch (unknown ones at the mean pace).

    Args:
        event: the event of the last epoch.
        tasks: number of tasks in all.
        phases: epochs of each phase of a task.
        pace: seconds of the newest epoch of each phase so far.
    """
    names = list(phases)
    at = names.index(event["phase"])
    usual = sum(pace.values()) / len(pace)
    ahead = {name: epochs * (tasks - 1 - event["task"]) for name, epochs in phases.items()}
    ahead[event["phase"]] += event["epochs"] - 1 - event["epoch"]
    for name in names[at + 1 :]:
        ahead[name] += phases[name]
    return sum(epochs * pace.get(name, usual) for name, epochs in ahead.items())
