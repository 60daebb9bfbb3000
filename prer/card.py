"""The card of a model: what it is, what it was made of, how good it is, what it is not good for."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from prer.console import plus_minus
from prer.data.catalogue import CATALOGUE
from prer.data.guard import shown
from prer.learners import Learner
from prer.version import __version__

if TYPE_CHECKING:
    from prer.experiment import Experiment
    from prer.result import Result
    from prer.stream import Stream

CARD = """\
# {name}

{learner} after {tasks} tasks of {data}, {seeds} seeds trained together. Made by prer {version}.

## Data

{data}{about}. Samples of {shape}. The classes of each task, in the order in which they were learned:

{classes}

## How good it is

| metric | mean ± standard deviation over seeds |
|---|---|
| Accuracy, per cent (all tasks seen so far, after each task) | {accuracy} |
| BWT, points (change of a task's accuracy since it was learned) | {bwt} |
| accuracy of all tasks after the last, per cent | {final_accuracy} |

Of past tasks it keeps {samples} samples and {floats} numbers.

## Limits

- It knows these classes and no others; whatever it is shown, it answers with one of them.
- {heads}
- It was tested on data of the same source. How it does on other data is not known.
- That no sample is kept is no proof that none can be recovered from it; `prer privacy` compares.

## Use

    prer predict MODEL FILE --task 1
{sample}
The tensors are in `model.safetensors`, their meaning in `model.json`; nothing here is a program. The experiment that
made it is `experiment.toml` in the run's folder, and this repeats it:

    prer run experiment.toml
"""


def card(experiment: Experiment, stream: Stream, result: Result) -> str:
    """The card as Markdown."""
    entry = CATALOGUE.get(experiment.stream.data)
    about = f", {entry.title} (licence: {entry.licence}; {entry.source})" if entry else ", of which no licence is known"
    one_head = len({task.head for task in stream}) == 1
    heads = (
        "It has one head for all tasks." if one_head else "A task has a head of its own: say which task a sample is of."
    )
    generates, label = type(experiment.learner).generate is not Learner.generate, stream[0].labels[0]
    lines = [f"{task.index + 1}. {', '.join(map(_plain, task.labels))}" for task in stream]
    return CARD.format(
        name=_plain(experiment.name),
        learner=result.learner,
        tasks=len(stream),
        data=_plain(result.stream),
        about=about,
        seeds=len(result.seeds),
        version=__version__,
        shape="x".join(map(str, stream.shape)),
        classes="\n".join(lines),
        **{key: plus_minus(result.metrics[key] or {"mean": None}) for key in ("accuracy", "bwt", "final_accuracy")},
        samples=result.memory_samples[-1],
        floats=f"{result.memory_floats[-1]:,}",
        heads=heads,
        sample=f"    prer sample MODEL --class {shlex.quote(shown(str(label), 300))} -n 16\n" if generates else "",
    )


def _plain(text: object) -> str:
    """A name as text, whatever Markdown or HTML it may hold."""
    return "".join(f"\\{c}" if c in r"\`*_{}[]<>()#+!|~&" else c for c in shown(str(text), 300))
