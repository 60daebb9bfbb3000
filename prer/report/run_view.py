"""One run as the page shows it: tables of numbers, and figures beside them."""

# S seeds, M tasks

from __future__ import annotations

import base64
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from markupsafe import Markup

from prer.console import clock
from prer.record import Record
from prer.report.found import Run
from prer.report.remembered import MOST_CLASSES, Remembered, remembered
from prer.report.story import FADES_BY, fading
from prer.report.wording import is_number, metric, plus_minus, settings, signed, text

METRICS = (  # in result.json, on the page, how it is computed
    ("accuracy", "Accuracy", "2 / (M (M + 1)) · Σ R[i][j] over all j ≤ i: the mean of the lower triangle of the matrix"),
    ("bwt", "BWT, backward transfer", "2 / (M (M − 1)) · Σ (R[i][j] − R[j][j]) over all j < i; below 0 is forgetting"),
    ("final_accuracy", "Final accuracy", "1 / M · Σ R[M][j]: the mean over all tasks after the last"),
    ("final_bwt", "Final BWT", "1 / (M − 1) · Σ (R[M][j] − R[j][j]) over j < M, as in GEM"),
    ("forgetting_first", "Forgetting since learned", "1 / (M − 1) · Σ (R[j][j] − R[M][j]) over j < M"),
    ("forgetting_best", "Forgetting since best", "1 / (M − 1) · Σ (max R[i][j] over j ≤ i < M − R[M][j]) over j < M"),
    (
        "forward_transfer",
        "Forward transfer",
        "1 / (M − 1) · Σ (R[i − 1][i] − b[i]), b[i] being the accuracy before anything is learned; only where tasks "
        "share a head",
    ),
)
CARDS = ("accuracy", "bwt", "forgetting_best", "forward_transfer")
MOST_TASKS = 40  # of a matrix that is shown as a table
MOST_ROWS = 200  # of other tables
UNSENT = ("folder", "context")  # of the environment: private, or said elsewhere


@dataclass
class View:
    """What the template asks for."""

    run: Run
    number: int
    full: bool  # with figures, or compact because there are many runs
    drawing: Drawing
    memory: Remembered | None = None
    environment: list[tuple[str, str]] = field(default_factory=list)

    @property
    def heat(self) -> dict[str, Any] | None:
        """The matrix, mean over seeds and of each seed, as texts and shades from 0 to 100; None: nothing, or too much."""
        R = self.run.matrix
        if R.size == 0 or R.shape[1] > MOST_TASKS:
            return None
        lowest = _shade_from(R)
        each = {"mean": R.mean(0)} | ({f"seed {s}": r for s, r in zip(self.run.seeds, R, strict=False)} if self.full else {})
        tables = {name: [[_cell(v, lowest) for v in row] for row in values] for name, values in each.items()}
        return {"tables": tables, "lowest": lowest, "M": R.shape[1], "S": len(R)}

    @property
    def metrics(self) -> list[dict[str, Any]]:
        """Every metric with its name, formula and values."""
        found = []
        for key, name, formula in METRICS:
            value = metric(self.run.result, key)
            found.append({"key": key, "name": name, "formula": formula, "value": value, "shown": plus_minus(value)})
        return found

    @property
    def cards(self) -> list[dict[str, Any]]:
        """The metrics that come first."""
        return [found for found in self.metrics if found["key"] in CARDS]

    @property
    def per_task(self) -> list[dict[str, str]]:
        """What every task took and left behind."""
        story, result = self.run.story, self.run.result
        times = story.seconds_by_task()
        tasks = min(max(len(self.run.matrix[0]) if self.run.matrix.size else 0, 0), MOST_ROWS)
        rows = []
        for task in range(tasks):
            kept = {key: _kept(result, story.kept, key, task) for key in ("memory_samples", "memory_floats", "transient_floats")}
            spent = {phase: f"{values[task]:.1f}" if task < len(values) else "–" for phase, values in times.items()}
            rows.append({"task": str(task + 1)} | spent | kept)
        return rows

    @property
    def phases(self) -> dict[str, str]:
        """Seconds of the whole run by phase."""
        found = self.run.result["seconds"] if self.run.result else {}
        return {text(k, 60): clock(v) for k, v in found.items() if is_number(v) and v >= 0}

    @property
    def agreement(self) -> dict[str, Any] | None:
        """Class agreement over time, with the classes that fade."""
        labels, values = self.run.story.agreement()
        if not labels:
            return None
        rows = [
            {"label": label, "fades": fades, "cells": [_cell(v, 0.0) for v in of_class]}
            for label, of_class, fades in zip(labels, values, fading(values), strict=True)
        ]
        return {"rows": rows[:MOST_ROWS], "M": values.shape[1], "more": len(rows) - MOST_ROWS, "by": FADES_BY}

    @property
    def health(self) -> list[dict[str, Any]]:
        """The last figures of health of each class, mean over seeds."""
        found = []
        for label, by_task in self.run.story.health.items():
            last = max(by_task)
            found.append({"label": label} | {name: f"{np.mean(v):.3g}" for name, v in by_task[last].items()})
        return found[:MOST_ROWS]

    @property
    def settings(self) -> list[tuple[str, str]]:
        """All settings of the experiment."""
        return settings(self.run.experiment)

    @property
    def download(self) -> str:
        """The experiment as an address that holds all of it."""
        return "data:application/toml;base64," + base64.b64encode(self.run.toml.encode()).decode()

    @property
    def figures(self) -> Iterator[dict[str, Any]]:
        """Accuracy over time, losses, time, memory: those for which there is something to draw."""
        yield from self.drawing.of_run(self.run) if self.full else ()

    @property
    def cards_of_classes(self) -> list[dict[str, Any]]:
        """What is remembered of each class, with its figures."""
        memory = self.memory
        return self.drawing.of_classes(memory.classes[:MOST_CLASSES]) if memory and memory.generates else []

    @property
    def classes(self) -> list[tuple[str, str]]:
        """The accuracy of each class at the end, where it is known."""
        known = [c for c in self.memory.classes if c.accuracy] if self.memory else []
        return [(c.label, _spread(c.accuracy or [])) for c in known[:MOST_ROWS]]


