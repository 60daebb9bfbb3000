"""Writes the page, and updates it while runs are in progress."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path

from prer.errors import InputError
from prer.report.page import build, write
from prer.report.run import Run, runs_in
from prer.runs.discovery import SIGNS, discover

EVERY = 3  # seconds

Say = Callable[[str], None]


def report(folders: Sequence[Path], file: Path, say: Say, *, watch: bool = False) -> None:
    """Write the page about the runs in these folders; with `watch`, update it until all are finished."""
    runs, complaints = runs_in(folders)
    if not runs:
        raise InputError(f"nothing to report: {'; '.join(complaints)}; give folders written by `prer run`")
    _tell(runs, complaints, say)
    if watch:
        runs, complaints = _follow(folders, file, say)
    size = write(build(runs, complaints), file)
    say(f"Written: {file} ({size / 1e6:.1f} MB)")


def _tell(runs: Sequence[Run], complaints: Sequence[str], say: Say) -> None:
    """Print the notes on runs and folders."""
    for run in runs:
        for note in run.notes:
            say(f"{run.name}: {note}")
    for complaint in complaints:
        say(complaint)


def _follow(folders: Sequence[Path], file: Path, say: Say) -> tuple[list[Run], list[str]]:
    """Write the page whenever something has changed, until all runs are finished; return runs and complaints."""
    runs, complaints = runs_in(folders)
    before: list[tuple] = []
    say(f"watching the runs and updating {file}; stop with Ctrl-C")
    try:
        while True:
            now = [_stamp(path) for path in discover(folders)[0]]
            if now != before:
                runs, complaints = runs_in(folders)
                if all(run.state != "not finished" for run in runs):
                    return runs, complaints
                write(build(runs, complaints, EVERY), file)
                before = now
            time.sleep(EVERY)
    except KeyboardInterrupt:
        write(build(runs, complaints), file)  # a page that no longer reloads itself
        raise


def _stamp(folder: Path) -> tuple:
    """Times and sizes of files that change as a run progresses."""
    found = []
    for name in (*SIGNS, "memory"):
        try:
            about = (folder / name).lstat()
            found.append((name, about.st_mtime_ns, about.st_size))
        except OSError:
            continue
    return tuple(found)
