"""Arguments that several commands share: an experiment, plug-ins."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from prer.errors import InputError, Interrupted

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


def with_plugins(command: Callable[..., None]) -> Callable[..., None]:
    """Add the option --plugin to a command; the files are loaded before the command starts."""

    @click.option(
        "--plugin",
        "plugins",
        multiple=True,
        type=click.Path(path_type=Path),
        metavar="FILE",
        help="A Python file with a learner of your own, which is run; may be given again.",
    )
    @wraps(command)
    def wrapped(*arguments: Any, plugins: tuple[Path, ...], **options: Any) -> None:
        if plugins:
            from prer.learners.registry import load_plugin  # here, so that `prer --help` does not import torch

            for file in plugins:
                load_plugin(file)
        click.get_current_context().meta["plugins"] = plugins
        try:
            command(*arguments, **options)
        except Interrupted as interrupted:
            interrupted.options = plugin_options(plugins)
            raise

    return wrapped


def plugin_options(files: Sequence[Path] | None = None) -> list[str]:
    """The options that give these plug-ins to another command; by default those of the current command."""
    files = click.get_current_context().meta.get("plugins", ()) if files is None else files
    return [word for file in files for word in ("--plugin", str(file))]


def overrides(settings: Sequence[str], seeds: str | None, device: str | None) -> list[str]:
    """The arguments of a command, with its options appended as key=value."""
    words = list(settings)
    if seeds is not None:
        words.append(f"seeds=[{seeds}]" if "," in seeds else f"seeds={seeds}")
    if device is not None:
        words.append(f"device={device}")
    return words
