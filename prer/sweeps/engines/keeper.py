"""Copies of run folders, which an actor keeps for the nodes of a Ray cluster that share no file system."""

from __future__ import annotations

import shutil
import stat
from collections.abc import Mapping
from pathlib import Path

from prer.disk import replace_file
from prer.runs.folder import FILES, FOLDERS, LOCK

LAST = "result.json"  # is written last, as it marks a run as finished
TRIES = 100


class Keeper:
    """Keeps the newest copy of each run folder; Ray makes it an actor."""

    def __init__(self) -> None:
        self._copies: dict[str, dict[str, bytes]] = {}
        self._versions: dict[str, int] = {}
        self._ended: set[str] = set()

    def keep(self, name: str, copy: Mapping[str, bytes], *, over: bool = True) -> None:
        """Keep a copy; if not `over`, only if there is none yet.

        After `forget`, copies are ignored: they come from another task of the run, of a command that was killed. A
        command that wants the run again says so by `over=False`.
        """
        if not over:
            self._ended.discard(name)
        if name in self._ended:
            return
        if over or not self._copies.get(name):
            self._copies[name] = dict(copy)
            self._versions[name] = self._versions.get(name, 0) + 1

    def kept(self, name: str) -> dict[str, bytes]:
        """The copy of a run folder; empty if there is none."""
        return self._copies.get(name, {})

    def newer(self, known: Mapping[str, int]) -> dict[str, tuple[int, dict[str, bytes]]]:
        """The copies that are newer than the known versions, with their versions."""
        new = {name: number for name, number in self._versions.items() if number > known.get(name, 0)}
        return {name: (number, self._copies[name]) for name, number in new.items()}

    def forget(self, name: str) -> None:
        """Delete the copy of a run that has ended; its version stays."""
        self._copies[name] = {}
        self._ended.add(name)

    def ended(self, name: str) -> bool:
        """Whether the command has the result of this run."""
        return name in self._ended


def packed(folder: Path) -> dict[str, bytes]:
    """The files of a run folder, by their paths in it; with a whole checkpoint, even while the run writes another."""
    for _ in range(TRIES):
        try:
            checkpoint = folder / "checkpoint"
            before = _number(checkpoint)
            # The checkpoint first: events that are written meanwhile are cut off when the run resumes from it.
            copy = {f"checkpoint/{file.name}": _bytes(file) for file in checkpoint.glob("*")}
            if before != _number(checkpoint):
                continue
            others = [folder / name for name in FILES if name != LOCK]
            others += [file for name in FOLDERS if name != "checkpoint" for file in (folder / name).glob("*")]
            return copy | {str(file.relative_to(folder)): _bytes(file) for file in others if file.exists()}
        except FileNotFoundError:  # replaced while we read
            continue
    return {}


def unpack(folder: Path, copy: Mapping[str, bytes]) -> None:
    """Make a run folder equal to a copy of it; an interruption leaves a run that can be resumed."""
    if not copy:
        return
    folder.mkdir(parents=True, exist_ok=True)
    new = folder / "checkpoint.new"  # where a run looks, too
    shutil.rmtree(new, ignore_errors=True)
    for path in sorted(copy, key=lambda path: path == LAST):
        file = new / Path(path).name if path.startswith("checkpoint/") else folder / path
        file.parent.mkdir(exist_ok=True)
        replace_file(file, copy[path])
    for name in FOLDERS:
        if name == "checkpoint" or not any(path.startswith(f"{name}/") for path in copy):
            shutil.rmtree(folder / name, ignore_errors=True)
    if new.exists():
        new.rename(folder / "checkpoint")


def _number(folder: Path) -> int | None:
    return folder.stat().st_ino if folder.exists() else None


def _bytes(file: Path) -> bytes:
    return file.read_bytes() if stat.S_ISREG(file.lstat().st_mode) else b""
