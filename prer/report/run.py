"""A run as read from its folder, which may be complete, unfinished or damaged."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from prer.disk import MOST_TOML, content
from prer.errors import InputError
from prer.report.confusion import Confusion
from prer.report.events import RunEvents
from prer.runs.discovery import discover
from prer.runs.folder import RunFolder
from prer.text import excerpt


@dataclass
class Run:
    """A run, as far as its folder can be read.

    Attributes:
        path: its folder.
        state: finished, not finished, failed, or damaged.
        notes: sentences about faults and missing files.
        result: the content of result.json, or None.
        experiment: the tables of experiment.toml; empty if it cannot be read.
        toml: the text of experiment.toml.
    """

    path: Path
    state: str = "finished"
    notes: list[str] = field(default_factory=list)
    result: dict[str, Any] | None = None
    experiment: dict[str, Any] = field(default_factory=dict)
    toml: str = ""

    @classmethod
    def read(cls, path: Path) -> Run:
        """Read a run, except for its events, which are read when needed."""
        run, record = cls(path), RunFolder(path)
        try:
            run.experiment = record.experiment
            run.toml = content(path / "experiment.toml", MOST_TOML).decode("utf-8")
        except (InputError, OSError, ValueError):
            run.state = "damaged"
            run.notes.append("its experiment.toml is missing or cannot be read, so its settings are unknown")
        try:
            run.result = record.result
        except InputError:
            run.state = "damaged"
            run.notes.append("its result.json is damaged; the numbers shown come from its events")
        if run.result is None and run.state != "damaged":
            run.state = "failed" if run.story.failure else "not finished"
            run.notes.append(run.progress())
        return run

    def progress(self) -> str:
        """A sentence on the progress of a run without a result."""
        story, done = self.story, self.matrix.shape[1]
        if story.complaint:
            return f"it is not finished, and {story.complaint}"
        last = story.last
        if story.failure:
            return f"it failed; tasks learned: {done}; error: {story.failure}"
        if not last:
            return f"it is not finished; tasks learned: {done}"
        epoch = f"epoch {excerpt(last.get('epoch', 0) + 1 if type(last.get('epoch')) is int else '?')}"
        where = f"{epoch} of {excerpt(last.get('epochs', '?'), 20)} in phase {excerpt(last['phase'], 60)}"
        return f"it is not finished; tasks learned: {done}; last event: task {last['task'] + 1}, {where}"

    @cached_property
    def story(self) -> RunEvents:
        """The events of the run."""
        return RunEvents.read(self.path)

    @cached_property
    def matrix(self) -> np.ndarray:
        """R [S, M, M], from the result or from the tasks learned so far."""
        return np.array(self.result["matrix"], float) if self.result else self.story.matrix()

    @cached_property
    def matrix_task_given(self) -> np.ndarray:
        """The same with the task given; empty except in the scenario "class" of a finished run."""
        given = self.result["matrix_task_given"] if self.result and self.scenario == "class" else []
        return np.array(given, float)

    @property
    def scenario(self) -> str:
        """What is asked at test time: "task", "class" or "domain"; results of earlier versions do not say it."""
        stream = self.experiment.get("stream")
        asked = (
            self.result.get("scenario") if self.result else stream.get("scenario") if isinstance(stream, dict) else ""
        )
        return asked if isinstance(asked, str) and asked in ("class", "domain") else "task"

    @cached_property
    def confusion(self) -> Confusion | None:
        """The confusion matrix after the last task; None except in the scenario "class"."""
        return Confusion.of(self.result) if self.result and self.scenario == "class" else None

    @property
    def main_metric(self) -> str:
        """The key of the metric by which runs of this scenario are compared."""
        return "final_accuracy" if self.scenario == "class" else "accuracy"

    @property
    def name(self) -> str:
        """The name of its folder, without the path, which readers of the page should not see."""
        return excerpt(self.path.resolve().name)

    @property
    def seeds(self) -> list[str]:
        """Its seeds as text."""
        seeds = (self.result or self.experiment).get("seeds")
        return [excerpt(seed, 40) for seed in seeds] if isinstance(seeds, list) else []

    def about(self, key: str) -> str:
        """The name of its learner or of its stream."""
        if self.result:
            return excerpt(self.result[key])
        table = self.experiment.get(key)
        return excerpt(table.get("name" if key == "learner" else "data", "–")) if isinstance(table, dict) else "–"


def runs_in(folders: Iterable[Path]) -> tuple[list[Run], list[str]]:
    """The runs in these folders, each once, and a sentence about every folder that holds none."""
    paths, empty = discover(folders)
    return [Run.read(path) for path in paths], [_complaint(folder) for folder in empty]


def _complaint(folder: Path) -> str:
    try:
        nothing = folder.is_dir() and not any(folder.iterdir())
    except OSError:
        nothing = False
    what = "is empty" if nothing else "contains no run" if folder.is_dir() else "is not a folder"
    return f"{excerpt(folder.name or folder)} {what}"
