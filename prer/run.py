"""The loop over tasks, and a run: one experiment in one folder."""

# S seeds, M tasks

from __future__ import annotations

import contextlib
import hashlib
import re
import time
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console

from prer.address import as_device, as_seeds
from prer.card import card
from prer.checkpoint import Checkpoint
from prer.computing import computing
from prer.console import say, warn
from prer.data.entry import silent
from prer.display import Display, Downloads, describe
from prer.errors import NO_MEMORY, InputError, Interrupted, RunError, out_of_memory
from prer.experiment import Experiment
from prer.health import too_few_steps
from prer.keeper import Keeper, differences, platform_of
from prer.learners.base import Learner, Observer
from prer.model import UNREADABLE, load_tensors, save_model, save_samples
from prer.networks import has_large_maps
from prer.record import Record
from prer.result import KEPT, Ledger, Result, tested
from prer.stream import Stream
from prer.task import Task
from prer.version import __version__


def learn(
    stream: Iterable[Task],
    learner: Learner,
    *,
    seeds: int | Sequence[int] = 5,
    device: str = "auto",
    observe: Observer | None = None,
    keeper: Keeper | None = None,
    warned: bool = False,
) -> Result:
    """Learn the tasks of a stream one after another, all seeds together, testing every task seen after each.

    It computes with one thread, unless OMP_NUM_THREADS is set, and leaves torch's settings as they were.

    Args:
        stream: the tasks; a `Stream`, or tasks that are not known in advance (`prer.arriving`).
        learner: what learns them; it begins anew, or where the keeper's checkpoint is.
        seeds: how many (0, 1, ...), or which.
        device: "cpu", "cuda" or "auto".
        observe: called with a dictionary for every epoch, every task and every figure of health.
        keeper: saves the run while it goes, and lets it go on.
        warned: whether somebody has said already that tasks are too small for the learner's settings; else Python does.

    Example:
        >>> from prer import Naive
        >>> x, y = np.random.default_rng(0).normal(size=(80, 4)), np.repeat(["a", "b", "c", "d"], 20)
        >>> result = learn(Stream.split(x, y), Naive(epochs=1), seeds=2, device="cpu")
        >>> result.matrix.shape
        (2, 2, 2)
    """
    seeds, device = as_seeds(seeds), as_device(device)
    with computing(device):
        return _learn(stream, learner, seeds, device, observe, keeper, warned)


def _learn(
    stream: Iterable[Task],
    learner: Learner,
    seeds: tuple[int, ...],
    device: str,
    observe: Observer | None,
    keeper: Keeper | None,
    warned: bool,
) -> Result:
    begin, name = keeper.begin if keeper else time.perf_counter(), getattr(stream, "name", "arriving")
    met: list[Task] = []
    ledger, done = Ledger(), keeper.before.about["tasks"] if keeper and keeper.before else 0
    for task in stream.to(device) if isinstance(stream, Stream) else (task.to(device) for task in stream):
        if not met:
            learner.start(task.x.shape[1:], seeds, device, observe)
        met.append(task)
        if len(met) <= done:
            continue  # it was learned before
        few = "" if warned else too_few_steps(learner, *task.size)
        if few:
            warnings.warn(few, stacklevel=3)  # points at the caller of `learn`
            warned = True
        if keeper and keeper.before:
            ledger = Ledger.of(keeper.restore(learner, met[:-1])["ledger"], done, len(seeds))
        elif keeper:
            keeper.follow(learner, {"tasks": done, "ledger": ledger.copied(), "notes": learner.notes()})
        ledger.untrained.append(np.full(len(seeds), np.nan))
        if task.head < len(learner.heads_):  # an earlier task has made its head: what is it worth already?
            ledger.foresee(tested(learner, task), tested(_beginner(learner, met), task))
        learner.learn(task)
        learner.trained_, done = {}, len(met)
        learner.observe_({"event": "task", "task": task.index} | ledger.test(learner, met))
    if not met:
        raise InputError("there are no tasks to learn")
    if keeper and keeper.before:
        raise InputError(f"{keeper.checkpoint.path} knows more tasks than there are; delete it to begin anew")
    seconds = {**learner.seconds_, "total": time.perf_counter() - begin}
    matrix, untrained = ledger.matrix(), np.stack(ledger.untrained, axis=1)
    about = {"digest": digest_of(learner, matrix), "learner": learner.name, "stream": name, "device": device}
    kept = {key: getattr(ledger, key) for key in KEPT}
    return Result(seeds, matrix, untrained, **kept, seconds=seconds, **about)


def _beginner(learner: Learner, met: Sequence[Task]) -> Learner:
    """The learner as it was before it learned anything; its weights have addresses, so they come again."""
    beginner = replace(learner)
    beginner.start(met[0].x.shape[1:], learner.address_.seeds, learner.address_.device)
    for task in met:
        if task.head == len(beginner.heads_):
            Learner.meet(beginner, task)  # not DGR's own, which trains a generator
    return beginner


def digest_of(learner: Learner, matrix: np.ndarray) -> str:
    """sha256 over everything a run has learned: two runs with the same digest ended in the same state."""
    sha = hashlib.sha256(np.ascontiguousarray(matrix).tobytes())
    for name, tensor in sorted(learner.state().items()):
        sha.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}".encode())
        sha.update(tensor.detach().cpu().contiguous().numpy().tobytes())
    return sha.hexdigest()


