"""The loop over tasks, and a run: one experiment in one folder."""

# S seeds, M tasks

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
import torch
from rich.console import Console
from safetensors.torch import save_file

from prer import evaluation
from prer.address import as_device, as_seeds
from prer.console import Display
from prer.experiment import Experiment
from prer.learners.base import Learner, Observer
from prer.record import Record
from prer.stream import Stream
from prer.version import __version__


@dataclass(frozen=True)
class Result:
    """What a run found out; `to_json` is the contract of `result.json`.

    Attributes:
        seeds: of the run.
        matrix: accuracies [S, M, M] in per cent; NaN where not evaluated.
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
        return evaluation.summary(self.matrix)

    def to_json(self) -> dict[str, Any]:
        """The result as plain values, with every metric."""
        matrix = [[[None if np.isnan(v) else v for v in row] for row in R] for R in self.matrix.tolist()]
        plain = {name: value for name, value in vars(self).items() if name not in ("matrix", "seeds")}
        return {"seeds": list(self.seeds), "matrix": matrix} | self.metrics | plain | {"version": __version__}


def learn(
    stream: Stream,
    learner: Learner,
    *,
    seeds: int | Sequence[int] = 5,
    device: str = "auto",
    observe: Observer | None = None,
) -> Result:
    """Learn the tasks of a stream one after another, all seeds together, testing every task seen after each.

    Args:
        stream: the tasks.
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
    begin = time.perf_counter()
    stream = stream.to(device)
    learner.start(stream.shape, seeds, device, observe)
    matrix = np.full((len(seeds), len(stream), len(stream)), np.nan)
    memory: dict[str, list[int]] = {"memory_floats": [], "memory_samples": [], "transient_floats": []}
    for i, task in enumerate(stream):
        learner.learn(task)
        since = time.perf_counter()
        for j in range(i + 1):
            matrix[:, i, j] = learner.accuracy(stream[j]).cpu().numpy()
        learner.seconds_["evaluation"] += time.perf_counter() - since
        kept = {"memory_floats": learner.memory_floats(), "memory_samples": learner.memory_samples()}
        kept["transient_floats"] = learner.transient_floats_
        for name, value in kept.items():
            memory[name].append(value)
        learner.observe_({"event": "task", "task": i, "accuracy": matrix[:, i, : i + 1].tolist()} | kept)
    seconds = {**learner.seconds_, "total": time.perf_counter() - begin}
    digest = digest_of(learner, matrix)
    return Result(
        seeds, matrix, **memory, seconds=seconds, digest=digest, learner=learner.name, stream=stream.name, device=device
    )


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
    stream = experiment.stream.build()
    if finished:
        record.check_data(stream.sha256)
        return record
    record.begin(toml, stream.sha256)
    learner = experiment.learner
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
    tasks = [task.labels for task in stream]
    card = {"learner": learner.name, "settings": settings, "seeds": learner.address_.seeds, "shape": stream.shape}
    (path / "model.json").write_text(json.dumps(card | {"tasks": tasks, "version": __version__}, indent=1) + "\n")
