"""The loop over tasks, and a run: one experiment in one folder."""

# S seeds, M tasks

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from rich.console import Console
from safetensors.torch import save_file

from prer import evaluation
from prer.address import as_device, as_seeds
from prer.console import Display, Downloads, describe, say
from prer.data.entry import silent
from prer.errors import InputError
from prer.experiment import Experiment
from prer.learners.base import Learner, Observer
from prer.record import Record
from prer.stream import Stream
from prer.task import Task
from prer.version import __version__


@dataclass(frozen=True)
class Result:
    """What a run found out; `to_json` is the contract of `result.json`.

    Attributes:
        seeds: of the run.
        matrix: accuracies [S, M, M] in per cent; NaN where not evaluated.
        untrained: accuracy on each task before anything is learned [S, M]; NaN where its head was not there.
        memory_floats: scalars kept of the past after each task, for one seed.
        memory_samples: raw samples kept after each task.
        transient_floats: scalars in copies that lived only while each task was learned.
        seconds: by phase.
        digest: sha256 over the final state and the matrix.
        learner: its name.
        stream: its name.
        device: where it ran.
    """

    seeds: tuple[int, ...]
    matrix: np.ndarray
    untrained: np.ndarray
    memory_floats: list[int]
    memory_samples: list[int]
    transient_floats: list[int]
    seconds: dict[str, float]
    digest: str
    learner: str
    stream: str
    device: str

    @property
    def metrics(self) -> dict[str, dict | None]:
        """Accuracy, BWT and the others by name, each with mean, std and values."""
        return evaluation.summary(self.matrix, self.untrained)

    def to_json(self) -> dict[str, Any]:
        """The result as plain values, with every metric."""
        arrays = {"matrix": _plain(self.matrix.tolist()), "untrained": _plain(self.untrained.tolist())}
        plain = {name: value for name, value in vars(self).items() if name not in ("seeds", *arrays)}
        return {"seeds": list(self.seeds)} | arrays | self.metrics | plain | {"version": __version__}


def _plain(values: list | float) -> list | float | None:
    """Nested numbers with None for NaN, which JSON does not have."""
    if isinstance(values, list):
        return [_plain(v) for v in values]
    return None if np.isnan(values) else values


def learn(
    stream: Iterable[Task],
    learner: Learner,
    *,
    seeds: int | Sequence[int] = 5,
    device: str = "auto",
    observe: Observer | None = None,
) -> Result:
    """Learn the tasks of a stream one after another, all seeds together, testing every task seen after each.

    Args:
        stream: the tasks; a `Stream`, or tasks that are not known in advance (`prer.arriving`).
        learner: what learns them; it begins anew.
        seeds: how many (0, 1, ...), or which.
        device: "cpu", "cuda" or "auto".
        observe: called with a dictionary for every epoch, every task and every figure of health.

    Example:
        >>> from prer import Naive
        >>> x, y = np.random.default_rng(0).normal(size=(80, 4)), np.repeat(["a", "b", "c", "d"], 20)
        >>> result = learn(Stream.split(x, y), Naive(epochs=1), seeds=2, device="cpu")
        >>> result.matrix.shape
        (2, 2, 2)
    """
    seeds, device = as_seeds(seeds), as_device(device)
    begin, name = time.perf_counter(), stream.name if isinstance(stream, Stream) else "arriving"
    met: list[Task] = []
    rows: list[list[np.ndarray]] = []  # of the matrix: accuracies [S] on each task tested
    untrained: list[np.ndarray] = []
    memory: dict[str, list[int]] = {"memory_floats": [], "memory_samples": [], "transient_floats": []}
    for task in stream.to(device) if isinstance(stream, Stream) else (task.to(device) for task in stream):
        if not met:
            learner.start(task.x.shape[1:], seeds, device, observe)
        met.append(task)
        untrained.append(np.full(len(seeds), np.nan))
        if task.head < len(learner.heads_):  # an earlier task has made its head: what is it worth already?
            rows[-1].append(_test(learner, task))
            untrained[-1] = _test(_beginner(learner, met), task)
        learner.learn(task)
        rows.append([_test(learner, seen) for seen in met])
        kept = {"memory_floats": learner.memory_floats(), "memory_samples": learner.memory_samples()}
        kept["transient_floats"] = learner.transient_floats_
        for key, value in kept.items():
            memory[key].append(value)
        event = {"event": "task", "task": task.index, "accuracy": np.stack(rows[-1], axis=1).tolist()}
        learner.observe_(event | kept)
    if not met:
        raise InputError("there are no tasks to learn")
    seconds = {**learner.seconds_, "total": time.perf_counter() - begin}
    matrix = np.full((len(seeds), len(met), len(met)), np.nan)
    for i, row in enumerate(rows):
        matrix[:, i, : len(row)] = np.stack(row, axis=1)
    about = {"digest": digest_of(learner, matrix), "learner": learner.name, "stream": name, "device": device}
    return Result(seeds, matrix, np.stack(untrained, axis=1), **memory, seconds=seconds, **about)


