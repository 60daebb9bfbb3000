"""A model as plain values and tensors, for files and other processes, and back."""

# S seeds, n training samples of a task

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode

from prer.data.reading import Reading
from prer.learners.registry import find
from prer.migration import present, present_name
from prer.models.model import Model
from prer.settings import build, values_of
from prer.streams.task import Chosen, Label, Scenario, Task, Together
from prer.version import __version__

FORMAT = 3  # of the plain values: 3 with a feature extractor, and 2 without; those of format 1 have no number
DATA = "data."  # prefix of the names of tensors with the data of tasks, if these are the learner's memory
DTYPES = {torch.uint8: "uint8", torch.float32: "float32"}  # of samples
FREE = 2**24  # numbers that networks may have whatever the tensors are
PLACE = ("labels", "head", "outputs", "width")  # what is saved of a task
LESSON = ("view", "samples", "when", "held_out")  # and about how it was learned


def about(model: Model) -> dict[str, Any]:
    """Everything about a model but its tensors."""
    tasks = [
        {key: getattr(task, key) for key in PLACE} | lesson
        for task, lesson in zip(model.tasks, model.lessons, strict=True)
    ]
    return {
        "format": FORMAT if model.reading.extractor else FORMAT - 1,
        "learner": model.learner.name,
        "settings": values_of(model.learner),
        "seeds": model.seeds,
        "shape": model.learner.shape_,
        "dtype": None if model.dtype is None else DTYPES[model.dtype],
        "scenario": model.scenario,
        "notes": model.learner.notes_,
        "tasks": tasks,
        "reading": model.reading.to_json(),
        "health": [[label, share] for label, share in model.health.items()],
        "history": model.history,
        "version": __version__,
    }


def tensors(model: Model) -> dict[str, Tensor]:
    """The tensors of the learner, and of the tasks if they are its memory."""
    found = model.learner.state()
    for i, task in enumerate(model.tasks if model.learner.keeps_tasks else ()):
        rows, places = task.train_rows(model.seeds).unique(return_inverse=True)
        x, y = task.samples(rows)
        found |= {f"{DATA}{i}.x": x, f"{DATA}{i}.y": y, f"{DATA}{i}.rows": places}
    return {name: tensor.detach().cpu().contiguous() for name, tensor in found.items()}


def model_of(known: Mapping[str, Any], state: Mapping[str, Tensor], device: str = "cpu") -> Model:
    """The model of these values and tensors; anybody may have written them, so this may raise almost any exception."""
    if not all(tensor.isfinite().all() for tensor in state.values() if tensor.is_floating_point()):
        raise ValueError("it contains NaN or infinite values")
    kind, settings = present_name(present(known["settings"], known["learner"]), known["learner"])
    learner = build(find(kind), settings, "settings", {})
    model = Model(learner, known["seeds"], device, known.get("scenario", "task"))  # older models do not have it
    model.dtype = {name: dtype for dtype, name in DTYPES.items()}.get(str(known.get("dtype")))
    model.reading = Reading.of(known.get("reading", {}), known["shape"])  # older models do not have it
    tasks = [_task(i, task, model.reading, model.scenario) for i, task in enumerate(known["tasks"])]
    _check_heads(tasks)
    if learner.keeps_tasks and f"{DATA}0.x" in state:  # older models do not have them
        tasks = [_with_data(task, state, model.seeds).to(model.device) for task in tasks]
    given = sum(tensor.numel() for tensor in state.values())
    grown = len(tasks) - len({task.head for task in tasks})  # tasks for which a head was built anew
    with AtMost(4 * given + FREE):
        learner.start(model.reading.shape, model.seeds, model.device)
    with AtMost(4 * given * (1 + grown) + FREE):
        learner.restore(tasks, own(state), known.get("notes", {}))
    model.tasks = tasks
    model.lessons = [_lesson(task) for task in known["tasks"]]
    model.health = {_label(label): _share(share) for label, share in known.get("health", [])}
    model.history = [dict(event) for event in known.get("history", [])]
    model.loaded = True
    return model


