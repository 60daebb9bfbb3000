"""prer compare."""

from __future__ import annotations

import shlex
from pathlib import Path

import click

from prer.cli.echo import echo
from prer.cli.lesson import OF_A_LESSON, OF_A_MODEL
from prer.cli.overrides import experiment_of, plugin_options, with_plugins
from prer.errors import InputError
from prer.text import shown

FIXED = ("learner.", "like=", "stream.scenario=", "stream.kind=")  # settings that a comparison chooses
OF_TEACH = {"device", *(f"stream.{key}" for key in (*OF_A_LESSON, *OF_A_MODEL))}  # those that `prer teach` takes, too


@click.command()
@click.argument("data", metavar="DATA")
@click.argument("settings", nargs=-1, metavar="[key=value ...]")
@click.option("--method", "methods", multiple=True, help="A learner to compare; may be given again.  [default: six]")
@click.option("--seeds", default="3", show_default=True, help="Number of seeds, or a list: 5, or 0,1,7.")
@click.option("--device", help="auto, cpu or cuda.  [default: auto]")
@click.option("--out", default="runs", show_default=True, type=click.Path(path_type=Path), help="Folder of runs.")
@with_plugins
def compare(
    data: str, settings: tuple[str, ...], methods: tuple[str, ...], seeds: str, device: str | None, out: Path
) -> None:
    """Compare PRER with other methods on your own data, and say which one to take.

    The classes of DATA are divided into lessons that arrive one after another, and nobody tells which lesson a sample
    belongs to. Each method learns them with its default settings: prer, ncm, slda, ranpac, naive (nothing against
    forgetting) and joint (keeps all data). A fifth of each class is held out, unless DATA has a test part.

    \b
    prer compare pets.csv
    prer compare photos stream.size=32 stream.classes_per_task=1
    """
    from prer.runs.compare import METHODS, Compared
    from prer.runs.run import execute
    from prer.terminal.console import new_console, say
    from prer.terminal.models import show_comparison
    from prer.terminal.progress import RunProgress
    from prer.training.computing import keep_memory

    keep_memory()
    console, found = new_console(), []
    words = _words(data, settings)
    for name in methods or METHODS:
        experiment = experiment_of((*words, f"learner.name={name}"), seeds, device)
        say(console, f"{name}:")
        folder = execute(experiment, out, RunProgress(console))
        assert folder.result is not None
        found.append(Compared.of(name, folder.result))
    taken = show_comparison(console, found)
    if taken:
        given = [word for word in settings if word.partition("=")[0] in OF_TEACH]
        words = ["prer", "teach", "MODEL", data, *given, f"learner.name={taken}", *plugin_options()]
        echo(f"Make the model:  {shlex.join(words)}")


def _words(data: str, settings: tuple[str, ...]) -> list[str]:
    """The settings of every run."""
    from prer.runs.compare import classes_per_lesson

    fixed = next((word.partition("=")[0] for word in settings if word.startswith(FIXED)), None)
    if fixed is not None:
        what = "methods are compared with their default settings, and nobody tells the task"
        raise InputError(f"{fixed} cannot be set here, since {what}; leave it out, or compare runs: prer run ...")
    words = [f"stream.data={data}", "stream.scenario=class", *settings]
    if not any(word.startswith(("stream.classes_per_task=", "stream.tasks=")) for word in settings):
        stream = experiment_of((*words, "stream.classes_per_task=1", "learner.name=ncm"), None, None).stream.build()
        if len(stream) < 2:
            raise InputError(f"{shown(data)} has only one class; methods are compared on two or more")
        words.append(f"stream.classes_per_task={classes_per_lesson(len(stream))}")
    return words