def execute(
    experiment: Experiment, out: Path, console: Console, *, quiet: bool = False, verbose: bool = False
) -> Record:
    """Run an experiment in its folder, from where it was left; one that is finished already stays as it is."""
    record = Record(out / experiment.folder)
    record.claim(experiment.to_toml())
    return _execute(record, experiment, console, quiet=quiet, verbose=verbose)


def resume(
    folder: Path, console: Console, *, quiet: bool = False, verbose: bool = False, force: bool = False
) -> Record:
    """Let a run go on, from its folder alone; `force` also where something has changed since."""
    record = Record(folder.resolve())
    record.check_names()
    experiment, began = Experiment.parse(record.experiment), record.environment.get("context")
    then = began.get("experiment") if isinstance(began, dict) else None
    changed = list(differences(then, experiment.tables())) if isinstance(then, dict) else []
    if then is None and re.search("-[0-9a-f]{8}$", record.path.name) and not record.path.name.endswith(experiment.hash):
        changed = [f"its hash was {record.path.name[-8:]} and is {experiment.hash}"]
    if changed and not force:
        raise InputError(f"the experiment of {folder} has changed: {'; '.join(changed)}; undo that, or take --force")
    with record.as_it_began():
        return _execute(record, experiment, console, quiet=quiet, verbose=verbose, force=force)


def _execute(
    record: Record, experiment: Experiment, console: Console, *, quiet: bool, verbose: bool, force: bool = False
) -> Record:
    finished = record.result is not None
    if finished and not experiment.stream.is_there():
        return record
    device = experiment.device if finished else as_device(experiment.device)
    with Downloads(console) as downloads:
        stream = experiment.stream.build(silent if quiet else downloads)
    if finished:
        record.check_data(stream.sha256)
        return _tidied(record)
    with record.writing(), computing(device, record.threads):
        if record.result is not None:  # another process has finished it while we read the data
            return _tidied(record)
        record.begin(experiment.to_toml())
        context = {"experiment": experiment.tables(), "data": stream.sha256, "prer": __version__}
        learner = experiment.learner
        splits = {id(task.split): task for task in stream}  # tasks that differ in their views alone share theirs
        sizes = [task.size for task in splits.values()]
        phases = learner.phases(*sizes[0])
        here = platform_of(device, phases, has_large_maps(stream.shape, learner.channels))
        few = too_few_steps(learner, *min(sizes))
        keeper = _keeper(record, context | here, force, len(stream), phases, [few] if few else [])
        try:
            display = Display(console, experiment.name, len(stream), phases, quiet, verbose)
            _train(record, experiment, stream, device, keeper, display)
        except Interrupted as interrupted:
            interrupted.folder = str(record.path)
            raise
        except RunError as error:
            with contextlib.suppress(OSError):  # a disk that is full must not hide the reason
                record.event({"event": "failed", "reason": str(error)})
            raise
    return record


def _tidied(record: Record) -> Record:
    """A finished run, without the checkpoint that it may have left when it was killed right after its result."""
    with contextlib.suppress(OSError):  # in a folder that may only be read it stays
        Checkpoint(record.path / "checkpoint").delete()
    return record


def _keeper(
    record: Record,
    context: dict[str, Any],
    force: bool,
    tasks: int,
    phases: Mapping[str, int],
    concerns: Sequence[str],
) -> Keeper:
    """What keeps the run's checkpoint; where there is one, the run goes on from it."""
    checkpoint = Checkpoint(record.path / "checkpoint")
    keeper = Keeper(checkpoint, context, record.events_so_far, record.secure_events, force)
    if keeper.before is None:
        record.start(context, tasks, phases, concerns)
    else:
        record.go_on(keeper.before.about, keeper.forced)
    return keeper


def _train(
    record: Record, experiment: Experiment, stream: Stream, device: str, keeper: Keeper, display: Display
) -> None:
    learner, before, console = experiment.learner, keeper.before, display.console
    if not display.quiet:
        say(console, describe(stream))
        warn(console, record.warnings)
    if before and not display.quiet:
        say(console, f"going on from {record.path}, at task {before.about['tasks'] + 1} of {len(stream)}")
    with keeper.listening(), display:

        def observe(event: dict[str, Any]) -> None:
            record.event(event)
            if event["event"] == "task":
                save_samples(record.path / "memory", learner)
            display(event)

        try:
            result = _learn(stream, learner, experiment.seeds, device, observe, keeper, warned=True)
        except Exception as error:  # a forged checkpoint fails in ways that nobody can name, and memory ends anywhere
            if out_of_memory(error):
                raise RunError(NO_MEMORY) from error
            if not before or isinstance(error, (InputError, RunError, OSError)):
                raise
            raise RunError(f"the run could not go on from {record.path}: {error}") from error
        save_model(record.path / "model", learner, stream, card(experiment, stream, result))
        record.finish(result.to_json())
        keeper.saved = None  # a signal from here on has nothing to save
        keeper.checkpoint.delete()


def load_model(folder: Path, device: str = "cpu") -> tuple[Learner, Stream]:
    """The learner of a finished run as it was at its end, and its stream."""
    record = Record(folder.resolve())
    record.check_names()
    experiment = Experiment.parse(record.experiment)
    with record.as_it_began():
        stream = experiment.stream.build(silent)
    record.check_data(stream.sha256)
    learner = experiment.learner
    learner.start(stream.shape, experiment.seeds, device)
    try:
        load_tensors(learner, list(stream), record.path / "model")
    except FileNotFoundError:
        raise InputError(f"{folder} has no model; let the run end first: prer resume {folder}") from None
    except UNREADABLE as error:
        raise InputError(f"the model of {folder} cannot be read: {error}; run it again") from None
    return learner, stream
