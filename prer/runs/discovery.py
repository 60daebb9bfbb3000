"""Finds run folders, and the run to compare another one with."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from prer.errors import InputError
from prer.runs.folder import RunFolder

SIGNS = ("experiment.toml", "result.json", "events.jsonl")  # a folder with any of these is a run, perhaps damaged


def discover(folders: Iterable[Path], signs: Sequence[str] = SIGNS) -> tuple[list[Path], list[Path]]:
    """Run folders among and directly inside the given folders, each once; and the given folders without any."""
    found: dict[Path, Path] = {}
    empty = []
    for folder in folders:
        runs = _runs(folder, signs)
        for path in runs:
            found.setdefault(path.resolve(), path)
        empty += [] if runs else [folder]
    return list(found.values()), empty


def _runs(folder: Path, signs: Sequence[str]) -> list[Path]:
    """The folder itself if it is a run, otherwise the runs in it."""
    return [folder] if _is_run(folder, signs) else _runs_in(folder, signs)


def _runs_in(folder: Path, signs: Sequence[str]) -> list[Path]:
    try:
        return sorted(path for path in folder.iterdir() if _is_run(path, signs))
    except OSError:
        return []


def _is_run(folder: Path, signs: Sequence[str]) -> bool:
    try:
        return any((folder / name).is_file() for name in signs)
    except OSError:  # a folder that may not be entered
        return False


def counterpart(run: RunFolder, learner: str) -> RunFolder | None:
    """The finished run of another learner in the same folder, with the same stream, data and seeds.

    None if there is none, or several: then it is unclear which of them to compare with.
    """
    found = []
    own, path = run.experiment, run.path.resolve()
    for other in map(RunFolder, _runs_in(path.parent, ["result.json"])):
        try:
            theirs, result = other.experiment, other.result
        except InputError:  # ignore a damaged run
            continue
        same = all(theirs.get(key) == own.get(key) for key in ("stream", "seeds"))
        same = same and other.data_sha256 == run.data_sha256
        if same and result and result["learner"] == learner and other.path != path:
            found.append(other)
    return found[0] if len(found) == 1 else None
