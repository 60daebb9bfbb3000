"""A run: one experiment in one folder, resumed where it was stopped."""

# S seeds, M tasks

from __future__ import annotations

import contextlib
import re
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from prer.address import as_device
from prer.data.entry import silent
from prer.errors import NO_MEMORY, InputError, Interrupted, RunError, out_of_memory
from prer.learners.base import Learner
from prer.learners.encoding import about_encoder
from prer.learners.registry import code_of
from prer.models import plain
from prer.models.card import card
from prer.models.folder import UNREADABLE, parts, save
from prer.models.samples import save_samples
from prer.nn.networks import has_large_maps
from prer.presets.auto import too_few_steps
from prer.runs.autosave import Autosave, differences, platform_of
from prer.runs.checkpoint import Checkpoint
from prer.runs.experiment import Experiment, modernised
from prer.runs.folder import RunFolder
from prer.runs.learn import learn_tasks
from prer.runs.observer import RunObserver, Start
from prer.streams.stream import Stream
from prer.training.computing import computing
from prer.training.loop import Observer
from prer.version import __version__


def execute(experiment: Experiment, out: Path, observer: RunObserver = RunObserver()) -> RunFolder:  # noqa: B008
    """Run an experiment in its folder, resuming it if it was interrupted; a finished one is not run again."""
    folder = RunFolder(experiment.path(out))
    folder.claim(experiment.is_same)
    return _execute(folder, experiment, observer)


def resume(path: Path, observer: RunObserver = RunObserver(), *, force: bool = False) -> RunFolder:  # noqa: B008
    """Resume a run from its folder alone; with `force` even if something has changed since."""
    folder = RunFolder(path.resolve())
    folder.check_names()
    experiment, began = Experiment.parse_run(folder.experiment), folder.environment.get("context")
    changed = []
    if isinstance(began, dict) and isinstance(began.get("experiment"), dict):
        changed = list(differences(modernised(began)["experiment"], experiment.tables()))
    elif re.search("-[0-9a-f]{8}$", folder.path.name) and not folder.path.name.endswith(experiment.hashes):
        changed = [f"its hash was {folder.path.name[-8:]} and is {experiment.hash}"]
    if changed and not force:
        raise InputError(f"the experiment of {path} has changed: {'; '.join(changed)}; undo that, or pass --force")
    with folder.as_it_began():
        return _execute(folder, experiment, observer, force=force)


def _execute(folder: RunFolder, experiment: Experiment, observer: RunObserver, *, force: bool = False) -> RunFolder:
    finished = folder.result is not None
    if finished and not experiment.stream.is_there():
        return folder
    device = experiment.device if finished else as_device(experiment.device)
    with observer.fetching() as progress:
        stream = experiment.stream.build(progress)
    code = code_of(type(experiment.learner))
    if finished:
        folder.check_data(stream.sha256)
        folder.check_code(None if force else code)
        return _tidied(folder)
    with folder.writing(), computing(device, folder.threads):
        if folder.result is not None:  # another process has finished it while we read the data
            return _tidied(folder)
        folder.begin(experiment.to_toml())
        learner = experiment.learner
        splits = {id(task.split): task for task in stream}  # tasks that differ only in their views share a split
        sizes = [task.size for task in splits.values()]
        phases, least = learner.phases(*sizes[0]), min(sizes)
        few = too_few_steps(learner.phases(*least), learner.batch, least[0])
        context = {"experiment": experiment.tables(), "data": stream.sha256, "prer": __version__}
        context |= {} if code is None else {"plugin": code}
        flow = getattr(getattr(learner, "density", None), "has_kernels", False)
        context |= platform_of(device, flow or has_large_maps(stream.shape, learner.channels))
        autosave = _autosave(folder, context, force, len(stream), phases, [few] if few else [])
        learned = autosave.before.about["tasks"] if autosave.before else None
        encoding = about_encoder(learner, stream.shape, stream[0].reading.extractor)
        start = Start(experiment.name, folder.path, stream, phases, folder.warnings, learned, encoding)
        try:
            with autosave.listening(), observer.training(start) as show:
                _train(folder, experiment, stream, device, autosave, show)
        except Interrupted as interrupted:
            interrupted.folder = str(folder.path)
            raise
        except RunError as error:
            with contextlib.suppress(OSError):  # a full disk must not hide the reason
                folder.event({"event": "failed", "reason": str(error)})
            raise
    return folder


def _tidied(folder: RunFolder) -> RunFolder:
    """Delete the checkpoint that a run leaves if it is killed right after writing its result; return the run."""
    with contextlib.suppress(OSError):  # it stays in a read-only folder
        Checkpoint(folder.path / "checkpoint").delete()
    return folder


def _autosave(
    folder: RunFolder,
    context: dict[str, Any],
    force: bool,
    tasks: int,
    phases: Mapping[str, int],
    concerns: Sequence[str],
) -> Autosave:
    """The autosave of the run; if there is a checkpoint, the run resumes from it."""
    checkpoint = Checkpoint(folder.path / "checkpoint")
    autosave = Autosave(checkpoint, context, folder.events_so_far, folder.secure_events, force)
    if autosave.before is None:
        folder.start(context, tasks, phases, concerns)
    else:
        folder.go_on(autosave.before.about, autosave.forced)
    return autosave


def _train(
    folder: RunFolder, experiment: Experiment, stream: Stream, device: str, autosave: Autosave, show: Observer
) -> None:
    learner, resumed = experiment.learner, autosave.before is not None

    def observe(event: dict[str, Any]) -> None:
        folder.event(event)
        if event["event"] == "task":
            save_samples(folder.path / "memory", learner)
        show(event)

    try:
        result = learn_tasks(stream, learner, experiment.seeds, device, observe, autosave, warned=True)
    except Exception as error:  # a forged checkpoint can raise anything, and memory can run out anywhere
        if out_of_memory(error):
            raise RunError(NO_MEMORY) from error
        if not resumed or isinstance(error, (InputError, RunError, OSError)):
            raise
        raise RunError(f"the run in {folder.path} could not be resumed: {error}") from error
    about = {"name": experiment.name, "data": experiment.stream.data, "stream": stream}
    assert result.learned is not None
    shutil.rmtree(folder.path / "model", ignore_errors=True)  # of an attempt that was killed before its result
    (folder.path / "model").mkdir()
    save(folder.path / "model", result.learned, card=card(learner, result.to_json(), **about))
    folder.finish(result.to_json())
    autosave.saved = None  # from here on, a signal has nothing to save
    autosave.checkpoint.delete()


def load_model(path: Path, device: str = "cpu") -> tuple[Learner, Stream]:
    """The trained learner of a finished run, and its stream."""
    folder = RunFolder(path.resolve())
    folder.check_names()
    experiment = Experiment.parse_run(folder.experiment)
    with folder.as_it_began():
        stream = experiment.stream.build(silent)
    folder.check_data(stream.sha256)
    learner = experiment.learner
    learner.start(stream.shape, experiment.seeds, device)
    try:
        known, tensors = parts(folder.path / "model")
        learner.restore(list(stream), plain.own(tensors), known.get("notes", {}))
    except FileNotFoundError:
        raise InputError(f"{path} contains no model; finish the run first: prer resume {path}") from None
    except UNREADABLE as error:
        raise InputError(f"the model of {path} cannot be read: {error}; run it again") from None
    return learner, stream
