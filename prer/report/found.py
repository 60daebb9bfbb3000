"""What lies in the folders that were given: runs, whole or half or broken, folders of runs, or something else."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from prer.disk import MOST_TOML, content
from prer.errors import InputError
from prer.record import Record
from prer.report.story import Story
from prer.report.wording import text

SIGNS = ("experiment.toml", "result.json", "events.jsonl")


@dataclass
class Run:
    """A run as far as it can be read.

    Attributes:
        path: its folder.
        state: finished, not finished, failed, or damaged.
        notes: what is wrong or missing, a sentence each.
        result: what result.json says, or None.
        experiment: what experiment.toml says; empty where it cannot be read.
        toml: the same as it stands there.
    """

    path: Path
    state: str = "finished"
    notes: list[str] = field(default_factory=list)
    result: dict[str, Any] | None = None
    experiment: dict[str, Any] = field(default_factory=dict)
    toml: str = ""

    @classmethod
    def read(cls, path: Path) -> Run:
        """All of a run but for its events, which are read when they are needed."""
        run, record = cls(path), Record(path)
        try:
            run.experiment = record.experiment
            run.toml = content(path / "experiment.toml", MOST_TOML).decode("utf-8")
        except (InputError, OSError, ValueError):
            run.state = "damaged"
            run.notes.append("its experiment.toml is missing or cannot be read, so its settings are not known")
        try:
            run.result = record.result
        except InputError:
            run.state = "damaged"
            run.notes.append("its result.json is damaged; what is shown comes from its events")
        if run.result is None and run.state != "damaged":
            run.state = "failed" if run.story.failure else "not finished"
            run.notes.append(run.progress())
        return run

    def progress(self) -> str:
        """How far a run is that has no result."""
        story, done = self.story, self.matrix.shape[1]
        if story.complaint:
            return f"it is not finished, and {story.complaint}"
        last = story.last
        if story.failure:
            return f"it failed; tasks learned: {done}; it said: {story.failure}"
        if not last:
            return f"it is not finished; tasks learned: {done}"
        epoch = f"epoch {text(last.get('epoch', 0) + 1 if type(last.get('epoch')) is int else '?')}"
        where = f"{epoch} of {text(last.get('epochs', '?'), 20)} in phase {text(last['phase'], 60)}"
        return f"it is not finished; tasks learned: {done}; last seen: task {last['task'] + 1}, {where}"

    @cached_property
    def story(self) -> Story:
        """What its events tell."""
        return Story.read(self.path)

    @cached_property
    def matrix(self) -> np.ndarray:
        """R [S, M, M], of the result or of the tasks that are learned so far."""
        return np.array(self.result["matrix"], float) if self.result else self.story.matrix()

    @property
    def name(self) -> str:
        """The name of its folder, without the way there, which concerns nobody whom the page is sent to."""
        return text(self.path.resolve().name)

    @property
    def seeds(self) -> list[str]:
        """Its seeds, as they are called."""
        seeds = (self.result or self.experiment).get("seeds")
        return [text(seed, 40) for seed in seeds] if isinstance(seeds, list) else []

    def about(self, key: str) -> str:
        """The name of its learner or of its stream."""
        if self.result:
            return text(self.result[key])
        table = self.experiment.get(key)
        return text(table.get("name" if key == "learner" else "data", "–")) if isinstance(table, dict) else "–"


def runs_in(folders: Iterable[Path]) -> tuple[list[Run], list[str]]:
    """The runs in these folders, each once, and a sentence about every folder that holds none."""
    paths, complaints = folders_in(folders)
    return [Run.read(path) for path in paths], complaints


def folders_in(folders: Iterable[Path]) -> tuple[list[Path], list[str]]:
    """The same, but nothing is read yet."""
    found: dict[Path, Path] = {}
    complaints = []
    for folder in folders:
        here = list(_runs(folder))
        for path in here:
            found.setdefault(path.resolve(), path)
        if not here:
            what = "is empty" if _is_empty(folder) else "holds no run" if folder.is_dir() else "is no folder"
            complaints.append(f"{text(folder.name or folder)} {what}")
    return list(found.values()), complaints


def _runs(folder: Path) -> Iterator[Path]:
    """The folder itself where it is a run, otherwise the runs in it."""
    try:
        if _is_run(folder):
            yield folder
        elif folder.is_dir():
            yield from sorted(path for path in folder.iterdir() if path.is_dir() and _is_run(path))
    except OSError:
        return


def _is_run(folder: Path) -> bool:
    return any((folder / name).is_file() for name in SIGNS)


def _is_empty(folder: Path) -> bool:
    try:
        return folder.is_dir() and not any(folder.iterdir())
    except OSError:
        return False
