"""Compare local files with the checksums of their publishers."""

from __future__ import annotations

import gzip
import hashlib
import zlib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Literal

from prer.data.entry import Entry, File, Form

BLOCK = 1 << 20

State = Literal["ok", "damaged", "missing"]


def examine(entry: Entry) -> dict[Path, State]:
    """State of each file of a data set, by path; empty for a built-in one."""
    if entry.built_in:
        return {}
    return states(entry.local_form() or entry.forms[0])


def complaint(results: Mapping[str, Mapping[Path, State]], asked_for: Iterable[str]) -> str:
    """Message about the first damaged file, or else the first missing one of `asked_for`; empty if all is well."""
    for name, of_entry in results.items():
        for path, found in of_entry.items():
            if found == "damaged":
                return f"{path} is damaged; download it again with: prer data fetch {name}"
    for name in asked_for:
        for path, found in results[name].items():
            if found == "missing":
                return f"{path} is missing; download it with: prer data fetch {name}"
    return ""


def states(form: Form) -> dict[Path, State]:
    """State of each file of a form, by path."""
    return {form.place / file.name: state(file, form.place / file.name) for file in form.files}


def state(file: File, path: Path) -> State:
    """Whether a file exists and matches its checksum."""
    try:
        if not path.is_file():
            return "missing"
        right = _content_sum(file, path) if file.content_sha256 else _file_sum(file, path)
    except (OSError, EOFError, zlib.error):  # a gzip error, or a file that cannot be read
        return "damaged"
    return "ok" if right else "damaged"


def _file_sum(file: File, path: Path) -> bool:
    with path.open("rb") as source:
        return hashlib.file_digest(source, "sha256").hexdigest() == file.sha256


def _content_sum(file: File, path: Path) -> bool:
    sha, left = hashlib.sha256(), file.content_size
    with gzip.open(path) as source:
        while left >= 0 and (block := source.read(BLOCK)):  # a small file can inflate to very many bytes
            sha.update(block)
            left -= len(block)
    return sha.hexdigest() == file.content_sha256
