"""prer sweep, sweep best."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import click

from prer.cli.echo import echo
from prer.cli.engines import with_engine
from prer.cli.overrides import overrides, plugin_options, with_plugins
from prer.errors import InputError, RunError

if TYPE_CHECKING:
    from prer.sweeps.engines import Engine


class DefaultGroup(click.Group):
    """A group with the default command `run`, which gets a first word that is not a command."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Insert `run` if no command is named."""
        named = not args or args[0] in (*self.commands, *ctx.help_option_names)
        return super().parse_args(ctx, args if named else ["run", *args])


@click.group(cls=DefaultGroup)
def sweep() -> None:
    """Run many experiments, or find the best. Settings come from lists and random ranges.

    \b
    prer sweep SWEEP.toml --workers 4
    prer sweep SWEEP.toml learner.epochs=5 --seeds 3
    prer sweep best SWEEP.toml -o best.toml
    """


def _of_sweep(command: Callable[..., None]) -> Callable[..., None]:
    """Add the arguments that all sweep commands share, so that they refer to the same points."""
    for given in (
        with_plugins,
        click.option(
            "--out", default="runs", show_default=True, type=click.Path(path_type=Path), help="Folder of runs."
        ),
        click.option("--device", help="auto, cpu or cuda, for all points."),
        click.option("--seeds", help="Number of seeds, or a list, for all points: 5, or 0,1,7."),
        click.argument("settings", nargs=-1, metavar="[key=value ...]"),
        click.argument("file", type=click.Path(path_type=Path), metavar="SWEEP.toml"),
    ):
        command = given(command)
    return command


@sweep.command("run")
@_of_sweep
@with_engine()
@click.option("--dry-run", is_flag=True, help="Only print the batch script that would be sent to Slurm.")
@click.option("--retry", is_flag=True, help="Run the points again that failed before.")
def run_sweep(
    file: Path,
    settings: tuple[str, ...],
    seeds: str | None,
    device: str | None,
    out: Path,
    workers: int | None,
    engine: Callable[[int | None], Engine],
    dry_run: bool,
    retry: bool,
) -> None:
    """Run the unfinished points of a sweep; `prer sweep SWEEP.toml` does the same."""
    from prer.sweeps.sweep import Sweep
    from prer.terminal.console import new_console, say
    from prer.terminal.sweeps import CHECKING, follow, show_failures, show_points, stepped

    console = new_console()
    plan = Sweep.read(file, overrides(settings, seeds, device))
    points = plan.points(lambda settings, most: stepped(console, settings, CHECKING, most))
    chosen = engine(workers)  # it may start or join a cluster, so the sweep is checked first
    say(console, f"{len(points)} points in the sweep; folder of runs: {out}")
    waiting = stepped(console, points, "checking which points are finished", len(points))
    runs = chosen.run(waiting, out, retry=retry)
    if dry_run:
        echo(chosen.script(len(runs.waiting), out))
        return
    outcomes = follow(console, runs, points, out)
    show_points(console, outcomes, plan.keys)
    failed = [outcome for outcome in outcomes if outcome.error]
    show_failures(console, failed)
    if failed:
        raise RunError(f"{len(failed)} of {len(points)} points failed; to run them again, add --retry")


@sweep.command("best")
@_of_sweep
@click.option(
    "-o", "file_out", default="best.toml", show_default=True, type=click.Path(path_type=Path), help="Output file."
)
@click.option("--by", default="", help="Metric: accuracy, bwt, ...  [default: accuracy, or final_accuracy by class]")
def best_of_sweep(
    file: Path, settings: tuple[str, ...], seeds: str | None, device: str | None, out: Path, file_out: Path, by: str
) -> None:
    """Write the point of a sweep with the best mean over its seeds as an experiment file."""
    from prer.disk import write_output
    from prer.sweeps.best import best
    from prer.sweeps.sweep import Sweep
    from prer.terminal.console import new_console
    from prer.terminal.sweeps import CHECKING, about, stepped

    if file_out.resolve() == file.resolve():
        raise InputError(f"{file_out} is the sweep itself; give another file with -o")
    plan, console = Sweep.read(file, overrides(settings, seeds, device)), new_console()
    points = plan.points(lambda settings, most: stepped(console, settings, CHECKING, most))
    winner = best(points, out, by)
    write_output(file_out, winner.to_test().to_toml().encode(), "-o")
    command = shlex.join(["prer", "run", str(file_out), *plugin_options()])
    for line in (*about(winner), f"Written: {file_out}; run it with: {command}"):
        echo(line)
