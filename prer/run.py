"""The loop over tasks, and a run: one experiment in one folder."""

# S seeds, M tasks

from __future__ import annotations

import contextlib
import copy
import hashlib
import json
import os
import time
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from rich.console import Console
from safetensors.torch import save_file

from prer import evaluation
from prer.address import as_device, as_seeds
from prer.checkpoint import Checkpoint
from prer.console import Display, Downloads, describe, say
from prer.data.entry import silent
from prer.errors import InputError, Interrupted, RunError
from prer.experiment import Experiment
from prer.keeper import Keeper, differences, platform_of
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


@dataclass
class Ledger:
    """What is known of a run so far, as plain values."""

    rows: list[list[list[float]]] = field(default_factory=list)  # of the matrix: accuracies [S] on each task tested
    untrained: list[list[float]] = field(default_factory=list)
    memory_floats: list[int] = field(default_factory=list)
    memory_samples: list[int] = field(default_factory=list)
    transient_floats: list[int] = field(default_factory=list)

    @classmethod
    def of(cls, values: dict[str, Any], tasks: int, seeds: int) -> Ledger:
        """As it was written down after so many tasks."""
        try:
            ledger = cls(**copy.deepcopy(values))
            lengths = {len(getattr(ledger, f.name)) for f in fields(cls)}
            numbers = np.array([of_task for row in [*ledger.rows, ledger.untrained] for of_task in row], dtype=float)
        except (TypeError, ValueError):
            lengths, numbers, ledger = set(), np.empty(0), cls()
        if lengths != {tasks} or (tasks and numbers.shape[1:] != (seeds,)):
            raise InputError("the results so far have no sense; delete the checkpoint to begin anew")
        return ledger

    def test(self, learner: Learner, tasks: Sequence[Task]) -> None:
        """A new row: the accuracy on every task seen, and what is kept of the past."""
        self.rows.append([_test(learner, seen) for seen in tasks])
        self.memory_floats.append(learner.memory_floats())
        self.memory_samples.append(learner.memory_samples())
        self.transient_floats.append(learner.transient_floats_)

    def newest(self) -> dict[str, Any]:
        """What the newest task brought, as an event says it."""
        kept = {f.name: getattr(self, f.name)[-1] for f in fields(self)[2:]}
        return {"accuracy": np.transpose(self.rows[-1]).tolist()} | kept

    def matrix(self, seeds: int) -> np.ndarray:
        """R [S, M, M], NaN where not evaluated."""
        R = np.full((seeds, len(self.rows), len(self.rows)), np.nan)
        for i, row in enumerate(self.rows):
            R[:, i, : len(row)] = np.transpose(row)
        return R


def learn(
    stream: Iterable[Task],
    learner: Learner,
    *,
    seeds: int | Sequence[int] = 5,
    device: str = "auto",
    observe: Observer | None = None,
    keeper: Keeper | None = None,
) -> Result:
    """Learn the tasks of a stream one after another, all seeds together, testing every task seen after each.

    Args:
        stream: the tasks; a `Stream`, or tasks that are not known in advance (`prer.arriving`).
        learner: what learns them; it begins anew, or where the keeper's checkpoint is.
        seeds: how many (0, 1, ...), or which.
        device: "cpu", "cuda" or "auto".
        observe: called with a dictionary for every epoch, every task and every figure of health.
        keeper: saves the run while it goes, and lets it go on.

    Example:
        >>> from prer import Naive
        >>> x, y = np.random.default_rng(0).normal(size=(80, 4)), np.repeat(["a", "b", "c", "d"], 20)
        >>> result = learn(Stream.split(x, y), Naive(epochs=1), seeds=2, device="cpu")
        >>> result.matrix.shape
        (2, 2, 2)
    """
    seeds, device = as_seeds(seeds), as_device(device)
    torch.backends.cudnn.deterministic = True  # its other convolutions add in no fixed order, and are no faster here
    begin, name = keeper.begin if keeper else time.perf_counter(), getattr(stream, "name", "arriving")
    met: list[Task] = []
    ledger, done = Ledger(), keeper.before.about["tasks"] if keeper and keeper.before else 0
    for task in stream.to(device) if isinstance(stream, Stream) else (task.to(device) for task in stream):
        if not met:
            learner.start(task.x.shape[1:], seeds, device, observe)
        met.append(task)
        if len(met) <= done:
            continue  # it was learned before
        if keeper and keeper.before:
            ledger = Ledger.of(keeper.restore(learner, met[:-1])["ledger"], done, len(seeds))
        elif keeper:
            keeper.follow(learner, {"tasks": done, "ledger": asdict(ledger), "notes": learner.notes()})
        ledger.untrained.append([np.nan] * len(seeds))
        if task.head < len(learner.heads_):  # an earlier task has made its head: what is it worth already?
            ledger.rows[-1].append(_test(learner, task))
            ledger.untrained[-1] = _test(_beginner(learner, met), task)
        learner.learn(task)
        learner.trained_, done = {}, len(met)
        ledger.test(learner, met)
        learner.observe_({"event": "task", "task": task.index} | ledger.newest())
    if not met:
        raise InputError("there are no tasks to learn")
    if keeper and keeper.before:
        raise InputError(f"{keeper.checkpoint.path} knows more tasks than there are; delete it to begin anew")
    seconds = {**learner.seconds_, "total": time.perf_counter() - begin}
    matrix, untrained = ledger.matrix(len(seeds)), np.transpose(ledger.untrained)
    about = {"digest": digest_of(learner, matrix), "learner": learner.name, "stream": name, "device": device}
    kept = {f.name: getattr(ledger, f.name) for f in fields(ledger)[2:]}
    return Result(seeds, matrix, untrained, **kept, seconds=seconds, **about)


