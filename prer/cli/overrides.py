"""Parse the arguments of a command into an experiment."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from prer.errors import InputError

if TYPE_CHECKING:
    from prer.runs.experiment import Experiment


def experiment_of(settings: Sequence[str], seeds: str | None, device: str | None) -> Experiment:
    """Parse the arguments of a command: an optional experiment file first, then key=value settings."""
    from prer.runs.experiment import Experiment

    file, words = None, overrides(settings, seeds, device)
    if settings and "=" not in settings[0]:
        file = Path(words.pop(0))
    return Experiment.read(file, words) if file else Experiment.parse({}, words)


def is_new(settings: Sequence[str], seeds: str | None, device: str | None, out: Path) -> bool:
    """Whether these settings are valid and their experiment has no result yet."""
    from prer.runs.folder import RunFolder

    try:
        return RunFolder(experiment_of(settings, seeds, device).path(out)).result is None
    except InputError:
        return False


def overrides(settings: Sequence[str], seeds: str | None, device: str | None) -> list[str]:
    """The arguments of a command, with its options appended as key=value."""
    words = list(settings)
    if seeds is not None:
        words.append(f"seeds=[{seeds}]" if "," in seeds else f"seeds={seeds}")
    if device is not None:
        words.append(f"device={device}")
    return words