def _test(learner: Learner, task: Task) -> np.ndarray:
    begin = time.perf_counter()
    accuracy = learner.accuracy(task).cpu().numpy()
    learner.seconds_["evaluation"] += time.perf_counter() - begin
    return accuracy


def _beginner(learner: Learner, met: Sequence[Task]) -> Learner:
    """The learner as it was before it learned anything; its weights have addresses, so they come again."""
    beginner = replace(learner)
    beginner.start(met[0].x.shape[1:], learner.address_.seeds, learner.address_.device)
    for task in met:
        if task.head == len(beginner.heads_):
            beginner.meet(task)
    return beginner


def digest_of(learner: Learner, matrix: np.ndarray) -> str:
    """sha256 over everything a run has learned: two runs with the same digest ended in the same state."""
    sha = hashlib.sha256(np.ascontiguousarray(matrix).tobytes())
    for name, tensor in sorted(learner.state().items()):
        sha.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}".encode())
        sha.update(tensor.detach().cpu().contiguous().numpy().tobytes())
    return sha.hexdigest()


def execute(experiment: Experiment, out: Path, console: Console, *, quiet: bool = False) -> Record:
    """Run an experiment in its folder; one that is finished already is left as it is."""
    device = as_device(experiment.device)
    if "OMP_NUM_THREADS" not in os.environ:
        # Steps are far too short to share: a second thread gains little, and on a busy machine it costs minutes.
        torch.set_num_threads(1)
    record, toml = Record(out / experiment.folder), experiment.to_toml()
    record.claim(toml)
    finished = record.result is not None
    if finished and not experiment.stream.is_there():
        return record
    with Downloads(console) as downloads:
        stream = experiment.stream.build(silent if quiet else downloads)
    if finished:
        record.check_data(stream.sha256)
        return record
    record.begin(toml, stream.sha256)
    learner = experiment.learner
    for line in () if quiet else describe(stream, learner):
        say(console, line, "yellow" if line.startswith("warning") else None)
    with Display(console, experiment.name, len(stream), learner.phases(), quiet) as display:

        def observe(event: dict[str, Any]) -> None:
            record.event(event)
            display(event)

        result = learn(stream, learner, seeds=experiment.seeds, device=device, observe=observe)
    save_model(record.path / "model", learner, stream)
    record.finish(result.to_json())
    return record


def save_model(path: Path, learner: Learner, stream: Stream) -> None:
    """What was learned, loadable without the run: tensors as safetensors, and what they mean as JSON."""
    path.mkdir(exist_ok=True)
    tensors = {name: tensor.detach().cpu().contiguous() for name, tensor in learner.state().items()}
    save_file(tensors, path / "model.safetensors")
    settings = {f.name: getattr(learner, f.name) for f in fields(learner)}
    tasks = [{"labels": task.labels, "head": task.head, "outputs": task.outputs} for task in stream]
    card = {"learner": learner.name, "settings": settings, "seeds": learner.address_.seeds, "shape": stream.shape}
    (path / "model.json").write_text(json.dumps(card | {"tasks": tasks, "version": __version__}, indent=1) + "\n")
