"""Detects classes that a memory is losing, by the health events of a run; used by terminal and page."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

LOW_AGREEMENT = 0.8  # share of a class's samples that are recognised as this class; below it the class fades
MOST_NAMES = 5  # maximum number of classes named in one warning


def agreement(health: Mapping[str, Any]) -> float | None:
    """Share of a class's samples that the worst seed recognises; a mean would hide that seed. None: unknown.

    Samples are decoded first, unless what is learned later depends on sampled embeddings alone.
    """
    values = health.get("agreement" if health.get("replayed") == "embeddings" else "agreement_decoded")
    known = isinstance(values, list) and values and all(isinstance(v, (int, float)) and 0 <= v <= 1 for v in values)
    return min(values) if known else None


def fades(share: float) -> bool:
    """Whether a class with this agreement is about to be forgotten."""
    return share < LOW_AGREEMENT


class Fading:
    """Processes the events of a run, and returns warnings after each task."""

    def __init__(self) -> None:
        self.classes: dict[str, float] = {}  # fading classes of the current task, with their lowest agreement
        self.setting = ""  # what may help

    def warnings(self, event: Mapping[str, Any]) -> list[str]:
        """Warnings after this event: one sentence at the end of a task that leaves classes fading."""
        if event.get("event") == "health":
            share = agreement(event)
            if share is not None and fades(share):
                name = repr(event.get("class"))  # a class that came again has several entries in the memory
                self.classes[name] = min(share, self.classes.get(name, share))
                decoded = (
                    event.get("replayed") != "embeddings"
                )  # otherwise there is no autoencoder, or it matters little
                self.setting = "learner.epochs_autoencoder" if decoded else "learner.epochs"
        elif event.get("event") == "task" and self.classes:
            found, self.classes = self.classes, {}
            return [_sentence(event.get("task"), found, self.setting)]
        return []


class Health:
    """Observes a learner: collects the share of each class's samples that is recognised, and passes events on.

    Attributes:
        shares: for each label, the share after the last task that was looked at.
    """

    def __init__(self, observe: Callable[[dict[str, Any]], None] | None = None) -> None:
        self.observe, self.shares = observe or (lambda event: None), dict[str | int, float]()
        self.now, self.fading = dict[str | int, float](), Fading()

    def __call__(self, event: dict[str, Any]) -> None:
        """Process an event."""
        share = agreement(event)
        if event.get("event") == "health" and share is not None:
            label = event["class"]
            self.now[label] = min(share, self.now.get(label, 1.0))  # a label may stand for several classes
            self.fading.warnings(event)
        elif event.get("event") == "task":
            self.finish(event["task"])
        self.observe(event)

    def finish(self, task: int) -> list[str]:
        """Warnings after a task is learned."""
        self.shares, self.now = self.shares | self.now, {}
        return self.fading.warnings({"event": "task", "task": task})


def _sentence(task: object, classes: Mapping[str, float], setting: str) -> str:
    worst = sorted(classes.items(), key=lambda of_class: of_class[1])
    names = ", ".join(f"{share:.0%} of {name}" for name, share in worst[:MOST_NAMES])
    more = f" and {len(worst) - MOST_NAMES} more" if len(worst) > MOST_NAMES else ""
    when = f"after task {task + 1}" if type(task) is int else "after a task"
    return (
        f"{when} the memory's samples of some classes are often not recognised as their class (recognised in the worst "
        f"seed: {names}{more}); these classes may be forgotten. More epochs may help, {setting} first."
    )
