"""The commands: thin and typed. Only a command that needs torch imports it."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from prer.errors import InputError, RunError
from prer.version import __version__

if TYPE_CHECKING:
    from prer.data.entry import Entry
    from prer.experiment import Experiment


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="prer")
def commands() -> None:
    """Continual learning without keeping one sample of the past."""


@commands.command()
@click.argument("settings", nargs=-1, metavar="[EXPERIMENT.toml] [key=value ...]")
@click.option("--seeds", help="How many seeds, or which: 5, or 0,1,7.  [default: 5]")
@click.option("--device", help="auto, cpu or cuda.  [default: auto]")
@click.option("--out", default="runs", show_default=True, type=click.Path(path_type=Path), help="Where run folders go.")
@click.option("--quiet", is_flag=True, help="Print the result's folder and warnings only.")
def run(settings: tuple[str, ...], seeds: str | None, device: str | None, out: Path, quiet: bool) -> None:
    """Train and test; without arguments, PRER on the built-in digits with naive beside it.

    \b
    prer run
    prer run learner.name=naive learner.epochs=5
    prer run stream.data=my/file.npz stream.classes_per_task=3 like=digits
    prer run my-experiment.toml --seeds 0,1,7
    """
    from rich.console import Console

    from prer.console import next_steps, show_result
    from prer.record import counterpart
    from prer.run import execute

    console = Console(emoji=False, highlight=False, stderr=quiet)
    experiment = _experiment(settings, seeds, device)
    naive = None
    if not settings:  # the built-in job shows what PRER is compared with
        naive = execute(_experiment(("learner.name=naive",), seeds, device), out, console, quiet=quiet)
    record = execute(experiment, out, console, quiet=quiet)
    if quiet:
        click.echo(str(record.path))
        return
    naive = naive or counterpart(record, "naive")
    show_result(console, record, naive)
    console.print(next_steps(settings, out), soft_wrap=True, markup=False)


def _experiment(settings: tuple[str, ...], seeds: str | None, device: str | None) -> Experiment:
    from prer.experiment import Experiment

    file, overrides = None, list(settings)
    if overrides and "=" not in overrides[0]:
        file = Path(overrides.pop(0))
    if seeds is not None:
        overrides.append(f"seeds=[{seeds}]" if "," in seeds else f"seeds={seeds}")
    if device is not None:
        overrides.append(f"device={device}")
    return Experiment.read(file, overrides) if file else Experiment.parse({}, overrides)


@commands.command()
@click.argument("runs", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="RUN...")
def show(runs: tuple[Path, ...]) -> None:
    """Show the results of runs, by their folders."""
    from rich.console import Console

    from prer.console import show_result, show_runs
    from prer.record import Record, counterpart

    console = Console(emoji=False, highlight=False)
    records = [Record(path) for path in runs]
    for record in records:
        record.experiment  # noqa: B018, a folder that is no run is refused before anything is shown
    if len(records) == 1 and records[0].result is not None:
        show_result(console, records[0], counterpart(records[0], "naive"))
    else:
        show_runs(console, records)


@commands.group()
def data() -> None:
    """List, fetch and check the data sets that have a name."""


@data.command("list")
def list_data() -> None:
    """List the data sets: what they are, their terms, and whether they are here."""
    from rich.console import Console

    from prer.console import show_catalogue
    from prer.data.catalogue import CATALOGUE
    from prer.data.entry import data_folder

    show_catalogue(Console(emoji=False, highlight=False), CATALOGUE.values())
    click.echo(f"Data folder: {data_folder()} (set PRER_DATA to change it)")


@data.command()
@click.argument("names", nargs=-1, required=True, metavar="NAME...")
def fetch(names: tuple[str, ...]) -> None:
    """Fetch data sets, or all of them; what is here and whole is left as it is.

    \b
    prer data fetch mnist cifar10
    prer data fetch all
    """
    from rich.console import Console

    from prer.console import Downloads
    from prer.data.fetch import fetch

    for entry in _entries(names):
        with Downloads(Console(emoji=False, highlight=False)) as downloads:
            where = "built in" if entry.built_in else f"here, {fetch(entry, downloads).path}"
        click.echo(f"{entry.name}: {where}")


@data.command()
@click.argument("names", nargs=-1, metavar="[NAME...]")
def check(names: tuple[str, ...]) -> None:
    """Compare the files that are here with their known checksums."""
    from rich.console import Console

    from prer.console import show_states
    from prer.data.checksums import complaint, examine

    console, results = Console(emoji=False, highlight=False), {}
    for entry in _entries(names or ("all",)):
        results[entry.name] = examine(entry)
        show_states(console, entry.name, results[entry.name])
    wrong = complaint(results, [name for name in names if name in results])
    if wrong:
        raise InputError(wrong)


def _entries(names: tuple[str, ...]) -> list[Entry]:
    """The data sets of these names, each once; a wrong name is refused before anything is done."""
    from prer.data.catalogue import CATALOGUE, known

    chosen = [known(name) for name in dict.fromkeys(names) if name != "all"]
    return list(CATALOGUE.values()) if "all" in names else chosen


def main(arguments: list[str] | None = None) -> None:
    """Run a command; wrong input ends with one sentence and exit code 2, a failed run with 1."""
    try:
        commands.main(arguments, prog_name="prer", standalone_mode=False)
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except (click.Abort, KeyboardInterrupt):
        click.echo("interrupted", err=True)
        sys.exit(130)
    except InputError as error:
        click.echo(f"prer: {error}", err=True)
        sys.exit(2)
    except RunError as error:
        click.echo(f"prer: {error}", err=True)
        sys.exit(1)
    except (RuntimeError, MemoryError) as error:
        if isinstance(error, RuntimeError) and not re.search("out of memory|allocate memory", str(error)):
            raise
        click.echo(
            "prer: the memory is not enough for this; take fewer seeds, or smaller networks and batches", err=True
        )
        sys.exit(1)
