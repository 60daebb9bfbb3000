"""Downloads from mirrors that resume and are verified and atomic."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from time import sleep
from urllib.parse import urlsplit

from filelock import FileLock

from prer.data.checksums import state, states
from prer.data.entry import Entry, File, Form, Progress, silent
from prer.data.transfer import Failed, size_of, transfer
from prer.errors import InputError, RunError

WAITS = (0.5, 1.0, 2.0, 4.0)  # seconds before each new round over the mirrors
WORTHWHILE = 1 << 20  # bytes of progress that reset the retries: a slow host may drop the connection many times


def fetch(entry: Entry, progress: Progress = silent) -> Form:
    """Download a data set unless it is here and intact; return its local form."""
    form = entry.local_form()
    if form and set(states(form).values()) == {"ok"}:
        return form
    form = entry.forms[0]
    try:
        _fetch_form(entry, form, progress)
    except OSError as error:
        raise InputError(
            f"cannot write {form.place}: {error.strerror or error}; fix that, or set PRER_DATA to another folder"
        ) from None
    return form


def _fetch_form(entry: Entry, form: Form, progress: Progress) -> None:
    wanted = [file for file in form.files if state(file, form.place / file.name) != "ok"]
    if os.environ.get("PRER_OFFLINE", "").lower() not in ("", "0", "false", "no"):
        raise InputError(
            f"{entry.name} is not downloaded and PRER_OFFLINE is set; unset it, or {_by_hand(form, wanted)}"
        )
    form.place.mkdir(parents=True, exist_ok=True)
    for index, file in enumerate(wanted):
        try:
            fetch_file(file, form.place, partial(progress, f"{entry.name}/{file.name}"))
        except Failed as failed:
            why = f"{entry.name}: {file.name} could not be downloaded ({failed})"
            raise RunError(f"{why}; try again later, or {_by_hand(form, wanted[index:])}") from None


def _by_hand(form: Form, files: Sequence[File]) -> str:
    """Instructions for a download by hand, without a network."""
    places = dict.fromkeys(url.rsplit("/", 1)[0] + "/" for file in files for url in file.urls)
    return f"put {', '.join(file.name for file in files)} into {form.place}, from {' or '.join(places)}"


def fetch_file(file: File, folder: Path, progress: Callable[[int, int], None]) -> None:
    """Download a file into a folder. If several processes do so, one downloads it and the others wait.

    Raises:
        Failed: no mirror delivered it.
        OSError: the folder cannot be written.
    """
    target = folder / file.name
    progress(0, file.size)
    # The system releases the lock when its owner dies, so that a crash blocks nobody.
    with FileLock(f"{target}.lock"):
        if state(file, target) != "ok":
            _download(file, target, progress)


def _download(file: File, target: Path, progress: Callable[[int, int], None]) -> None:
    """Try all mirrors in turn, in rounds with growing waits, until one delivers the file."""
    part = target.with_name(f"{target.name}.part")
    mirrors, waits, most = list(file.urls), iter(WAITS), size_of(part)
    reasons: dict[str, str] = {}
    _check_space(file, part)
    while True:
        pause = 0.0
        for url in tuple(mirrors):
            try:
                return _from(url, file, part, target, progress)
            except Failed as failed:
                reasons[urlsplit(url).netloc] = str(failed)
                pause = max(pause, failed.wait)
                if not failed.again:
                    mirrors.remove(url)
        if size_of(part) >= most + WORTHWHILE:
            most, waits = size_of(part), iter(WAITS)
        wait = next(waits, None)
        if not mirrors or wait is None:
            raise Failed(", ".join(f"{host}: {reason}" for host, reason in reasons.items()))
        sleep(max(wait, pause))


def _from(url: str, file: File, part: Path, target: Path, progress: Callable[[int, int], None]) -> None:
    """Download a file from one mirror; it gets its final name after its checksum is verified."""
    begun = size_of(part)
    transfer(url, file, part, progress)
    if state(file, part) != "ok":
        part.unlink()
        # The bytes of an earlier attempt may be wrong; give up only on a mirror that sent the whole file.
        raise Failed("the file does not match its checksum", again=begun > 0)
    os.replace(part, target)  # noqa: PTH105, the one call that is atomic on every system


def _check_space(file: File, part: Path) -> None:
    needed, free = file.size - size_of(part), shutil.disk_usage(part.parent).free
    if needed > free:
        raise InputError(
            f"{part.parent} has {free / 1e6:,.0f} MB left, but {file.name} needs {needed / 1e6:,.0f} MB; "
            "free some space, or set PRER_DATA to another folder"
        )
