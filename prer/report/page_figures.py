"""The figures of a page, each with a number and a text for screen readers."""

# S seeds, M tasks

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from markupsafe import Markup

from prer.report.confusion import Confusion
from prer.report.events import fading
from prer.report.formatting import is_number
from prer.report.model_view import MOST_CLASSES, Class
from prer.report.run import Run
from prer.text import excerpt

KEPT = ("memory_floats", "transient_floats")
MOST_PHASES = 6
BACKGROUND = 150  # embeddings of all classes, plotted behind those of one class


class PageFigures:
    """Plots the figures of a page and numbers them."""

    def __init__(self) -> None:
        self.count = 0

    def __call__(self, figure: Any, alt: str) -> Markup:
        """A figure as inline SVG."""
        from prer.report.inline import inlined

        self.count += 1
        return inlined(figure, alt, self.count)

    def of_run(self, run: Run) -> Iterator[dict[str, Any]]:
        """The figures of one run for which there is data."""
        from prer.report import figures

        R = run.matrix
        if R.size and R.shape[1] > 1:
            alt = f"Lines: accuracy of each of {R.shape[1]} tasks after each task. The numbers are in the matrix."
            yield {"svg": self(figures.over_time(R), alt), "caption": "Mean over seeds; bands: one standard deviation."}
        yield from self._of_phases(run)
        floats, transient = ([_number(kept(run, key, task)) for task in range(R.shape[1])] for key in KEPT)
        if any(floats):
            alt = "Bars: numbers stored after each task. The values are in the table of tasks."
            yield {"svg": self(figures.memory(floats, transient), alt), "caption": "For one seed."}
        labels, values = run.story.agreement()
        if labels:
            alt = "Lines: agreement of each class after each task. The numbers are in the table of classes."
            fades = fading(values)
            shown = sorted(range(len(labels)), key=lambda i: not fades[i])[:MOST_CLASSES]  # those that fade first
            shown.sort()
            names = [excerpt(labels[i], 14) for i in shown]
            figure = figures.agreement(values[shown], names, [fades[i] for i in shown])
            yield {"svg": self(figure, alt), "caption": "Worst seed. Thick lines: fading classes."}

    def _of_phases(self, run: Run) -> Iterator[dict[str, Any]]:
        from prer.report import figures

        for phase in list(run.story.losses)[:MOST_PHASES]:
            values, starts = run.story.loss_of(phase)
            first, last = values[0].mean(), values[-1].mean()
            alt = f"Line: loss of phase {phase} in {len(values)} epochs; first {first:.3g}, last {last:.3g}."
            figure = figures.losses(values, starts, excerpt(phase, 24))
            yield {
                "svg": self(figure, alt),
                "caption": "Mean; band: range over seeds; vertical lines: start of a task.",
            }
        times = dict(list(run.story.seconds_by_task().items())[:MOST_PHASES])
        if times:
            alt = "Bars: seconds of training for each task. The numbers are in the table of tasks."
            figure = figures.seconds({excerpt(phase, 16): values for phase, values in times.items()})
            yield {"svg": self(figure, alt), "caption": "Training only, without evaluation."}

    def of_confusion(self, found: Confusion) -> dict[str, Any]:
        """The figure of a confusion matrix."""
        from prer.report import figures

        alt = f"Heat map: confusion matrix of {len(found.labels)} classes. {found.summary}"
        labels = [excerpt(label, 12) for label in found.labels]
        return {
            "svg": self(figures.confusion(found.shares, labels), f"{alt} The table of classes has the accuracies."),
            "caption": "Per cent of each true class (row) that is predicted as each class (column), mean over seeds; "
            "the darkest blue is 100 %, and correct predictions are on the diagonal.",
        }

    def of_classes(self, classes: Sequence[Class]) -> list[dict[str, Any]]:
        """Figures of the samples and embeddings of each class."""
        everyone = [c.real for c in classes if c.real is not None]
        step = max(1, sum(map(len, everyone)) // BACKGROUND)
        others = np.concatenate(everyone)[::step] if everyone else np.zeros((0, 2))
        return [self._of_class(class_, others) for class_ in classes]

    def _of_class(self, class_: Class, others: np.ndarray) -> dict[str, Any]:
        from prer.report import figures

        rows, card = _not_too_many(class_.rows), {"label": class_.label, "images": "", "embeddings": ""}
        if rows:
            alt = f"Class {class_.label}: rows of samples: {', '.join(rows)}."
            card["images"] = self(figures.images(rows), alt)
        if class_.real is not None and class_.sampled is not None:
            alt = f"Class {class_.label}: {len(class_.real)} real and {len(class_.sampled)} sampled embeddings."
            card["embeddings"] = self(figures.embeddings(class_.real, class_.sampled, others), alt)
        return card


def _not_too_many(rows: dict[str, np.ndarray], most: int = 12) -> dict[str, np.ndarray]:
    """At most `most` rows of samples; of a long stream, the first and the last."""
    names = list(rows)
    chosen = names if len(names) <= most else [*names[: most // 2], *names[-most // 2 :]]
    return {name: rows[name][:8] for name in chosen}


def kept(run: Run, key: str, task: int) -> int | float | None:
    """Size of the memory after a task, from the result or, without one, from the events; None: unknown."""
    values = run.result.get(key) if run.result else None
    value = values[task] if isinstance(values, list) and task < len(values) else run.story.kept.get(task, {}).get(key)
    return value if is_number(value) else None


def _number(value: float | None) -> float:
    return 0.0 if value is None else float(value)
