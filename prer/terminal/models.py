"""Models on the terminal: what a lesson brought, what a model knows, and how it did on labelled data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.filesize import decimal
from rich.table import Table

from prer.learners.encoding import about_encoder
from prer.models.model import Model
from prer.models.teaching import Taught
from prer.runs.compare import Compared, advice, choice
from prer.streams.task import Label
from prer.terminal.console import say, whole
from prer.text import clock, shown
from prer.training.fading import fades

MOST_CLASSES = 200  # maximum lines of a table of classes
MOST_EVENTS = 20  # newest events of a history


def show_lesson(console: Console, path: Path, model: Model, taught: Taught) -> None:
    """Say what a lesson has brought, and what to do next."""
    task, before = model.tasks[-1], {label for known in model.tasks[:-1] for label in known.labels}
    new = [label for label in task.labels if label not in before]
    brought = f"new: {_names(new)}" if new else f"more of {_names(task.labels)}"
    size = f"{taught.samples:,} sample{'s' * (taught.samples != 1)}"
    if len(model.tasks) == 1 and (about := what_is_learned(model)):
        say(console, about)
    say(console, f"Lesson {len(model.tasks)} learned in {clock(taught.seconds)}: {size}, {brought}")
    if taught.held_out is not None:
        say(console, f"Held-out samples of this lesson: {taught.held_out:.1%} correct")
    say(console, f"{shown(path)} knows {_count(len(model.answers()), 'class', 'classes')}. {kept(model)}")
    say(console, f"Ask it:         prer predict {shown(path)} FILE")
    say(console, f"Teach it more:  prer teach {shown(path)} FILE")


def what_is_learned(model: Model) -> str:
    """How samples become embeddings, if they are vectors that are used as they are, in a sentence."""
    return about_encoder(model.learner, model.learner.shape_, shown(model.reading.extractor, 40))


def kept(model: Model) -> str:
    """What a model keeps of its lessons, in a sentence."""
    size = model.learner.memory_size()
    samples = f"{size.samples:,} samples are" if size.samples else "No sample is"
    return f"{samples} kept; the memory of the past has {decimal(size.bytes * len(model.seeds))}."


def show_model(console: Console, path: Path, model: Model, size: int) -> None:
    """Print what a model knows, from which lessons, and its history."""
    say(console, f"Model: {shown(path)}")
    settings = f"{model.learner.name}, {_count(len(model.seeds), 'seed', 'seeds')}, scenario {model.scenario}"
    features = f" (features of {shown(model.reading.extractor, 40)})" if model.reading.extractor else ""
    shape = "x".join(map(str, model.learner.shape_))
    say(console, f"{settings}; samples of {shape}{features}; {decimal(size)} on disk")
    say(console, kept(model))
    table = Table()
    for column in ("class", "lessons", "learned", "samples", "memory"):
        table.add_column(column, justify="left" if column in ("class", "learned") else "right")
    for label in model.answers()[:MOST_CLASSES]:
        table.add_row(*_line(model, label))
    whole(console, table)
    if len(model.answers()) > MOST_CLASSES:
        say(console, f"and {len(model.answers()) - MOST_CLASSES} more classes")
    if model.health:
        say(
            console, "memory: share of the samples generated of a class that the model recognises; low means forgetting"
        )
    say(console, f"state digest: {model.digest}")
    for event in _events(model)[-MOST_EVENTS:]:
        say(console, event)


def show_score(console: Console, counts: Mapping[Label, Sequence[int]]) -> None:
    """Print the accuracy of each class, and of all."""
    table = Table()
    for column in ("class", "samples", "correct"):
        table.add_column(column, justify="left" if column == "class" else "right")
    for label, (right, total) in counts.items():
        table.add_row(shown(label, 40), f"{total:,}", f"{right / total:.1%}")
    right, total = (sum(of) for of in zip(*counts.values(), strict=True))
    table.add_section()
    table.add_row("all", f"{total:,}", f"{right / total:.1%}")
    whole(console, table)


def _line(model: Model, label: Label) -> list[str]:
    """The line of a class in the table of a model."""
    lessons = [i for i, task in enumerate(model.tasks) if label in task.labels]
    counts = [_samples(model, i, label) for i in lessons]
    samples = "-" if None in counts else f"{sum(n for n in counts if n is not None):,}"
    dates = [shown(str(model.lessons[i]["when"] or "-")[:10]) for i in lessons]
    share = model.health.get(label)
    health = "-" if share is None else f"{share:.0%}" + (" fades" if fades(share) else "")
    numbers = ", ".join(str(i + 1) for i in lessons[:5]) + (", ..." if len(lessons) > 5 else "")
    return [shown(label, 40), numbers, " to ".join(dict.fromkeys([dates[0], dates[-1]])), samples, health]


def _samples(model: Model, lesson: int, label: Label) -> int | None:
    """Number of samples of a class in a lesson; None if an older version did not write it."""
    counts = model.lessons[lesson]["samples"]
    return counts[model.tasks[lesson].labels.index(label)] if isinstance(counts, list) else None


def _events(model: Model) -> list[str]:
    """The lessons and later events of a model, oldest first, one line each."""
    found = []
    for i, lesson in enumerate(model.lessons):
        held = "" if lesson["held_out"] is None else f", held out {lesson['held_out']:.1%} correct"
        found.append((str(lesson["when"] or ""), f"lesson {i + 1}: {_names(model.tasks[i].labels)}{held}"))
    for event in model.history:
        found.append((str(event.get("when", "")), _event(event)))
    return [f"{shown(when, 30) or 'unknown time'}  {text}" for when, text in sorted(found, key=lambda pair: pair[0])]


def _event(event: Mapping[str, Any]) -> str:
    kind = event.get("event")
    if kind == "scored" and isinstance(event.get("accuracy"), float):
        return f"scored {event['accuracy']:.1%} on {event.get('samples')} samples of {shown(event.get('data'), 60)}"
    return "the lesson after this one was taken back" if kind == "undone" else shown(kind, 60)


def _names(labels: Sequence[Label]) -> str:
    more = f" and {len(labels) - 10} more" if len(labels) > 10 else ""
    return ", ".join(shown(label, 30) for label in labels[:10]) + more


def _count(n: int, one: str, many: str) -> str:
    return f"{n:,} {one if n == 1 else many}"


def show_comparison(console: Console, found: Sequence[Compared]) -> str:
    """Print what each method reached and which one to take; return its name."""
    table = Table()
    for column in ("method", "correct, %", "memory", "samples kept", "seconds"):
        table.add_column(column, justify="left" if column == "method" else "right")
    for method in found:
        spread = "" if method.std is None else f" ± {method.std:.1f}"
        seconds = f"{method.seconds:.0f}" if method.seconds >= 10 else f"{method.seconds:.1f}"
        table.add_row(
            method.name, f"{method.accuracy:.1f}{spread}", decimal(method.bytes), f"{method.samples:,}", seconds
        )
    whole(console, table)
    say(console, "correct: all classes, after the last lesson, mean over seeds; memory: what is kept of the past")
    say(console, advice(found, {method.name: decimal(method.bytes) for method in found}))
    taken = choice(found)
    return taken.name if taken else ""
