"""The view of one run on the page: tables and figures."""

# S seeds, M tasks

from __future__ import annotations

import base64
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

import numpy as np

from prer.report.events import fading
from prer.report.formatting import is_number, metric, settings, shade_from, signed, size, with_spread
from prer.report.memory import remembered
from prer.report.model_view import MOST_CLASSES, MemoryView
from prer.report.page_figures import PageFigures, kept
from prer.report.run import Run
from prer.runs.folder import RunFolder
from prer.text import clock, excerpt
from prer.training.fading import LOW_AGREEMENT

METRICS = (  # key in result.json, name on the page, formula
    (
        "accuracy",
        "Accuracy",
        "2 / (M (M + 1)) · Σ R[i][j] over all j ≤ i: the mean of the lower triangle of the matrix",
    ),
    ("bwt", "BWT, backward transfer", "2 / (M (M − 1)) · Σ (R[i][j] − R[j][j]) over all j < i; below 0 is forgetting"),
    ("final_accuracy", "Final accuracy", "1 / M · Σ R[M][j]: the mean over all tasks after the last"),
    (
        "average_incremental_accuracy",
        "Average incremental accuracy",
        "1 / M · Σ (1 / i · Σ R[i][j] over j ≤ i) over i: the mean accuracy on all tasks seen, over all tasks",
    ),
    ("final_bwt", "Final BWT", "1 / (M − 1) · Σ (R[M][j] − R[j][j]) over all j < M, as in GEM"),
    ("forgetting_first", "Forgetting since learned", "1 / (M − 1) · Σ (R[j][j] − R[M][j]) over j < M"),
    ("forgetting_best", "Forgetting since best", "1 / (M − 1) · Σ (max R[i][j] over j ≤ i < M − R[M][j]) over j < M"),
    (
        "forward_transfer",
        "Forward transfer",
        "1 / (M − 1) · Σ (R[i − 1][i] − b[i]), where b[i] is the accuracy before training; defined only if tasks share "
        "a head",
    ),
)
GIVEN = "final_accuracy_task_given"
CLASS_METRICS = (  # metrics of the scenario "class", or with another formula in it
    (
        "final_accuracy",
        "Final accuracy, all classes",
        "correct predictions / test samples of all classes after the last task, if the task of a sample is not given",
    ),
    (
        GIVEN,
        "Final accuracy, task given",
        "the same, where only the classes of a sample’s task are candidates",
    ),
)
CARDS = {  # the main metrics by scenario
    "class": ("final_accuracy", "average_incremental_accuracy", GIVEN, "bwt", "forgetting_best"),
    "task": ("accuracy", "bwt", "forgetting_best", "forward_transfer"),
}
MOST_TASKS = 40  # tasks of a matrix that is shown as a table
MOST_CELLS = 10_000  # cells of all matrices of single seeds
MOST_ROWS = 200  # rows of other tables
MOST_WARNINGS = 10  # maximum of each kind; the newest warnings about fading classes
KEPT = ("memory_samples", "memory_floats", "memory_bytes", "transient_floats")
UNSENT = ("folder", "context", "warnings")  # parts of the environment that are private or shown elsewhere


