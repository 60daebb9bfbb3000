"""A model: a learner with what it has learned, and how its data is read. It predicts, generates and learns more."""

# S seeds, n samples, L labels, C classes

from __future__ import annotations

import copy
import hashlib
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Self, get_args

import numpy as np
import torch
from torch import Tensor

from prer.address import as_device, as_seeds
from prer.data.arrays import as_samples
from prer.data.frames import features_of, is_frame
from prer.data.reading import Reading
from prer.errors import InputError, RunError, out_of_memory
from prer.learners.base import Learner
from prer.learners.interfaces import Recognises, generator_of
from prer.models.samples import as_data
from prer.streams.task import Label, Scenario, Task, Together
from prer.streams.transforms import Moves
from prer.text import did_you_mean, excerpt
from prer.training.computing import computing, rows_at_once
from prer.training.fading import Health
from prer.training.loop import Loop, Observer


class Model:
    """A learner with what it has learned, and how its data is read.

    Attributes:
        learner: the learner; it has started if there are tasks.
        seeds: the seeds, whose probabilities are averaged.
        device: where it computes.
        scenario: what is asked at test time.
        tasks: what was learned, without the data, unless the learner's memory is the tasks themselves.
        lessons: for each task, what is known about it: when it was learned, from how many samples of each class.
        reading: how its data is read; fixed by the first task.
        dtype: of its samples, bytes or 32-bit floats; None: unknown, in models of older versions.
        health: share of the samples of each class that the memory recognises, by label.
        history: later events, such as scores, as plain values.
        loaded: whether its state was read from a file, which may be forged.
    """

    def __init__(
        self, learner: Learner, seeds: int | Sequence[int] = 1, device: str = "auto", scenario: Scenario = "class"
    ) -> None:
        if scenario not in get_args(Scenario):
            raise InputError(f"scenario={scenario!r}: choose one of {', '.join(get_args(Scenario))}")
        self.learner, self.seeds, self.device, self.scenario = learner, as_seeds(seeds), as_device(device), scenario
        self.tasks: list[Task] = []
        self.lessons: list[dict[str, Any]] = []
        self.reading = Reading()
        self.dtype: torch.dtype | None = None
        self.health: dict[Label, float] = {}
        self.history: list[dict[str, Any]] = []
        self.loaded = False

    @classmethod
    def learned(cls, learner: Learner, tasks: Sequence[Task], health: Health | None = None) -> Self:
        """The model of a learner that has learned these tasks in a run."""
        address = learner.address_
        model = cls(learner, address.seeds, address.device, tasks[0].scenario)
        model.reading, model.dtype = replace(tasks[0].reading, shape=tuple(learner.shape_)), tasks[0].x.dtype
        model.tasks = [model._kept(task) for task in tasks]
        model.lessons = [lesson_about(task, address.seeds[0]) for task in tasks]
        model.health = dict(health.shares) if health else {}
        return model

    # -- learning ------------------------------------------------------------------------------------------------

    def learn(self, task: Task, observe: Observer | None = None) -> list[str]:
        """Learn one more task, and return warnings in words; if this fails, the model is as it was.

        Args:
            task: the task, made from the tasks so far (see `lesson_of`).
            observe: called with a dictionary for every event.
        """
        first, health = not self.tasks, Health(observe)
        before = {} if first else {name: tensor.clone() for name, tensor in self.learner.state().items()}
        notes = {} if first else copy.deepcopy(self.learner.notes_)
        task = task.to(self.device)
        try:
            with computing(self.device):
                if first:
                    self.learner.start(task.x.shape[1:], self.seeds, self.device)
                self.learner.loop_ = Loop(health)
                self.learner.learn(task)
        except BaseException as error:
            if not first:
                self.learner.start(self.learner.shape_, self.seeds, self.device)
                self.learner.restore(self.tasks, before, notes)
            known = not isinstance(error, Exception) or isinstance(error, (InputError, RunError, OSError))
            if not self.loaded or known or out_of_memory(error):
                raise
            raise RunError(f"the model cannot be taught; its files may be damaged: {excerpt(str(error))}") from error
        finally:
            if hasattr(self.learner, "loop_"):
                self.learner.loop_ = Loop()
        if first:
            self.reading, self.dtype = replace(task.reading, shape=tuple(task.x.shape[1:])), task.x.dtype
        self.tasks.append(self._kept(task))
        self.lessons.append(lesson_about(task, self.seeds[0]))
        warned = health.finish(task.index)
        self.health |= health.shares
        return warned

    def _kept(self, task: Task) -> Task:
        """What the model keeps of a task that is learned."""
        return task if self.learner.keeps_tasks else without_data(task)

    # -- predictions ---------------------------------------------------------------------------------------------

    @property
    def labels(self) -> list[Label]:
        """The name of each class id, in order of arrival."""
        return self.learner.labels_

    @property
    def digest(self) -> str:
        """Two models with the same digest have learned the same, bit for bit."""
        return digest_of(self.learner)

    @property
    def viewed(self) -> bool:
        """Whether some task was permuted or rotated."""
        return any(lesson["view"] for lesson in self.lessons)

    def answers(self, task: int | None = None) -> list[Label]:
        """Labels that can be predicted; for a task, those of its head, or its own if the head has grown."""
        self._check(task)
        return list(dict.fromkeys(self._names(task).values()))

    @torch.no_grad()
    def log_probabilities(self, x: Any, task: int | None = None) -> Tensor:
        """Log-probability of each of the labels `answers(task)` by each seed [S, n, L].

        Args:
            x: samples of the learned shape; for a permuted or rotated task, already permuted or rotated. The columns of
                a data frame may be in any order, and may include the label.
            task: the task whose head predicts, 1 for the first; of a head that has grown, the task's classes only. If
                there are several heads and no task is given, PRER predicts the class under which its density finds the
                embedding most likely.
        """
        x = self._fitting(x)
        self._check(task)
        names, address = self._names(task), self.learner.address_
        columns = {label: place for place, label in enumerate(self.answers(task))}
        place = torch.tensor([columns[name] for name in names.values()], device=address.device)
        found = []
        for part in x.split(rows_at_once(address)):
            same = part.to(address.device).expand(len(address.seeds), *part.shape)
            each = self._scores(same, task)[..., list(names)].double().log_softmax(-1)
            found.append(each if len(columns) == len(names) else _summed(each, place, len(columns)))
        return torch.cat(found, dim=1)

    def predict(self, x: Any, task: int | None = None) -> tuple[list[Label], list[float]]:
        """Label of each sample by the mean probability of the seeds, and the share of seeds that predict it.

        Args:
            x: as in `log_probabilities`.
            task: as in `log_probabilities`.
        """
        return self.voted(self.log_probabilities(x, task), task)

    def voted(self, each: Tensor, task: int | None = None) -> tuple[list[Label], list[float]]:
        """The same, given the log-probabilities."""
        best = each.logsumexp(0).argmax(-1)
        shares = (each.argmax(-1) == best).double().mean(0)
        answers = self.answers(task)
        return [answers[place] for place in best.tolist()], shares.tolist()

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
        if not 0 <= seed < len(self.seeds):
            raise InputError(f"seed {seed} does not exist; give 0 to {len(self.seeds) - 1}")
        address = self.learner.address_
        asked = torch.full((len(self.seeds), count), known[str(label)], device=address.device)
        return as_data(self.learner, generator_of(self.learner).generate(asked, address / "sample" / noise_seed))[seed]

    def _scores(self, x: Tensor, task: int | None) -> Tensor:
        """Scores of the head that predicts, or of class ids if no task is given and there are several heads."""
        if task is not None or self._one_head:
            return self.learner.scores(x, self.tasks[(task or 1) - 1].head)
        if not isinstance(self.learner, Recognises):
            raise InputError(f"{self.learner.name} cannot tell tasks apart; say which it is, 1 to {len(self.tasks)}")
        return self.learner.recognise(x)

    def _names(self, task: int | None) -> dict[int, Label]:
        """Label of each score: of an output of the head that predicts, or of a class id if there are several heads."""
        if task is None and not self._one_head:
            return dict(enumerate(self.labels))
        asked = self.tasks[(task or 1) - 1]
        alone = task is not None and asked.scenario == "class"
        of_head = [asked] if alone else [known for known in self.tasks if known.head == asked.head]
        return {output: label for t in of_head for output, label in zip(t.outputs, t.labels, strict=True)}

    @property
    def _one_head(self) -> bool:
        return len({task.head for task in self.tasks}) == 1

    def _check(self, task: int | None) -> None:
        if task is not None and task not in range(1, len(self.tasks) + 1):
            raise InputError(f"task {task!r} does not exist; give 1 to {len(self.tasks)}")

    def _fitting(self, x: Any) -> Tensor:
        """Convert given samples to the format that was learned, and check their shape."""
        if is_frame(x):
            x = features_of(x, self.reading)
        is_bytes = str(getattr(x, "dtype", "")).endswith("uint8")  # a single image may be dark
        return self.fitted(as_samples(x, may_be_dark=is_bytes, reading=self.reading))

    def fitted(self, x: Tensor) -> Tensor:
        """Convert validated samples to the size and channels that were learned, and check their shape."""
        x = self.reading.fitted(x)
        shape = tuple(self.learner.shape_)
        if tuple(x.shape[1:]) != shape:
            wanted, given = ("x".join(map(str, s)) for s in (shape, x.shape[1:]))
            raise InputError(
                f"the model was trained on samples of shape {wanted}, but these have shape {given}; convert them first"
            )
        return x


