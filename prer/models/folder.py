"""The model folder: written so that a crash leaves the old model or the new one, and read with suspicion.

model.json            everything but the tensors, the name and sha256 of their file, and the previous version
model.safetensors     the tensors; later versions have a number in the name
README.md             the card
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout
from safetensors import SafetensorError
from safetensors.torch import load as load_tensors
from safetensors.torch import save as save_tensors
from torch import Tensor

from prer.disk import content, durable, exists, replace_file, room, settle
from prer.errors import InputError
from prer.models import plain
from prer.models.card import taught
from prer.models.model import Model
from prer.text import excerpt, shown

ABOUT, CARD, LOCK = "model.json", "README.md", ".lock"
FIRST = "model.safetensors"
TENSORS = re.compile(r"model(-\d{1,9})?\.safetensors")
MOST_JSON = 2**26  # bytes of the file that describes the tensors
# What a forged file may raise; torch reports impossible shapes as a RuntimeError, and RecursionError is one.
UNREADABLE = (OSError, SafetensorError, ValueError, LookupError, TypeError, AttributeError, RuntimeError, OverflowError)


def load(folder: Path, device: str = "cpu") -> Model:
    """Load the model of a folder, or of a finished run."""
    return load_version(folder, device)[0]


def load_version(folder: Path, device: str = "cpu") -> tuple[Model, str]:
    """The model of a folder, and which version it is (see `save`)."""
    path = inner(folder)
    try:
        known, tensors = parts(path)
        return plain.model_of(known, tensors, device), version_of(known)
    except FileNotFoundError:
        what = "contains no model; give the folder of a model or of a finished run"
        raise InputError(f"{shown(folder)} {what}") from None
    except UNREADABLE as error:
        raise InputError(f"the model in {shown(path)} cannot be read: {excerpt(str(error))}") from None


def inner(folder: Path) -> Path:
    """The model's own folder: the `model/` of a run, or the folder itself."""
    return folder / "model" if not exists(folder / ABOUT) and exists(folder / "model" / ABOUT) else folder


def parts(path: Path) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """The plain values and tensors of a model's folder; raises any of `UNREADABLE`."""
    for attempt in range(3):
        known = described(path)
        try:
            return known, _tensors(path, known)
        except FileNotFoundError:  # another process may have replaced the model after we read its description
            if attempt == 2 or described(path) == known:
                raise ValueError(f"{_file(known)} is missing") from None
    raise AssertionError


def described(path: Path) -> dict[str, Any]:
    """The plain values of a model's folder; raises any of `UNREADABLE`."""
    known = json.loads(content(path / ABOUT, MOST_JSON))
    if not isinstance(known, dict):
        raise ValueError(f"{ABOUT} is not a table")
    number = known.get("format", 1)
    if type(number) is not int or number > plain.FORMAT:
        raise ValueError(f"it has format {number!r} of a newer version of prer; update prer: pip install -U prer")
    history = known.get("history", [])
    if not isinstance(history, list) or not all(isinstance(event, dict) for event in history):
        raise ValueError("its history is not a list of events")
    return known


def save(
    path: Path,
    model: Model,
    replaces: str | None = None,
    card: str | None = None,
) -> str:
    """Save a model, and keep the version that it replaces for `undo`; return its own version.

    The caller holds the lock. The new tensors get a new name; `model.json`, which names them, is replaced last.

    Args:
        path: an existing folder.
        model: the model.
        replaces: the version that is replaced, if the folder contains a model.
        card: the card; by default that of a model that was taught.
    """
    before = _current(path)
    there = None if before is None else version_of(before)
    tensors = save_tensors(plain.tensors(model))
    sha256 = hashlib.sha256(tensors).hexdigest()
    if there not in (None, replaces, sha256):
        what = "contains another model" if replaces is None else "has been changed since this model was loaded from it"
        raise InputError(f"{shown(path)} {what}; save to another folder, or load that one and teach it")
    if before is not None:
        model.history = list(before.get("history", []))  # scores may have been added since the model was loaded
    name = next(name for name in _names() if not (path / name).exists())
    durable(path / name, tensors)
    known = plain.about(model) | {"tensors": {"file": name, "sha256": sha256}}
    previous = {k: v for k, v in before.items() if k != "previous"} if before else None
    if before and there == sha256:  # nothing was learned since: undo goes back to what was before that
        previous = before.get("previous")
    _replace(path, known, previous)
    replace_file(path / CARD, (taught(model, name=path.name, file=name) if card is None else card).encode())
    return sha256


def record(path: Path, event: Mapping[str, Any]) -> None:
    """Add an event to the history of a saved model, which does not change otherwise; the caller holds the lock."""
    known = described(path)
    history = [*known.get("history", []), dict(event)]
    _replace(path, {k: v for k, v in known.items() if k != "previous"} | {"history": history}, known.get("previous"))