def _test(learner: Learner, task: Task) -> list[float]:
    begin = time.perf_counter()
    accuracy = learner.accuracy(task).tolist()
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
    """Run an experiment in its folder, from where it was left; one that is finished already stays as it is."""
    record = Record(out / experiment.folder)
    record.claim(experiment.to_toml())
    return _execute(record, experiment, console, quiet=quiet)


def resume(folder: Path, console: Console, *, quiet: bool = False, force: bool = False) -> Record:
    """Let a run go on, from its folder alone; `force` also where something has changed since."""
    record = Record(folder.resolve())
    record.check_names()
    experiment, began = Experiment.parse(record.experiment), record.environment.get("context")
    then = began.get("experiment") if isinstance(began, dict) else None
    changed = list(differences(then, experiment.tables())) if isinstance(then, dict) else []
    if changed and not force:
        raise InputError(f"the experiment of {folder} has changed: {'; '.join(changed)}; undo that, or take --force")
    with record.as_it_began():
        return _execute(record, experiment, console, quiet=quiet, force=force)


def _execute(
    record: Record, experiment: Experiment, console: Console, *, quiet: bool = False, force: bool = False
) -> Record:
    device, finished = as_device(experiment.device), record.result is not None
    if finished and not experiment.stream.is_there():
        return record
    with contextlib.nullcontext() if finished else record.writing():
        if not finished:
            record.begin(experiment.to_toml())
        with Downloads(console) as downloads:
            stream = experiment.stream.build(silent if quiet else downloads)
        if finished:
            record.check_data(stream.sha256)
            return record
        if record.threads is not None:
            torch.set_num_threads(record.threads)
        elif "OMP_NUM_THREADS" not in os.environ:
            # Steps are far too short to share: a second thread gains little, and on a busy machine it costs minutes.
            torch.set_num_threads(1)
        context = {"experiment": experiment.tables(), "data": stream.sha256, "prer": __version__}
        keeper = _keeper(record, context | platform_of(device, experiment.learner), force)
        _train(record, experiment, stream, device, keeper, console, quiet)
    return record


def _keeper(record: Record, context: dict[str, Any], force: bool) -> Keeper:
    """What keeps the run's checkpoint; where there is one, the run goes on from it."""
    keeper = Keeper(Checkpoint(record.path / "checkpoint"), context, record.events_so_far, force)
    if keeper.before is None:
        record.start(context)
    else:
        record.go_on(keeper.before.about, keeper.forced)
    return keeper


def _train(
    record: Record, experiment: Experiment, stream: Stream, device: str, keeper: Keeper, console: Console, quiet: bool
) -> None:
    learner, before = experiment.learner, keeper.before
    for line in () if quiet else describe(stream, learner):
        say(console, line, "yellow" if line.startswith("warning") else None)
    if before and not quiet:
        say(console, f"going on from {record.path}, at task {before.about['tasks'] + 1} of {len(stream)}")
    with keeper.listening(), Display(console, experiment.name, len(stream), learner.phases(), quiet) as display:

        def observe(event: dict[str, Any]) -> None:
            record.event(event)
            display(event)

        try:
            result = learn(stream, learner, seeds=experiment.seeds, device=device, observe=observe, keeper=keeper)
        except (RuntimeError, IndexError) as error:
            if not before or isinstance(error, RunError) or "memory" in str(error):
                raise
            raise RunError(f"the run could not go on from {record.path}: {error}") from None
        except Interrupted as interrupted:
            interrupted.folder = str(record.path)
            raise
        save_model(record.path / "model", learner, stream)
        record.finish(result.to_json())
        keeper.checkpoint.delete()


def save_model(path: Path, learner: Learner, stream: Stream) -> None:
    """What was learned, loadable without the run: tensors as safetensors, and what they mean as JSON."""
    path.mkdir(exist_ok=True)
    tensors = {name: tensor.detach().cpu().contiguous() for name, tensor in learner.state().items()}
    save_file(tensors, path / "model.safetensors")
    settings = {f.name: getattr(learner, f.name) for f in fields(learner)}
    tasks = [{"labels": task.labels, "head": task.head, "outputs": task.outputs} for task in stream]
    card = {"learner": learner.name, "settings": settings, "seeds": learner.address_.seeds, "shape": stream.shape}
    (path / "model.json").write_text(json.dumps(card | {"tasks": tasks, "version": __version__}, indent=1) + "\n")
