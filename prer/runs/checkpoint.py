"""Checkpoints: the state of a run between two epochs, as safetensors and JSON, written atomically.

A checkpoint holds the state before the current task and, for every phase of that task that has begun, the tensors it
trains. To resume, the task is learned again from its start, but each phase begins with its saved tensors at its saved
epoch. Everything between the phases depends only on addressed randomness and these tensors, so it is repeated exactly,
and a learner need not know where it was stopped.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from safetensors import SafetensorError
from safetensors.torch import load, save
from torch import Tensor

from prer.disk import as_json, checksum, content, durable, room, settle
from prer.errors import InputError, RunError
from prer.training.phase import Trained

VERSION = 1


FLOOR = 5.0  # minimum seconds between two checkpoints


SHARE = 0.02  # maximum share of a run's time that checkpoints may take


MOST_JSON = 2**28  # bytes; more than the results of a thousand tasks and ten seeds need


@dataclass
class Saved:
    """The content of a checkpoint.

    Attributes:
        about: plain values: the run's progress, its results so far, its context.
        state: every tensor of the learner as it was before the current task.
        phases: what the phases of the current task have trained, in their order.
    """

    about: dict[str, Any]
    state: dict[str, Tensor] = field(default_factory=dict)
    phases: dict[str, Trained] = field(default_factory=dict)


@dataclass(frozen=True)
class Checkpoint:
    """A folder with one checkpoint; the previous one stays until the new one has been read back."""

    path: Path

    @property
    def places(self) -> tuple[Path, Path, Path]:
        """The folders that may hold a checkpoint: its own, a new one not yet renamed, an old one not yet deleted."""
        name = self.path.name
        return self.path, self.path.with_name(f"{name}.new"), self.path.with_name(f"{name}.old")

    def read(self) -> Saved | None:
        """Read an intact checkpoint; None if none was ever completed.

        After a crash there may be two. Either will do: a run ends in the same state from both.
        """
        reasons = []
        for place in self.places:
            if place.is_symlink() or place.exists():
                try:
                    return _read(place)
                except _Damaged as error:
                    reasons.append(f"{place} is damaged: {error}")
        if reasons and self.places[0].exists():
            raise InputError(f"{reasons[0]}; delete {self.path} to start over")
        return None  # the very first write was interrupted

    def write(self, saved: Saved) -> None:
        """Replace the checkpoint; an interruption at any point leaves an intact one."""
        path, new, old = self.places
        for place in self.places:
            if place.is_symlink():
                raise InputError(f"{place} is a link; checkpoints are never written through links, so remove it")
        if new.exists():
            shutil.rmtree(new)
        new.mkdir(parents=True)
        tensors = save({name: t.cpu().contiguous() for name, t in _flat(saved)})
        phases = {name: trained.epochs for name, trained in saved.phases.items()}
        plain = {"version": VERSION, "bytes": len(tensors), "sha256": hashlib.sha256(tensors).hexdigest()}
        plain |= {"phases": phases, "about": saved.about}
        durable(new / "state.safetensors", tensors)
        durable(new / "checkpoint.json", as_json({"sha256": checksum(plain), "content": plain}))
        settle(new)
        try:
            _read(new)
        except _Damaged as error:
            raise RunError(f"the checkpoint {new} cannot be read back: {error}; is the disk damaged?") from None
        if path.exists():
            if old.exists():
                shutil.rmtree(old)
            path.rename(old)
        new.rename(path)
        settle(path.parent)
        if old.exists():
            shutil.rmtree(old)

    def delete(self) -> None:
        """Delete the checkpoint and the remains of interrupted writes."""
        for place in self.places:
            if place.is_dir() and not place.is_symlink():
                shutil.rmtree(place)


class Pace:
    """Decides when to write a checkpoint, so that checkpoints take less than 2 % of the time."""

    def __init__(self) -> None:
        given = os.environ.get("PRER_CHECKPOINT_SECONDS")
        try:
            self.floor = FLOOR if given is None else float(given)
            if not self.floor >= 0:  # also true of NaN
                raise ValueError
        except ValueError:
            raise InputError(f"PRER_CHECKPOINT_SECONDS is {given!r}; set it to a number of seconds") from None
        self.share = SHARE if given is None else 1.0  # an interval set by the user may cost more
        self.last, self.cost = time.monotonic(), 0.0

    def due(self) -> bool:
        """Whether a checkpoint is due."""
        return time.monotonic() - self.last >= max(self.floor, self.cost / self.share)

    def wrote(self, begin: float) -> None:
        """Record that a checkpoint was written, from `begin` until now."""
        self.last = time.monotonic()
        self.cost = self.last - begin


class _Damaged(Exception):
    """A checkpoint cannot be used; the message says why."""


def _flat(saved: Saved) -> Iterator[tuple[str, Tensor]]:
    yield from ((f"state/{name}", tensor) for name, tensor in saved.state.items())
    for phase, trained in saved.phases.items():
        yield from ((f"phase/{phase}/{name}", tensor) for name, tensor in trained.tensors.items())


def _read(place: Path) -> Saved:
    plain = _read_json(place)
    data = _bytes(place / "state.safetensors", min(plain["bytes"], room()))
    if len(data) != plain["bytes"] or hashlib.sha256(data).hexdigest() != plain["sha256"]:
        raise _Damaged("state.safetensors does not match its checksum")
    try:
        saved = Saved(plain["about"], {}, {name: Trained(n, {}) for name, n in plain["phases"].items()})
        for name, tensor in load(data).items():
            if tensor.is_floating_point() and not tensor.isfinite().all():
                raise _Damaged(f"{name} contains NaN or infinite values")
            part, within = name.split("/", 1)
            if part == "state":
                saved.state[within] = tensor
            else:
                phase, place_in = within.split("/", 1)
                saved.phases[phase].tensors[place_in] = tensor
    except (SafetensorError, KeyError, ValueError, TypeError, AttributeError, RuntimeError) as error:
        raise _Damaged(f"its tensors are invalid ({type(error).__name__})") from None
    return saved


def _read_json(place: Path) -> dict[str, Any]:
    try:
        whole = json.loads(_bytes(place / "checkpoint.json", MOST_JSON))
        plain = whole["content"]
        if whole["sha256"] != checksum(plain):
            raise _Damaged("checkpoint.json does not match its checksum")
        if plain["version"] != VERSION:
            raise _Damaged(f"it has format version {plain['version']!r}, but this prer reads version {VERSION}")
        kinds = {"bytes": int, "sha256": str, "about": dict, "phases": dict}
        epochs = plain["phases"].values() if type(plain["phases"]) is dict else ()
        if any(type(plain[key]) is not kind for key, kind in kinds.items()) or any(type(n) is not int for n in epochs):
            raise _Damaged("checkpoint.json has invalid values")
    except (ValueError, KeyError, TypeError, RecursionError):
        raise _Damaged("checkpoint.json cannot be read") from None
    return plain


def _bytes(file: Path, most: int) -> bytes:
    try:
        return content(file, most)
    except ValueError as error:
        raise _Damaged(str(error)) from None
    except OSError as error:
        raise _Damaged(f"{file.name} cannot be read: {error.strerror}") from None
