"""prer bench."""

from __future__ import annotations

import json
from pathlib import Path

import click

from prer.cli.echo import echo


@click.command()
@click.option("--quick", is_flag=True, help="A short measurement of less than a minute.")
@click.option("--device", default="auto", show_default=True, help="auto, cpu or cuda.")
@click.option(
    "--json", "file", type=click.Path(path_type=Path, dir_okay=False), help="Write all measured times to this file."
)
def bench(quick: bool, device: str, file: Path | None) -> None:
    """Compare our training speed with a bare PyTorch loop.

    \b
    prer bench --quick
    prer bench --json bench.json
    """
    from prer.bench import suite, table
    from prer.disk import check_output, write_output
    from prer.terminal.console import new_console, say

    console = new_console()
    if file is not None:
        check_output(file, "--json")
    sizes = suite.QUICK if quick else suite.FULL
    record = suite.measure(sizes, device, lambda part: say(console, f"measuring {part}"))
    options = [*(["--quick"] if quick else []), f"--device {device}"]
    record = {"command": " ".join(["prer bench", *options])} | record
    table.show(console, record)
    if file is not None:
        write_output(file, json.dumps(record, indent=1).encode() + b"\n", "--json")
        echo(f"Written: {file}")
