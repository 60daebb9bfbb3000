"""prer run, resume, show."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from prer.cli.echo import echo
from prer.cli.overrides import experiment_of, is_new, plugin_options, with_plugins
from prer.errors import Interrupted

# The questions of the built-in experiment, and the settings of their runs.
QUESTIONS: dict[str, tuple[str, ...]] = {
    "The task of a sample is given": (),
    "Nobody tells the task": ("stream.scenario=class",),
}


@click.command()
@click.argument("settings", nargs=-1, metavar="[EXPERIMENT.toml] [key=value ...]")
@click.option("--seeds", help="Number of seeds, or a list: 5, or 0,1,7.  [default: 5]")
@click.option("--device", help="auto, cpu or cuda.  [default: auto]")
@click.option("--out", default="runs", show_default=True, type=click.Path(path_type=Path), help="Folder of runs.")
@click.option("--quiet", is_flag=True, help="Print only the run folder and warnings.")
@click.option("--verbose", is_flag=True, help="Log every epoch; a terminal always shows them.")
@with_plugins
def run(
    settings: tuple[str, ...], seeds: str | None, device: str | None, out: Path, quiet: bool, verbose: bool
) -> None:
    """Train and test a learner. Without arguments: PRER and naive on the built-in digits, in two scenarios.

    \b
    prer run
    prer run learner.name=naive learner.epochs=5
    prer run stream.data=my/file.npz stream.classes_per_task=3
    prer run my-experiment.toml --seeds 0,1,7
    prer run learner.name=mine --plugin mine.py
    """
    from prer.runs.discovery import counterpart
    from prer.runs.run import execute
    from prer.terminal.console import new_console
    from prer.terminal.next_steps import next_steps
    from prer.terminal.progress import RunProgress
    from prer.terminal.tables import show_briefly, show_result
    from prer.training.computing import keep_memory

    keep_memory()
    console = new_console(stderr=quiet)
    progress = RunProgress(console, quiet, verbose)
    questions = {"": settings} if settings else QUESTIONS
    folders, beside = [], []
    for words in questions.values():
        if not settings:  # the built-in experiment also runs naive for comparison
            try:
                beside.append(execute(experiment_of((*words, "learner.name=naive"), seeds, device), out, progress))
            except Interrupted as interrupted:
                interrupted.folder = ""  # resuming naive alone would leave PRER out
                raise
        folders.append(execute(experiment_of(words, seeds, device), out, progress))
    if quiet:
        echo("\n".join(str(folder.path) for folder in folders))
        return
    for question, folder, naive in zip(questions, folders, beside, strict=False):
        show_briefly(console, question, folder, naive)
    if settings:
        beside = [counterpart(folders[0], "naive")]
        show_result(console, folders[0], beside[0])
    given = {"--seeds": seeds, "--device": device, "--out": None if out == Path("runs") else str(out)}
    options = [word for option, value in given.items() if value is not None for word in (option, value)]
    options += plugin_options()

    def new(words: Sequence[str]) -> bool:
        known = beside[0] is not None and "learner.name=naive" in words
        return not known and is_new(words, seeds, device, out)

    console.print(next_steps(settings, options, out, new), soft_wrap=True, markup=False)


@click.command()
@click.argument("path", type=click.Path(path_type=Path), metavar="RUN")
@click.option(
    "--force", is_flag=True, help="Resume even if experiment, data or versions have changed; this is recorded."
)
@click.option("--quiet", is_flag=True, help="Print only the run folder and warnings.")
@click.option("--verbose", is_flag=True, help="Log every epoch; a terminal always shows them.")
@with_plugins
def resume(path: Path, force: bool, quiet: bool, verbose: bool) -> None:
    """Resume a stopped run. The result equals that of an uninterrupted run."""
    from prer.runs.discovery import counterpart
    from prer.runs.run import resume
    from prer.terminal.console import new_console
    from prer.terminal.progress import RunProgress
    from prer.terminal.tables import show_result
    from prer.training.computing import keep_memory

    keep_memory()
    console = new_console(stderr=quiet)
    folder = resume(path, RunProgress(console, quiet, verbose), force=force)
    if quiet:
        echo(str(folder.path))
    else:
        show_result(console, folder, counterpart(folder, "naive"))


@click.command()
@click.argument("runs", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="RUN|MODEL...")
@with_plugins
def show(runs: tuple[Path, ...]) -> None:
    """Show the results of runs, or a model: its classes, lessons, memory and history.

    Give run folders, or a folder that contains them; other paths are skipped.

    \b
    prer show runs
    prer show runs/digits-prer-3361c516
    prer show pets
    """
    from prer.disk import exists
    from prer.models.folder import ABOUT, load, size_of
    from prer.runs.discovery import counterpart, discover
    from prer.runs.folder import RunFolder
    from prer.terminal.console import new_console, say
    from prer.terminal.models import show_model
    from prer.terminal.tables import show_result, show_runs

    models = [path for path in runs if exists(path / ABOUT)]
    for path in models:
        show_model(new_console(), path, load(path), size_of(path))
    runs = tuple(path for path in runs if path not in models)
    if models and not runs:
        return
    paths, others = discover(runs, ["experiment.toml"])
    # Skip what a shell's * matches besides runs. A path that does not exist is an error, and so is having no run.
    wrong = [path for path in others if not paths or not path.exists()]
    console, folders = new_console(), [RunFolder(path) for path in [*wrong, *paths]]
    for folder in folders:
        folder.experiment  # noqa: B018, raises an error for a folder that is not a run before anything is shown
    if len(folders) == 1 and not others and folders[0].result is not None:
        show_result(console, folders[0], counterpart(folders[0], "naive"))
    else:
        show_runs(console, folders)
    if others:
        paths_are = (
            "1 path that is not a run folder" if len(others) == 1 else f"{len(others)} paths that are not run folders"
        )
        say(console, f"skipped {paths_are}")
