"""The events of a run, finished or not: accuracies, losses, the memory's health, time."""

# S seeds, M tasks

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from stat import S_ISREG
from typing import Any

import numpy as np

from prer.errors import InputError
from prer.report.formatting import numbers
from prer.runs.folder import RunFolder
from prer.text import excerpt
from prer.training.fading import Fading, agreement, fades

MOST_TASKS, MOST_SEEDS, MOST_CLASSES, MOST_PHASES = 2000, 1000, 5000, 20  # more are not shown
MOST_CELLS = 6e6  # maximum number of cells in the matrices of all seeds
HEALTH = ("agreement", "agreement_decoded", "reconstruction", "distance", "nll")


@dataclass
class RunEvents:
    """The events of a run by kind; invalid ones are skipped and counted."""

    rows: dict[int, list[list[float]]] = field(default_factory=dict)  # task: accuracy [S][tasks so far]
    kept: dict[int, dict[str, Any]] = field(default_factory=dict)  # task: its event, with the size of the memory
    losses: dict[str, list[tuple[int, list[float]]]] = field(default_factory=dict)  # phase: (task, loss [S]) by epoch
    seconds: dict[str, dict[int, float]] = field(default_factory=dict)  # phase: task: seconds
    health: dict[str, dict[int, dict[str, list[float]]]] = field(default_factory=dict)  # class: task: figure: [S]
    met: dict[tuple[str, int], int] = field(default_factory=dict)  # (label, task): number of health events
    warnings: dict[int, str] = field(default_factory=dict)  # task: the warning after it
    faded: Fading = field(default_factory=Fading)
    last: dict[str, Any] = field(default_factory=dict)  # the last epoch
    strange: int = 0  # number of invalid lines
    complaint: str = ""
    failure: str = ""  # why it failed, unless later events follow

    @classmethod
    def read(cls, folder: Path) -> RunEvents:
        """Read the events of a run folder, if there are any."""
        story = cls()
        try:
            if not S_ISREG((folder / "events.jsonl").lstat().st_mode):
                raise OSError("not a regular file; reading a pipe could block")
            for event in RunFolder(folder).events():
                try:
                    story.take(event)
                except (ValueError, TypeError, KeyError):
                    story.strange += 1
        except FileNotFoundError:
            story.complaint = "it has no events yet"
        except (InputError, OSError):
            story.complaint = "its events cannot be read"
        return story

    def take(self, event: dict[str, Any]) -> None:
        """Add one event; raise ValueError, TypeError or KeyError if it is invalid."""
        if event.get("event") == "failed":
            self.failure = excerpt(event["reason"], 500)
            return
        kind, task = event["event"], event["task"]
        self.failure = ""  # the run was tried again
        if type(task) is not int or not 0 <= task < MOST_TASKS:
            raise ValueError("invalid task number")
        for warning in self.faded.warnings(event):
            self.warnings[task] = excerpt(warning, 1000)
        if kind == "task":
            self.rows[task] = [_known(of_seed) for of_seed in event["accuracy"][:MOST_SEEDS]]
            self.kept[task] = event
        elif kind == "epoch":
            phase, seconds = excerpt(event["phase"], 60), _known([event["seconds"]])[0]
            _room(self.losses, phase, MOST_PHASES)
            self.losses.setdefault(phase, []).append((task, _known(event["loss"])))
            of_phase = self.seconds.setdefault(phase, {})
            of_phase[task] = of_phase.get(task, 0.0) + seconds
            self.last = event
        elif kind == "health":
            figures = {name: values for name in HEALTH if (values := numbers(event.get(name)))}
            name = self._name(excerpt(event["class"]), task)
            _room(self.health, name, MOST_CLASSES)
            self.health.setdefault(name, {})[task] = figures

    def _name(self, label: str, task: int) -> str:
        """The name of a class; if several tasks share its label, their health events come in the order of the tasks."""
        self.met[label, task] = self.met.get((label, task), 0) + 1
        return label if self.met[label, task] == 1 else f"{label}, task {self.met[label, task]}"

    def matrix(self) -> np.ndarray:
        """R [S, M, M] of the tasks learned so far; NaN where not evaluated."""
        done = 0
        while done in self.rows and len(self.rows[0]) * (done + 1) ** 2 < MOST_CELLS:
            done += 1
        S = len(self.rows[0]) if done else 0
        R = np.full((S, done, done), np.nan)
        for i in range(done):
            row = np.array([(of_seed + [np.nan] * done)[:done] for of_seed in self.rows[i]], float)
            if row.shape == (S, done):
                R[:, i] = row
        return R

    def loss_of(self, phase: str) -> tuple[np.ndarray, list[int]]:
        """The losses of a phase [epochs, S], and the index of each task's first epoch."""
        pairs = self.losses[phase]
        S = len(pairs[0][1])
        pairs = [(task, values) for task, values in pairs if len(values) == S]
        starts = [i for i, (task, _) in enumerate(pairs) if i == 0 or task != pairs[i - 1][0]]
        return np.array([values for _, values in pairs], float).reshape(len(pairs), S), starts

    def seconds_by_task(self) -> dict[str, list[float]]:
        """Seconds of each phase for each task; 0 where it has none."""
        tasks = max((task for of_phase in self.seconds.values() for task in of_phase), default=-1) + 1
        return {phase: [of_phase.get(task, 0.0) for task in range(tasks)] for phase, of_phase in self.seconds.items()}

    def agreement(self) -> tuple[list[str], np.ndarray]:
        """Classes, and per cent of their samples that the worst seed recognises [classes, M]; NaN: not measured."""
        tasks = max((task for of_class in self.health.values() for task in of_class), default=-1) + 1
        values = np.full((len(self.health), tasks), np.nan)
        for i, of_class in enumerate(self.health.values()):
            for task, figures in of_class.items():
                share = agreement(figures)
                values[i, task] = np.nan if share is None else 100 * share
        return list(self.health), values


def fading(percent: np.ndarray) -> list[bool]:
    """Which classes fade, by their last measured agreement [classes, M].

    Example:
        >>> fading(np.array([[99.0, 75.0], [np.nan, 97.0]]))
        [True, False]
    """
    known = [of_class[np.isfinite(of_class)] for of_class in percent]
    return [bool(len(of_class) and fades(of_class[-1] / 100)) for of_class in known]


def _room(found: dict[str, Any], name: str, most: int) -> None:
    """Refuse more than `most` names; no real run has so many."""
    if name not in found and len(found) >= most:
        raise ValueError("too many")


def _known(values: object) -> list[float]:
    found = numbers(values)
    if not found:
        raise ValueError("not a list of numbers")
    return found