def view(run: Run, number: int, full: bool, load: bool, drawing: Drawing) -> View:
    """One run, with its memory where there is room for it."""
    known = Record(run.path).environment
    environment = settings({key: value for key, value in known.items() if key not in UNSENT})
    return View(run, number, full, drawing, remembered(run) if load else None, environment)


def _cell(value: float, lowest: float) -> dict[str, Any]:
    shade = 0 if np.isnan(value) else round(100 * max(value - lowest, 0) / (100 - lowest))
    return {"shown": signed(value), "value": None if np.isnan(value) else float(value), "shade": shade}


def _shade_from(R: np.ndarray) -> float:
    """As in the figure: the accuracy that has the palest shade."""
    lowest = np.nanmin(R) if np.isfinite(R).any() else 0.0
    return float(np.clip(10 * np.floor(lowest / 10) - 10, 0, 90))


def _kept(result: dict[str, Any] | None, events: dict[int, dict[str, Any]], key: str, task: int) -> str:
    values = result.get(key) if result else None
    value = values[task] if isinstance(values, list) and task < len(values) else events.get(task, {}).get(key)
    return f"{value:,}" if is_number(value) else "–"


def _spread(values: list[float]) -> str:
    std = f" ± {np.std(values, ddof=1):.2f}" if len(values) > 1 else ""
    return f"{np.mean(values):.2f}{std}"


class Drawing:
    """Draws the figures of a page, and gives each its number."""

    def __init__(self) -> None:
        self.drawn = 0

    def __call__(self, figure: Any, alt: str) -> Markup:
        """A figure as a part of the page."""
        from prer.report.inline import inlined

        self.drawn += 1
        return inlined(figure, alt, self.drawn)

    def of_run(self, run: Run) -> Iterator[dict[str, Any]]:
        """The figures of one run."""
        from prer.report import figures

        story, R = run.story, run.matrix
        if R.size and R.shape[1] > 1:
            alt = f"Lines: accuracy of each of {R.shape[1]} tasks after each task. The numbers are in the matrix."
            yield {"svg": self(figures.over_time(R), alt), "caption": "Mean over seeds; bands: one standard deviation."}
        for phase in list(story.losses)[:6]:
            values, starts = story.loss_of(phase)
            alt = f"Line: loss of phase {phase}, {len(values)} epochs; first {values[0].mean():.3g}, last {values[-1].mean():.3g}."
            yield {"svg": self(figures.losses(values, starts, phase), alt), "caption": "Mean; band: all seeds."}
        times = dict(list(story.seconds_by_task().items())[:6])
        if times:
            alt = "Bars: seconds of training for each task. The numbers are in the table of tasks."
            yield {"svg": self(figures.seconds(times), alt), "caption": "Training only, without evaluation."}
        kept = [[_floats(run, key, task) for task in range(R.shape[1] if R.size else 0)] for key in ("memory_floats", "transient_floats")]
        if any(kept[0]):
            alt = "Bars: numbers kept of the past after each task. They are in the table of tasks."
            yield {"svg": self(figures.memory(*kept), alt), "caption": "For one seed."}
        labels, values = story.agreement()
        if labels:
            alt = "Lines: agreement of each class after each task. The numbers are in the table of classes."
            figure = figures.agreement(values, [text(label, 14) for label in labels], fading(values))
            yield {"svg": self(figure, alt), "caption": "Mean over seeds. Thick lines fade."}

    def of_classes(self, classes: list[Any]) -> list[dict[str, Any]]:
        """Samples and embeddings of each class."""
        from prer.report import figures

        found = []
        everyone = [c.real for c in classes if c.real is not None]
        others = np.concatenate(everyone)[:: max(1, sum(map(len, everyone)) // 150)] if everyone else np.zeros((0, 2))
        for class_ in classes:
            rows, card = _not_too_many(class_.rows), {"label": class_.label, "images": "", "embeddings": ""}
            if rows:
                alt = f"Class {class_.label}: samples, a row each: {', '.join(rows)}."
                card["images"] = self(figures.images(rows), alt)
            if class_.real is not None:
                alt = f"Class {class_.label}: {len(class_.real)} real and {len(class_.sampled)} sampled embeddings."
                card["embeddings"] = self(figures.embeddings(class_.real, class_.sampled, others), alt)
            found.append(card)
        return found


def _not_too_many(rows: dict[str, np.ndarray], most: int = 12) -> dict[str, np.ndarray]:
    """Of a long stream, the first and the last of what was drawn after each task."""
    names = list(rows)
    chosen = names if len(names) <= most else [*names[: most // 2], *names[-most // 2 :]]
    return {name: rows[name][:8] for name in chosen}


def _floats(run: Run, key: str, task: int) -> float:
    shown = _kept(run.result, run.story.kept, key, task)
    return 0.0 if shown == "–" else float(shown.replace(",", ""))
