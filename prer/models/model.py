"""Saved models: they predict and generate, and can be loaded without the run and its data."""

# S seeds, n samples, C classes

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any, get_args

import torch
from safetensors import SafetensorError
from safetensors.torch import load, save
from torch import Tensor

from prer.address import as_seeds
from prer.data.arrays import as_samples
from prer.data.frames import features_of, is_frame
from prer.data.reading import Reading
from prer.disk import content, durable, room
from prer.errors import InputError
from prer.learners import Learner
from prer.learners.interfaces import Generates, Recognises, generator_of
from prer.learners.registry import find
from prer.migration import present, present_name
from prer.settings import build, values_of
from prer.streams.stream import Stream
from prer.streams.task import Label, Scenario, Task, Together
from prer.text import did_you_mean
from prer.training.computing import rows_at_once
from prer.version import __version__

MOST_JSON = 2**26  # bytes of the file that describes the tensors
SAMPLES = 8  # samples of each class that are saved for inspection
MOST_CLASSES = 20  # the oldest: people want to see what has been remembered longest
# What a forged file may raise; torch reports impossible shapes as a RuntimeError, and RecursionError is one.
UNREADABLE = (OSError, SafetensorError, ValueError, LookupError, TypeError, AttributeError, RuntimeError)


def save_model(path: Path, learner: Learner, stream: Stream, card: str = "") -> None:
    """Save a learner: tensors as safetensors, their description as JSON, and a model card."""
    path.mkdir(exist_ok=True)
    tensors = {name: tensor.detach().cpu().contiguous() for name, tensor in learner.state().items()}
    durable(path / "model.safetensors", save(tensors))
    keys = ("labels", "head", "outputs", "width")
    tasks = [{key: getattr(task, key) for key in keys} | {"view": task.view is not None} for task in stream]
    about = {
        "learner": learner.name,
        "settings": values_of(learner),
        "seeds": learner.address_.seeds,
        "shape": stream.shape,
        "scenario": stream[0].scenario,
    }
    about |= {"notes": learner.notes_, "tasks": tasks, "reading": stream.reading.to_json(), "version": __version__}
    durable(path / "model.json", (json.dumps(about, indent=1) + "\n").encode())
    durable(path / "README.md", card.encode())


def load_tensors(learner: Learner, tasks: Sequence[Task], path: Path) -> None:
    """Restore a saved learner into one that has just started."""
    tensors = load(content(path / "model.safetensors", room()))
    notes = json.loads(content(path / "model.json", MOST_JSON)).get("notes", {})
    if not all(tensor.isfinite().all() for tensor in tensors.values() if tensor.is_floating_point()):
        raise ValueError("it contains NaN or infinite values")
    learner.restore(tasks, tensors, notes)