def undo(path: Path, event: Mapping[str, Any]) -> Model:
    """Go back to the version before the last lesson, and return it; the caller holds the lock."""
    known = _current(path)
    if known is None:
        raise InputError(f"{shown(path)} contains no model")
    before = known.get("previous")
    if not isinstance(before, dict):
        raise InputError(f"{shown(path)} has no previous version; only the last lesson can be undone, and only once")
    try:
        model = plain.model_of(before, _tensors(path, before))
    except UNREADABLE as error:
        raise InputError(f"the previous version of {shown(path)} cannot be read: {excerpt(str(error))}") from None
    model.history = [*known.get("history", []), dict(event)]
    _replace(path, before | {"history": model.history}, None)
    replace_file(path / CARD, taught(model, name=path.name, file=_file(before)).encode())
    return model


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Make and lock a model's folder; if the process dies, the operating system releases the lock."""
    for folder in (path, path.parent):
        if exists(folder / "experiment.toml"):
            how = f"copy its model/ to a folder of its own, and teach that: cp -r {shown(folder / 'model')} MODEL"
            raise InputError(f"{shown(folder)} is a run, whose model belongs to its result; {how}")
    new = not exists(path)
    try:
        path.mkdir(parents=True, exist_ok=True)
        others = [entry.name for entry in path.iterdir() if not _is_ours(entry.name)]
        if others and not exists(path / ABOUT):
            what = f"contains other files, such as {shown(others[0], 40)!r}"
            raise InputError(f"{shown(path)} {what}; give another folder")
        with FileLock(path / LOCK, timeout=0):
            yield
    except Timeout:
        raise InputError(f"another process is teaching {shown(path)}; wait until it ends, or stop it") from None
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise InputError(f"cannot write the model folder {shown(path)}: {reason}; use another folder") from None
    finally:
        if new and not exists(path / ABOUT):  # nothing was learned
            with suppress(OSError):
                (path / LOCK).unlink(missing_ok=True)
                path.rmdir()


def version_of(known: Mapping[str, Any]) -> str:
    """What identifies the tensors of a saved model: their checksum, or the text of those without one."""
    tensors = known.get("tensors")
    return str(tensors["sha256"]) if isinstance(tensors, dict) and "sha256" in tensors else "format 1"


def size_of(path: Path) -> int:
    """Bytes of the present version of a model on disk."""
    known = described(path)
    return (path / ABOUT).stat().st_size + (path / _file(known)).stat().st_size


def _current(path: Path) -> dict[str, Any] | None:
    """The plain values of the model in a folder; None if there is no model."""
    try:
        return described(path)
    except FileNotFoundError:
        return None
    except UNREADABLE as error:
        raise InputError(f"the model in {shown(path)} cannot be read: {excerpt(str(error))}") from None


def _tensors(path: Path, known: Mapping[str, Any]) -> dict[str, Tensor]:
    """The tensors that a description names, after a check that they are the ones it was written for."""
    data = content(path / _file(known), room())
    expected = version_of(known)
    if expected not in ("format 1", hashlib.sha256(data).hexdigest()):
        raise ValueError(f"{_file(known)} is damaged: its checksum differs from the one in {ABOUT}")
    return load_tensors(data)


def _file(known: Mapping[str, Any]) -> str:
    """Name of the file with the tensors; never a path."""
    tensors = known.get("tensors", {"file": FIRST})
    name = tensors["file"]
    if not isinstance(name, str) or not TENSORS.fullmatch(name):
        raise ValueError(f"{ABOUT} names no file of tensors")
    return name


def _replace(path: Path, known: dict[str, Any], previous: dict[str, Any] | None) -> None:
    """Replace the description atomically, then delete the tensors that no version needs."""
    settle(path)  # the new tensors must be found after a power loss
    whole = known | ({} if previous is None else {"previous": previous})
    replace_file(path / ABOUT, (json.dumps(whole, indent=1) + "\n").encode())
    settle(path)
    needed = {_file(version) for version in (known, previous) if version is not None}
    for entry in path.iterdir():
        if TENSORS.fullmatch(entry.name) and entry.name not in needed:
            entry.unlink(missing_ok=True)


def _names() -> Iterator[str]:
    yield FIRST
    yield from (f"model-{number}.safetensors" for number in range(2, 10**9))


def _is_ours(name: str) -> bool:
    """Whether a file may be what a crash has left of a model's first version."""
    return name in (ABOUT, CARD, LOCK, f".{ABOUT}.new", f".{CARD}.new") or bool(TENSORS.fullmatch(name))