def digest_of(learner: Learner, matrix: np.ndarray | None = None) -> str:
    """sha256 over everything a learner has learned: two with the same digest are in the same state.

    With the accuracy matrix of a run, this is the digest of the run.
    """
    sha = hashlib.sha256(b"" if matrix is None else np.ascontiguousarray(matrix).tobytes())
    for name, tensor in sorted(learner.state().items()):
        sha.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}".encode())
        sha.update(tensor.detach().cpu().contiguous().numpy().tobytes())
    return sha.hexdigest()


def without_data(task: Task) -> Task:
    """A task of which only its labels and its place in the head are known."""
    nothing = {"x": torch.empty(0, *task.x.shape[1:]), "y": torch.empty(0, dtype=torch.long), "split": Together(())}
    return replace(task, **nothing, view=None, moves=Moves())


def lesson_about(task: Task, seed: int) -> dict[str, Any]:
    """What is known about a task that is learned; the number of samples of each class does not count repeated ones."""
    rows = torch.from_numpy(np.unique(task.split(seed)[0])).to(task.y.device)
    samples = torch.bincount(task.y[rows], minlength=len(task.labels)).tolist()
    return {"view": task.view is not None, "samples": samples, "when": None, "held_out": None}


def _summed(each: Tensor, place: Tensor, columns: int) -> Tensor:
    """Log-probabilities of labels [S, n, L], given those of the classes that have them [S, n, C]."""
    most = each.amax(-1, keepdim=True)
    sums = torch.zeros(*each.shape[:2], columns, dtype=each.dtype, device=each.device)
    return sums.index_add_(2, place, (each - most).exp()).log() + most
