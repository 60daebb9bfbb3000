"""Pretrained networks inside installed packages: weights are read only if their checksum is the known one."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

from prer.errors import InputError
from prer.text import reason


def installed(name: str, extra: str, packages: Sequence[str]) -> None:
    """Raise an error that names the command to install what is missing."""
    if not all(find_spec(package) for package in packages):
        raise InputError(f"the feature extractor {name} is not installed; install it with: pip install 'prer[{extra}]'")


@contextmanager
def loading(name: str, extra: str) -> Iterator[None]:
    """Turn whatever a broken package raises into one sentence."""
    try:
        yield
    except Exception as error:  # the code of somebody else
        what = f"the feature extractor {name} cannot be loaded ({reason(error)})"
        raise InputError(f"{what}; install it again: pip install 'prer[{extra}]'") from error


def verified(file: Path, sha256: str) -> bytes:
    """The bytes of a file with this checksum."""
    try:
        data = file.read_bytes()
    except OSError as error:
        raise InputError(
            f"the weights {file.name} cannot be read ({error.strerror}); install their package again"
        ) from None
    if hashlib.sha256(data).hexdigest() != sha256:
        raise InputError(f"the weights {file.name} are not the known ones: their sha256 differs; install them again")
    return data
