"""The memory view of a run, from its saved samples and its model.

Nothing in a run folder is executed: tensors are safetensors, settings are TOML. Data is read only if it needs no
download and the run folder contains its checksum. Otherwise a folder from someone else could make the page show files
of this machine, and the page may be sent back to them.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path

import numpy as np
from safetensors import SafetensorError

from prer.disk import content
from prer.errors import InputError, RunError
from prer.report.model_view import Class, MemoryView, look, named
from prer.report.run import Run
from prer.runs.folder import RunFolder
from prer.text import excerpt

MOST_SAMPLES = 2**28  # bytes of all samples that a run saved
MOST_MODEL = 2**30  # bytes of a model that is loaded for a page
MOST_WIDTH, MOST_SEEDS, MOST_TASKS = 4096, 100, 1000


def remembered(run: Run) -> MemoryView:
    """The memory view of a run, with notes on missing parts."""
    model, why = None, "the run is not finished"
    if run.state == "finished":
        model, why = _loaded(run.path.resolve(), _stamp(run.path))
    saved = samples_after(run.path)
    labels = [c.label for c in model.classes] if model else _labels(run)
    known = model.classes if model else []
    count = max([len(known), *(len(samples) for samples in saved.values())], default=0)
    labels += [f"class {i + 1}" for i in range(len(labels), count)]
    classes = []
    for i, label in enumerate(labels[:count]):
        of_model = known[i] if i < len(known) else Class(label)
        later = {f"task {t}": samples[i] for t, samples in saved.items() if i < len(samples)}
        rows = {name: x for name, x in of_model.rows.items() if not (later and name == "samples")}
        classes.append(Class(label, rows | later, of_model.real, of_model.sampled, of_model.accuracy))
    generates = bool(saved) or bool(model and model.generates)
    missing = "Real samples, reconstructions, embeddings and the accuracy of each class are not shown"
    notes = [f"{missing}: {why}."] if why else []
    if not saved and generates:
        notes.append("The run saved no samples after each task; the samples shown come from the final model.")
    return MemoryView(classes, notes, generates)


def samples_after(folder: Path) -> dict[int, np.ndarray]:
    """The samples of the first seed that a run saved after each task [classes, n, ...]."""
    from safetensors.numpy import load

    found, room = {}, MOST_SAMPLES
    for task in range(1, MOST_TASKS):
        try:
            samples = load(content(folder / "memory" / f"task-{task}.safetensors", room)).get("samples")
        except (OSError, ValueError, SafetensorError):
            break
        if samples is None or not _are_samples(samples):
            break
        found[task] = samples
        room -= samples.nbytes
    return found


def _are_samples(x: np.ndarray) -> bool:
    """Whether these are uint8 images [classes, n, C, H, W] or finite vectors [classes, n, features]."""
    if 0 in x.shape or x.shape[1:2] > (64,):
        return False
    if x.dtype == np.uint8:
        return x.ndim == 5 and x.shape[2] in (1, 3) and max(x.shape[3:]) <= 1024
    return x.dtype == np.float32 and x.ndim == 3 and bool(np.isfinite(x).all())


def _labels(run: Run) -> list[str]:
    """The class names in order of arrival, for a run whose model is not loaded."""
    try:
        tasks = json.loads(content(run.path / "model" / "model.json", 2**24))["tasks"]
        return named([[excerpt(label) for label in task["labels"]] for task in tasks])
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return list(run.story.health)


def _stamp(folder: Path) -> float:
    """Modification time of the model, part of the cache key of `_loaded`."""
    try:
        return (folder / "model" / "model.safetensors").lstat().st_mtime
    except OSError:
        return 0.0


@lru_cache(maxsize=16)
def _loaded(folder: Path, stamp: float) -> tuple[MemoryView | None, str]:
    """The memory view from the model and data of a finished run, or None and the reason."""
    try:
        with _offline():
            return _from_model(folder), ""
    except (InputError, RunError) as error:
        return None, excerpt(str(error).replace(str(folder), folder.name))  # does not reveal the path
    except (RuntimeError, MemoryError, OSError, ValueError, TypeError, KeyError, IndexError, RecursionError) as error:
        return None, excerpt(f"the model or its data cannot be used ({type(error).__name__})")


@contextmanager
def _offline() -> Iterator[None]:
    """Forbid downloads: the user asked for a page, not for data."""
    before = os.environ.get("PRER_OFFLINE")
    os.environ["PRER_OFFLINE"] = "1"
    try:
        yield
    finally:
        if before is None:
            del os.environ["PRER_OFFLINE"]
        else:
            os.environ["PRER_OFFLINE"] = before


def _from_model(folder: Path) -> MemoryView:
    record = RunFolder(folder)
    _check(record)
    from prer.runs.run import load_model
    from prer.training.computing import computing

    with computing("cpu", threads=1):
        return look(*load_model(folder))


def _check(record: RunFolder) -> None:
    """Refuse a run whose data must be fetched, or whose model is too large for a page."""
    from prer.runs.experiment import Experiment

    model = record.path / "model" / "model.safetensors"
    if not model.is_file():
        raise InputError("the run has no model")
    if not isinstance(record.data_sha256, str):
        raise InputError("the run folder has no checksum of its data")
    experiment = Experiment.parse_run(record.experiment)
    learner, widths = experiment.learner, [*experiment.learner.channels, *experiment.learner.hidden]
    embedding = 0 if learner.embedding == "auto" else learner.embedding  # auto is never large
    small = max([*widths, embedding]) <= MOST_WIDTH and len(experiment.seeds) <= MOST_SEEDS
    if not small or model.lstat().st_size > MOST_MODEL or experiment.stream.count > MOST_TASKS:
        raise InputError("the model is too large to load for a page")
    with record.as_it_began():
        if not experiment.stream.is_there():
            raise InputError("the data is not on this machine, and a report downloads nothing")