class Model:
    """A learner as it was at the end of a run, from its folder `model/` alone.

    Args:
        folder: a run's folder, or its `model/`.
    """

    def __init__(self, folder: Path) -> None:
        path = folder / "model" if (folder / "model").is_dir() else folder
        try:
            about = json.loads(content(path / "model.json", MOST_JSON))
            scenario = about.get("scenario", "task")  # older models do not have it
            self.tasks = [_known(i, task, about["shape"], scenario) for i, task in enumerate(about["tasks"])]
            self.reading = Reading.of(about.get("reading", {}), about["shape"])  # older models do not have it
            self.viewed = any(task["view"] for task in about["tasks"])  # permuted or rotated
            kind, settings = present_name(present(about["settings"], about["learner"]), about["learner"])
            self.learner: Learner = build(find(kind), settings, "settings", {})
            self.learner.start(about["shape"], as_seeds(about["seeds"]))
            load_tensors(self.learner, self.tasks, path)
        except FileNotFoundError:
            raise InputError(f"{folder} contains no model; give the folder of a finished run, or its model/") from None
        except UNREADABLE as error:
            raise InputError(f"the model in {path} cannot be read: {error}") from None

    @property
    def labels(self) -> list[Label]:
        """The name of each class."""
        return self.learner.labels_

    @torch.no_grad()
    def predict(self, x: Any, task: int | None = None) -> tuple[list[Label], list[float]]:
        """Label of each sample by majority vote of the seeds, and the share of seeds that agree.

        Args:
            x: samples of the learned shape; for a permuted or rotated task, already permuted or rotated. The columns of
                a data frame may be in any order, and may include the label.
            task: the task whose head predicts, 1 for the first; of a head that has grown, the task's classes only. If
                there are several heads and no task is given, PRER predicts the class under which its density finds the
                embedding most likely.
        """
        x = self._fitting(x)
        self._check(task)
        names = self._names(task)
        answers = []
        for part in x.split(rows_at_once(self.learner.address_)):
            same = part.expand(len(self.learner.address_.seeds), *part.shape)
            answers += self._answers(same, task).T.tolist()
        most = [Counter(of_seeds).most_common(1)[0] for of_seeds in answers]
        return [names[answer] for answer, _ in most], [count / len(self.learner.address_.seeds) for _, count in most]

    @torch.no_grad()
    def sample(
        self, label: Label | str, count: int, task: int | None = None, seed: int = 0, noise_seed: int = 0
    ) -> Tensor:
        """Generate samples of a class from memory alone: images as bytes [n, C, H, W], vectors in their original scale.

        Args:
            label: label of the class; a number may be given as text.
            count: number of samples.
            task: the task of the class, if several have it; by default the last.
            seed: index of the run's seed that generates.
            noise_seed: a different number gives different samples.
        """
        self._check(task)
        ids = range(len(self.labels)) if task is None else self.learner.tasks_[task - 1]
        known = {str(self.labels[i]): i for i in ids}
        if str(label) not in known:
            raise InputError(f"unknown class {str(label)!r}{did_you_mean(str(label), known)}")
        if not 0 <= seed < len(self.learner.address_.seeds):
            raise InputError(f"seed {seed} does not exist; give 0 to {len(self.learner.address_.seeds) - 1}")
        address = self.learner.address_
        asked = torch.full((len(address.seeds), count), known[str(label)], device=address.device)
        return as_data(self.learner, generator_of(self.learner).generate(asked, address / "sample" / noise_seed))[seed]

    def answers(self, task: int | None = None) -> list[Label]:
        """Labels that can be predicted; for a task, those of its head, or its own if the head has grown."""
        self._check(task)
        return list(self._names(task).values())

    def _names(self, task: int | None) -> dict[int, Label]:
        """Label of each answer: of an output of the head that predicts, or of a class id if there are several heads."""
        if task is None and not self._one_head:
            return dict(enumerate(self.labels))
        asked = self.tasks[(task or 1) - 1]
        alone = task is not None and asked.scenario == "class"
        of_head = [asked] if alone else [known for known in self.tasks if known.head == asked.head]
        return {output: label for t in of_head for output, label in zip(t.outputs, t.labels, strict=True)}

    def _answers(self, x: Tensor, task: int | None) -> Tensor:
        """Output of the head that predicts, or class id if no task is given and there are several heads [S, B]."""
        if task is not None or self._one_head:
            return self.learner.predict(x, self.tasks[(task or 1) - 1].head, [*self._names(task)])
        if not isinstance(self.learner, Recognises):
            raise InputError(f"{self.learner.name} cannot tell tasks apart; say which it is, 1 to {len(self.tasks)}")
        return self.learner.recognise(x)

    @property
    def _one_head(self) -> bool:
        return len({task.head for task in self.tasks}) == 1

    def _check(self, task: int | None) -> None:
        if task is not None and not 1 <= task <= len(self.tasks):
            raise InputError(f"task {task} does not exist; give 1 to {len(self.tasks)}")

    def _fitting(self, x: Any) -> Tensor:
        """Convert given samples to the format that was learned, and check their shape."""
        if is_frame(x):
            x = features_of(x, self.reading)
        is_bytes = str(getattr(x, "dtype", "")).endswith("uint8")  # a single image may be dark
        x = self.reading.fitted(as_samples(x, may_be_dark=is_bytes))
        shape = tuple(self.learner.shape_)
        if tuple(x.shape[1:]) != shape:
            wanted, given = ("x".join(map(str, s)) for s in (shape, x.shape[1:]))
            raise InputError(
                f"the model was trained on samples of shape {wanted}, but these have shape {given}; convert them first"
            )
        return x


def save_samples(folder: Path, learner: Learner) -> None:
    """Save generated samples of each class after a task, from the first seed, for inspection."""
    if not isinstance(learner, Generates):
        return
    classes, task = min(learner.tasks_[-1].stop, MOST_CLASSES), len(learner.tasks_)
    ids = torch.arange(classes, device=learner.address_.device).repeat_interleave(SAMPLES)
    with torch.no_grad():
        made = learner.generate(ids.expand(len(learner.address_.seeds), -1), learner.address_ / "shown" / task)
    folder.mkdir(exist_ok=True)
    samples = as_data(learner, made)[0].unflatten(0, (classes, SAMPLES)).cpu().contiguous()
    durable(folder / f"task-{task}.safetensors", save({"samples": samples}))


def as_data(learner: Learner, x: Tensor) -> Tensor:
    """Convert network inputs [S, n, ...] back to the scale of the data: images to bytes, vectors unstandardised."""
    if len(learner.shape_) == 1:
        return x * learner.inputs_.std.unsqueeze(1) + learner.inputs_.mean.unsqueeze(1)
    return (x.clamp(0, 1) * 255).round().to(torch.uint8)


def _known(index: int, task: dict[str, Any], shape: Sequence[int], scenario: Scenario) -> Task:
    """A task without data, to restore a saved model."""
    labels, outputs = tuple(task["labels"]), tuple(map(int, task["outputs"]))
    if len(labels) != len(outputs):
        raise ValueError(f"task {index + 1} has {len(labels)} labels and {len(outputs)} outputs")
    if scenario not in get_args(Scenario):
        raise ValueError(f"its scenario is {scenario!r}")
    nothing = {"x": torch.empty(0, *shape), "y": torch.empty(0, dtype=torch.long), "split": Together(())}
    place = {"head": int(task["head"]), "outputs": outputs, "width": int(task["width"]), "scenario": scenario}
    return Task(index, labels, **nothing, **place)
