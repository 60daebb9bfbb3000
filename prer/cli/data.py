"""prer data list, fetch, check."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

import click

from prer.cli.echo import echo
from prer.errors import InputError

if TYPE_CHECKING:
    from prer.data.entry import Entry


@click.group()
def data() -> None:
    """List, fetch and check the data sets of the catalogue."""


@data.command("list")
def list_data() -> None:
    """List the data sets, their licences and their status."""
    from rich.filesize import decimal

    from prer.data.catalogue import CATALOGUE
    from prer.data.entry import data_folder
    from prer.terminal.console import new_console
    from prer.terminal.tables import show_catalogue

    show_catalogue(new_console(), CATALOGUE.values())
    echo(f"Data folder: {data_folder()} (set PRER_DATA to change it)")
    with suppress(OSError):  # another process may delete one
        sizes = [file.stat().st_size for file in (data_folder() / "features").glob("*.features")]
        files = f"{len(sizes)} file{'s' * (len(sizes) != 1)}"
        echo(f"Features, in its folder features: {decimal(sum(sizes))}, {files} (delete them whenever you like)")


@data.command()
@click.argument("names", nargs=-1, required=True, metavar="NAME...")
def fetch(names: tuple[str, ...]) -> None:
    """Download data sets, or all of them. Intact files are not downloaded again.

    \b
    prer data fetch mnist cifar10
    prer data fetch all
    """
    from prer.data.fetch import fetch
    from prer.terminal.console import new_console
    from prer.terminal.downloads import Downloads

    for entry in _entries(names):
        with Downloads(new_console()) as downloads:
            where = "built in" if entry.built_in else f"available at {fetch(entry, downloads).path}"
        echo(f"{entry.name}: {where}")


@data.command()
@click.argument("names", nargs=-1, metavar="[NAME...]")
def check(names: tuple[str, ...]) -> None:
    """Compare downloaded files with their known checksums."""
    from prer.data.checksums import complaint, examine
    from prer.terminal.console import new_console
    from prer.terminal.tables import show_states

    console, results = new_console(), {}
    for entry in _entries(names or ("all",)):
        results[entry.name] = examine(entry)
        show_states(console, entry.name, results[entry.name])
    wrong = complaint(results, [name for name in names if name in results])
    if wrong:
        raise InputError(wrong)


def _entries(names: tuple[str, ...]) -> list[Entry]:
    """The data sets of these names, without duplicates; an unknown name raises an error before anything is done."""
    from prer.data.catalogue import CATALOGUE, known

    chosen = [known(name) for name in dict.fromkeys(names) if name != "all"]
    return list(CATALOGUE.values()) if "all" in names else chosen