@dataclass
class View:
    """Values of one run for the page template."""

    run: Run
    number: int
    full: bool  # with figures, or compact because there are many runs
    plots: PageFigures
    memory: MemoryView | None = None
    environment: list[tuple[str, str]] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)

    @property
    def by_class(self) -> bool:
        """Whether the task of a test sample is not given."""
        return self.run.scenario == "class"

    @property
    def heats(self) -> list[dict[str, Any]]:
        """The matrix and, in the scenario "class", the matrix with the task given; none that is empty or too large."""
        if not self.by_class:
            return [
                {"title": "The matrix", "among": "", "id": f"m{self.number}"} | heat for heat in (self.heat,) if heat
            ]
        titles = ("The matrix, task not given", "The matrix, task given")
        among = (", if the task of a sample is not given", ", if only the classes of a sample’s task are candidates")
        about = [{"title": titles[i], "among": among[i], "id": f"m{self.number}{'-given' * i}"} for i in range(2)]
        found = (self.heat, self._heat_of(self.run.matrix_task_given))
        return [words | heat for words, heat in zip(about, found, strict=True) if heat]

    @property
    def heat(self) -> dict[str, Any] | None:
        """The matrix, mean over seeds and of each seed, as texts and shades; None where it is empty or too large."""
        return self._heat_of(self.run.matrix)

    def _heat_of(self, R: np.ndarray) -> dict[str, Any] | None:
        if R.size == 0 or R.shape[1] > MOST_TASKS:
            return None
        lowest = shade_from(R)
        each = {"mean": R.mean(0)}
        if self.full and R.size <= MOST_CELLS:
            each |= {f"seed {seed}": of_seed for seed, of_seed in zip(self.run.seeds, R, strict=False)}
        tables = {name: [[_cell(v, lowest) for v in row] for row in values] for name, values in each.items()}
        return {"tables": tables, "lowest": lowest, "M": R.shape[1], "S": len(R)}

    @property
    def metrics(self) -> list[dict[str, Any]]:
        """Every metric with its name, formula and values."""
        found = []
        known = {key: (key, name, formula) for key, name, formula in METRICS}
        if self.by_class:
            known |= {key: (key, name, formula) for key, name, formula in CLASS_METRICS}
        for key, name, formula in known.values():
            value = metric(self.run.result, key)
            found.append({"key": key, "name": name, "formula": formula, "value": value, "shown": with_spread(value)})
        return found

    @property
    def cards(self) -> list[dict[str, Any]]:
        """The main metrics, shown first, and in the scenario "class" the size of the memory."""
        found = {of["key"]: of for of in self.metrics}
        if not self.by_class:
            return [found[key] for key in CARDS["task"]]
        size_kept, samples = (kept(self.run, key, self.run.matrix.shape[1] - 1) for key in KEPT[2::-2])
        formula = (
            f"bytes that the memory has on disk after the last task, for one seed; samples kept: {_count(samples)}"
        )
        card = {
            "key": "memory_bytes",
            "name": "Memory",
            "formula": formula,
            "value": size_kept,
            "shown": size(size_kept),
        }
        return [*(found[key] for key in CARDS["class"]), card]

    @property
    def per_task(self) -> list[dict[str, str]]:
        """Training seconds and memory of every task."""
        times = self.run.story.seconds_by_task()
        tasks = min(self.run.matrix.shape[1], MOST_ROWS)
        rows = []
        for task in range(tasks):
            left = {key: _count(kept(self.run, key, task)) for key in KEPT}
            spent = {phase: f"{values[task]:.1f}" if task < len(values) else "–" for phase, values in times.items()}
            rows.append({"task": str(task + 1)} | spent | left)
        return rows

    @property
    def phases(self) -> dict[str, str]:
        """Seconds of the whole run by phase."""
        found = self.run.result["seconds"] if self.run.result else {}
        return {excerpt(k, 60): clock(v) for k, v in found.items() if is_number(v) and 0 <= v < 1e9}

    @property
    def agreement(self) -> dict[str, Any] | None:
        """Class agreement after each task, and which classes fade; None if it was not measured."""
        labels, values = self.run.story.agreement()
        if not labels:
            return None
        first = max(values.shape[1] - MOST_TASKS, 0)
        each = list(zip(labels, values, fading(values), strict=True))
        if len(each) > MOST_ROWS:
            each.sort(key=lambda of_class: not of_class[2])  # those that fade come first
        rows = [
            {"label": label, "fades": fades, "cells": [_cell(v, 0.0) for v in of_class[first:]]}
            for label, of_class, fades in each[:MOST_ROWS]
        ]
        return {
            "rows": rows,
            "tasks": range(first + 1, values.shape[1] + 1),
            "low": 100 * LOW_AGREEMENT,
            "all": len(each),
        }

    @property
    def health(self) -> list[dict[str, Any]]:
        """The latest health figures of each class, mean over seeds."""
        found = []
        for label, by_task in islice(self.run.story.health.items(), MOST_ROWS):
            last = max(by_task)
            found.append({"label": label} | {name: f"{np.mean(v):.3g}" for name, v in by_task[last].items()})
        return found

    @property
    def settings(self) -> list[tuple[str, str]]:
        """All settings of the experiment."""
        return settings(self.run.experiment)

    @property
    def download(self) -> str:
        """The experiment file as a data URL."""
        return "data:application/toml;base64," + base64.b64encode(self.run.toml.encode()).decode()

    @property
    def figures(self) -> Iterator[dict[str, Any]]:
        """Accuracy over time, losses, time, memory: those for which there is data."""
        yield from self.plots.of_run(self.run) if self.full else ()

    @property
    def cards_of_classes(self) -> list[dict[str, Any]]:
        """Figures of the memory's samples and embeddings of each class."""
        memory = self.memory
        return self.plots.of_classes(memory.classes[:MOST_CLASSES]) if memory and memory.generates else []

    @property
    def classes_found(self) -> dict[str, Any] | None:
        """The confusion matrix as a figure and the accuracy of each class; None except in the scenario "class"."""
        found = self.run.confusion
        if found is None:
            return None
        rows = found.rows
        if len(rows) > MOST_ROWS:
            rows.sort(key=lambda of: np.mean(of["accuracies"]) if of["accuracies"] else np.inf)  # the worst first
        return {
            "figure": self.plots.of_confusion(found) if self.full else None,
            "rows": [_class_row(row) for row in rows[:MOST_ROWS]],
            "all": len(rows),
        }

    @property
    def classes(self) -> list[tuple[str, str]]:
        """The final accuracy of each class, where it is known and not in `classes_found`."""
        if self.run.confusion is not None:
            return []
        known = [c for c in self.memory.classes if c.accuracy] if self.memory else []
        return [(c.label, _spread(c.accuracy or [])) for c in known[:MOST_ROWS]]


def view(run: Run, number: int, full: bool, load: bool, plots: PageFigures) -> View:
    """The view of one run; with `full` its figures, with `load` its memory."""
    record = RunFolder(run.path)
    environment = settings({key: value for key, value in record.environment.items() if key not in UNSENT})
    warnings = [excerpt(warning, 1000) for warning in record.warnings[:MOST_WARNINGS]]
    if full:
        warnings += list(run.story.warnings.values())[-MOST_WARNINGS:]
    return View(run, number, full, plots, remembered(run) if load else None, environment, warnings)


def _cell(value: float, lowest: float) -> dict[str, Any]:
    shade = 0 if np.isnan(value) else round(100 * max(value - lowest, 0) / (100 - lowest))
    return {"shown": signed(value), "value": None if np.isnan(value) else float(value), "shade": shade}


def _class_row(row: dict[str, Any]) -> dict[str, Any]:
    """A row of the table of classes."""
    known, mistaken = row["accuracies"], row["mistaken"]
    return {
        "label": row["label"],
        "shown": _spread(known) if known else "–",
        "value": float(np.mean(known)) if known else None,
        "mistaken": "–" if mistaken is None else mistaken,
        "share": "" if mistaken is None else f"{row['share']:.1f}",
    }


def _count(value: float | None) -> str:
    return "–" if value is None else f"{value:,}"


def _spread(values: list[float]) -> str:
    std = f" ± {np.std(values, ddof=1):.2f}" if len(values) > 1 else ""
    return f"{np.mean(values):.2f}{std}"