class AtMost(TorchFunctionMode):
    """Raise an error before new tensors have more numbers in all than this, and before they need memory."""

    def __init__(self, numbers: int) -> None:
        super().__init__()
        self.left = numbers

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Call a function of torch, after what it is going to make was counted."""
        if func in (torch.empty, torch.zeros, torch.ones, torch.randn):
            plan = {key: value for key, value in (kwargs or {}).items() if key != "generator"} | {"device": "meta"}
            self.left -= func(*args, **plan).numel()
            if self.left < 0:
                raise ValueError("its settings or tasks describe larger networks than its tensors")
        return func(*args, **(kwargs or {}))


def own(state: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The tensors of the learner itself, without those of tasks."""
    return {name: tensor for name, tensor in state.items() if not name.startswith(DATA)}


def _task(index: int, known: Mapping[str, Any], reading: Reading, scenario: Scenario) -> Task:
    """A task without data."""
    labels, outputs = tuple(map(_label, known["labels"])), tuple(map(_count, known["outputs"]))
    if len(labels) != len(outputs) or not labels:
        raise ValueError(f"task {index + 1} has {len(labels)} labels and {len(outputs)} outputs")
    if len(set(labels)) < len(labels) or len(set(outputs)) < len(outputs):
        raise ValueError(f"task {index + 1} has a label or an output twice")
    nothing = {"x": torch.empty(0, *reading.shape), "y": torch.empty(0, dtype=torch.long), "split": Together(())}
    place = {"head": _count(known["head"]), "outputs": outputs, "width": _count(known["width"]), "scenario": scenario}
    return Task(index, labels, **nothing, **place, reading=reading)


def _check_heads(tasks: Sequence[Task]) -> None:
    """Check that heads are numbered in order of arrival, and that each has the outputs of its tasks and no others."""
    outputs: dict[int, set[int]] = {}
    for task in tasks:
        if task.head > len(outputs):
            raise ValueError(f"task {task.index + 1} has head {task.head}, but there are {len(outputs)} heads before")
        known = outputs.setdefault(task.head, set())
        known.update(task.outputs)
        if task.width != len(known) or max(task.outputs) >= task.width:
            raise ValueError(f"task {task.index + 1} has width {task.width} and outputs {task.outputs}")
    if not tasks:
        raise ValueError("it has learned nothing")


def _lesson(known: Mapping[str, Any]) -> dict[str, Any]:
    """What is known about how a task was learned; older models know less."""
    lesson = {key: known.get(key) for key in LESSON}
    counts, when, held_out = (lesson[key] for key in ("samples", "when", "held_out"))
    if counts is not None and len([_count(n) for n in counts]) != len(known["labels"]):
        raise ValueError(f"a task of {len(known['labels'])} labels has {len(counts)} counts of samples")
    if when is not None and not isinstance(when, str):
        raise ValueError(f"{when!r} is not a time")
    return lesson | {"held_out": None if held_out is None else _share(held_out)}


def _with_data(task: Task, state: Mapping[str, Tensor], seeds: Sequence[int]) -> Task:
    """The same task with its data."""
    x, y, rows = (state[f"{DATA}{task.index}.{name}"] for name in ("x", "y", "rows"))
    if x.shape[1:] != task.x.shape[1:] or y.shape != x.shape[:1] or rows.dim() != 2 or len(rows) != len(seeds):
        raise ValueError(f"the data of task {task.index + 1} has the wrong shape")
    for values, most in ((y, len(task.labels)), (rows, len(x))):
        if values.dtype != torch.long or not values.numel() or int(values.min()) < 0 or int(values.max()) >= most:
            raise ValueError(f"the data of task {task.index + 1} has impossible indices")
    of_seed = {seed: each.numpy() for seed, each in zip(seeds, rows, strict=True)}
    return replace(task, x=x, y=y, split=Chosen(of_seed))


def _label(value: Any) -> Label:
    if isinstance(value, bool) or not isinstance(value, (str, int)):
        raise ValueError(f"{value!r} is not a label")
    return value


def _count(value: Any) -> int:
    if type(value) is not int or value < 0:
        raise ValueError(f"{value!r} is not a whole number of 0 or more")
    return value


def _share(value: Any) -> float:
    if type(value) not in (int, float) or not 0 <= value <= 1:
        raise ValueError(f"{value!r} is not a share from 0 to 1")
    return float(value)
