"""The model card: what a model is, its data, its results, and its limits."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from typing import Any

from prer.data.catalogue import CATALOGUE
from prer.data.reading import Reading
from prer.learners.base import Learner
from prer.learners.interfaces import Generates
from prer.models.model import Model
from prer.streams.stream import Stream
from prer.text import plus_minus, shown
from prer.version import __version__

CARD = """\
# {name}

{learner} after {tasks} tasks of {data}, {seeds} seeds trained together. Written by prer {version}.

## Data

{data}{about}. Samples of {shape}. Classes of each task, in the order of training:

{classes}

## Results

| metric | mean ± standard deviation over seeds |
|---|---|
| Accuracy, per cent (all tasks seen so far, after each task) | {accuracy} |
| BWT, points (change of a task's accuracy since it was learned) | {bwt} |
| Final accuracy, per cent ({final}) | {final_accuracy} |

It stores {samples} samples and {floats} numbers of past tasks.

## Limits

- It knows only these classes and predicts one of them for any input.
- {heads}
- It was tested on data from the same source; its accuracy on other data is unknown.
- Storing no samples does not prove that none can be recovered; `prer privacy` compares generated with real samples.

## Use

    prer predict MODEL FILE{task}
{sample}
The tensors are in `model.safetensors`, their description in `model.json`; no file contains code. The run's folder
contains the experiment as `experiment.toml`; to repeat it:

    prer run experiment.toml
"""


def card(learner: Learner, result: Mapping[str, Any], *, name: str, data: str, stream: Stream) -> str:
    """Return the model card as Markdown.

    Args:
        learner: the trained learner.
        result: the contents of `result.json`.
        name: name of the model.
        data: a catalogue name, or a path.
        stream: the stream that was learned.
    """
    entry = CATALOGUE.get(data)
    about = f", {entry.title} (licence: {entry.licence}; {entry.source})" if entry else ", licence unknown"
    one_head = len({task.head for task in stream}) == 1
    heads = "It has one head for all tasks." if one_head else "Each task has its own head: give the task of a sample."
    by_class = stream[0].scenario == "class"
    if by_class:
        heads = "Nobody needs to tell the task of a sample; `--task` limits the answers to the classes of that task."
    label = shlex.quote(shown(str(stream[0].labels[0]), 300))
    lines = [f"{task.index + 1}. {', '.join(map(_escaped, task.labels))}" for task in stream]
    metrics = ("accuracy", "bwt", "final_accuracy")
    return CARD.format(
        name=_escaped(name),
        learner=learner.name,
        tasks=len(stream),
        data=_escaped(stream.name),
        about=about,
        seeds=len(result["seeds"]),
        version=__version__,
        shape=_shape(stream.shape, stream[0].reading),
        classes="\n".join(lines),
        **{key: plus_minus(result[key]) for key in metrics},
        samples=result["memory_samples"][-1],
        floats=f"{result['memory_floats'][-1]:,}",
        heads=heads,
        final="all classes, after the last task" if by_class else "all tasks, after the last one",
        task="" if by_class else " --task 1",
        sample=f"    prer sample MODEL --class {label} -n 16\n" if isinstance(learner, Generates) else "",
    )


TAUGHT = """\
# {name}

A classifier that is taught in lessons: {learner}, {seeds} seed{s}. Written by prer {version}.

## What it has learned

Samples of {shape}. {classes} classes, in {lessons} lesson{s_lessons}:

{each}

## What it keeps

{keeps}

## Limits

- It knows only these classes and predicts one of them for any input.
- Its accuracy on data from another source is unknown. `prer score MODEL DATA` measures it, and adds it to the history.
{privacy}

## Use

    prer predict MODEL FILE
    prer teach MODEL FILE
{sample}
In Python, `prer.load("MODEL")` returns it. The tensors are in `{file}`, everything else in `model.json`; no file
contains code.
"""


def taught(model: Model, *, name: str, file: str) -> str:
    """Return the card of a model that was taught, as Markdown.

    Args:
        model: the model.
        name: its name.
        file: name of the file with its tensors.
    """
    each = []
    for number, (task, lesson) in enumerate(zip(model.tasks, model.lessons, strict=True), 1):
        counts = lesson["samples"] or [None] * len(task.labels)
        of = [
            _escaped(label) + (f" ({n:,})" if n is not None else "")
            for label, n in zip(task.labels, counts, strict=True)
        ]
        when = f"{lesson['when'][:10]}: " if lesson["when"] else ""
        each.append(f"{number}. {when}{', '.join(of)}")
    size = model.learner.memory_size()
    keeps = f"It stores {size.samples:,} samples and {size.floats:,} numbers of its lessons for each seed."
    if size.samples:
        keeps = (
            f"**It contains {size.samples:,} samples of its lessons for each seed.** Protect the folder like the data."
        )
    label = shlex.quote(shown(str(model.labels[0]), 300))
    return TAUGHT.format(
        name=_escaped(name),
        learner=model.learner.name,
        seeds=len(model.seeds),
        s="s" * (len(model.seeds) > 1),
        version=__version__,
        shape=_shape(model.learner.shape_, model.reading),
        classes=len(set(model.labels)),
        lessons=len(model.tasks),
        s_lessons="s" * (len(model.tasks) > 1),
        each="\n".join(each),
        keeps=keeps,
        privacy="" if size.samples else "- Storing no samples does not prove that none can be recovered.",
        sample=f"    prer sample MODEL --class {label} -n 16\n" if isinstance(model.learner, Generates) else "",
        file=file,
    )


def _shape(of_sample: Sequence[int], reading: Reading) -> str:
    """The shape of a sample, and what its numbers are."""
    shape = "x".join(map(str, of_sample))
    if not reading.extractor:
        return shape
    return f"{shape}, the features that {_escaped(reading.extractor)} computes from {reading.inputs}"


def _escaped(text: object) -> str:
    """Escape Markdown and HTML in a name."""
    return "".join(f"\\{c}" if c in r"\`*_{}[]<>()#+!|~&" else c for c in shown(str(text), 300))
