"""Progress of a lesson as plain lines, for Python users."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any

from prer.text import clock
from prer.training.progress import time_left


class Lines:
    """Writes a line to standard error after each phase; on a terminal, one line that changes after each epoch.

    Args:
        lesson: number of the lesson, from 1.
        phases: epochs of each of its phases.
    """

    def __init__(self, lesson: int, phases: Mapping[str, int]) -> None:
        self.lesson, self.phases, self.pace = lesson, dict(phases), dict[str, float]()

    def __call__(self, event: dict[str, Any]) -> None:
        """Write the progress after an epoch."""
        if event["event"] != "epoch":
            return
        self.pace[event["phase"]] = event["seconds"]
        live, last = sys.stderr.isatty(), event["epoch"] + 1 == event["epochs"]
        if live or last:
            left = clock(time_left(event | {"task": 0}, 1, self.phases, self.pace))
            text = (
                f"lesson {self.lesson}  {event['phase']:<11}  epoch {event['epoch'] + 1}/{event['epochs']}  {left} left"
            )
            over = last and event["phase"] == list(self.phases)[-1]
            sys.stderr.write(f"\r{text:<78}" + "\n" * over if live else f"{text}\n")
            sys.stderr.flush()


def counted(what: str, done: int, total: int, unit: str) -> None:
    """Write how many samples are done: on a terminal one line that changes, else a line at the end."""
    live, last = sys.stderr.isatty(), done == total
    if live or last:
        text = f"{what}: {done:,} of {total:,} {unit}"
        sys.stderr.write(f"\r{text:<78}" + "\n" * last if live else f"{text}\n")
        sys.stderr.flush()
