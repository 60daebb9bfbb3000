"""The commands: thin and typed. Only a command that needs torch imports it."""

from __future__ import annotations

import json
import re
import shlex
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import click

from prer.errors import NO_MEMORY, InputError, Interrupted, RunError, out_of_memory, printable, sentence
from prer.terminal import standard_streams
from prer.version import __version__

if TYPE_CHECKING:
    from prer.data.entry import Entry
    from prer.experiment import Experiment


def _print(line: str, err: bool = False) -> None:
    """Print a line: names in it cannot control a terminal, and reach a file or a pipe as they are."""
    stream = sys.stderr if err else sys.stdout
    if stream is None:  # it was closed before we began
        return
    # Without `color` click would change names in a pipe.
    click.echo(printable(line) if stream.isatty() else line, err=err, color=True)


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
@click.option("--verbose", is_flag=True, help="Log every epoch; on a terminal the live line shows them anyway.")
def run(
    settings: tuple[str, ...], seeds: str | None, device: str | None, out: Path, quiet: bool, verbose: bool
) -> None:
    """Train and test; without arguments, PRER on the built-in digits with naive beside it.

    \b
    prer run
    prer run learner.name=naive learner.epochs=5
    prer run stream.data=my/file.npz stream.classes_per_task=3
    prer run my-experiment.toml --seeds 0,1,7
    """
    from prer.computing import keep_memory
    from prer.console import new_console, show_result
    from prer.display import next_steps
    from prer.record import counterpart
    from prer.run import execute

    keep_memory()
    console = new_console(stderr=quiet)
    experiment = _experiment(settings, seeds, device)
    naive = None
    if not settings:  # the built-in job shows what PRER is compared with
        try:
            beside = _experiment(("learner.name=naive",), seeds, device)
            naive = execute(beside, out, console, quiet=quiet, verbose=verbose)
        except Interrupted as interrupted:
            interrupted.folder = ""  # to go on with naive alone would leave PRER out
            raise
    record = execute(experiment, out, console, quiet=quiet, verbose=verbose)
    if quiet:
        _print(str(record.path))
        return
    naive = naive or counterpart(record, "naive")
    show_result(console, record, naive)
    given = {"--seeds": seeds, "--device": device, "--out": None if out == Path("runs") else str(out)}
    options = [word for option, value in given.items() if value is not None for word in (option, value)]

    def new(words: Sequence[str]) -> bool:
        beside = naive is not None and "learner.name=naive" in words
        return not beside and _is_new(words, seeds, device, out)

    console.print(next_steps(settings, options, out, new), soft_wrap=True, markup=False)


@commands.command()
@click.argument("folder", type=click.Path(path_type=Path), metavar="RUN")
@click.option("--force", is_flag=True, help="Also where experiment, data or versions have changed; that is noted.")
@click.option("--quiet", is_flag=True, help="Print the result's folder and warnings only.")
@click.option("--verbose", is_flag=True, help="Log every epoch; on a terminal the live line shows them anyway.")
def resume(folder: Path, force: bool, quiet: bool, verbose: bool) -> None:
    """Let a run that was stopped go on where it was; its result is that of a run which was never stopped."""
    from prer.computing import keep_memory
    from prer.console import new_console, show_result
    from prer.record import counterpart
    from prer.run import resume

    keep_memory()
    console = new_console(stderr=quiet)
    record = resume(folder, console, quiet=quiet, verbose=verbose, force=force)
    if quiet:
        _print(str(record.path))
    else:
        show_result(console, record, counterpart(record, "naive"))


def _experiment(settings: Sequence[str], seeds: str | None, device: str | None) -> Experiment:
    from prer.experiment import Experiment

    file, overrides = None, _overrides(settings, seeds, device)
    if settings and "=" not in settings[0]:
        file = Path(overrides.pop(0))
    return Experiment.read(file, overrides) if file else Experiment.parse({}, overrides)


def _is_new(settings: Sequence[str], seeds: str | None, device: str | None, out: Path) -> bool:
    """Whether these settings make an experiment, and one that has no result."""
    from prer.record import Record

    try:
        return Record(out / _experiment(settings, seeds, device).folder).result is None
    except InputError:
        return False


def _overrides(settings: Sequence[str], seeds: str | None, device: str | None) -> list[str]:
    overrides = list(settings)
    if seeds is not None:
        overrides.append(f"seeds=[{seeds}]" if "," in seeds else f"seeds={seeds}")
    if device is not None:
        overrides.append(f"device={device}")
    return overrides


@commands.command()
@click.argument("runs", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="RUN...")
def show(runs: tuple[Path, ...]) -> None:
    """Show the results of runs, by their folders or by that which holds them; of several, what is no run is left out.

    \b
    prer show runs
    prer show runs/digits-prer-f902fb16
    """
    from prer.console import new_console, say, show_result, show_runs
    from prer.record import Record, counterpart, run_folders

    console, paths = new_console(), [path for given in runs for path in run_folders(given)]
    # What a shell's * finds beside runs was not meant; a name that leads nowhere was, and so was the only one.
    other = [path for path in paths if path.exists() and not (path / "experiment.toml").exists()]
    records = [Record(path) for path in paths if path not in other or len(other) == len(paths)]
    for record in records:
        record.experiment  # noqa: B018, a folder that is no run is refused before anything is shown
    if len(paths) == 1 and records[0].result is not None:
        show_result(console, records[0], counterpart(records[0], "naive"))
    else:
        show_runs(console, records)
    if other:
        say(console, f"passed over, being no run folder: {len(other)}")


@commands.command()
@click.argument("runs", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="RUN...")
@click.option("--logdir", default="tensorboard", show_default=True, type=click.Path(path_type=Path), help="Where to.")
@click.option("--follow", is_flag=True, help="Go on until the run ends; of one run.")
def track(runs: tuple[Path, ...], logdir: Path, follow: bool) -> None:
    """Write losses, accuracies and health of runs for TensorBoard (needs the extra `track`).

    \b
    prer track runs/* && tensorboard --logdir tensorboard
    """
    from prer.interop.tensorboard import replay

    if follow and len(runs) > 1:
        raise InputError("--follow follows one run; start it once for each")
    for run in runs:
        _print(f"{run}: {replay(run, logdir, follow)} numbers, below {logdir}")


@commands.command()
@click.argument("runs", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="RUN...")
@click.option(
    "-o",
    "file",
    default="report.html",
    show_default=True,
    type=click.Path(path_type=Path, dir_okay=False),
    help="Where to.",
)
@click.option("--watch", is_flag=True, help="Renew the page while runs go on.")
def report(runs: tuple[Path, ...], file: Path, watch: bool) -> None:
    """Make one page about runs, or about all runs in a folder: a file that needs nothing else and can be sent.

    \b
    prer report runs/digits-prer-f902fb16
    prer report runs -o report.html --watch
    """
    from prer.console import new_console, say
    from prer.report.plotting import import_unconfigured
    from prer.report.watch import report

    import_unconfigured()
    console = new_console()
    report(runs, file, lambda line: say(console, line), watch=watch)


@commands.command()
@click.argument("folder", type=click.Path(path_type=Path), metavar="RUN")
@click.option("-n", "count", default=1000, show_default=True, type=click.IntRange(1), help="Samples of each seed.")
def privacy(folder: Path, count: int) -> None:
    """Compare what a run's memory generates with the nearest training samples."""
    from prer.console import new_console, show_distances
    from prer.privacy import check
    from prer.run import load_model

    show_distances(new_console(), check(*load_model(folder), count))


@commands.command()
@click.argument("model", type=click.Path(path_type=Path), metavar="MODEL")
@click.argument("file", type=click.Path(path_type=Path), metavar="FILE")
@click.option("--task", type=click.IntRange(1), help="Whose head answers, 1 for the first; PRER can guess.")
def predict(model: Path, file: Path, task: int | None) -> None:
    """Print the label of each sample of a file, and the share of seeds that agree, as CSV.

    MODEL is a finished run's folder or its model/. FILE is read as the model's own data was, with or without labels: a
    table with the same columns in any order, an .npz, .npy or image, or a folder of images, which are sorted by path.

    \b
    prer predict runs/digits-prer-f902fb16 my/file.npz --task 2
    prer predict runs/pets-prer-0a1b2c3d my/photos
    """
    from prer.model import Model
    from prer.samples import samples

    known = Model(model)
    if known.viewed:
        raise InputError("tasks that permute or rotate samples are asked in Python, with samples as the task sees them")
    x, y = samples(file, known.reading)
    labels, shares = known.predict(x, task)
    if task is None and len(known.learner.heads_) > 1:
        note = "no --task: the flow is asked for the class, which is right less often than a task's own head"
        _print(note, err=True)
    _print("sample,label,seeds")
    for row, (label, share) in enumerate(zip(labels, shares, strict=True)):
        _print(f"{row},{_quoted(str(label))},{share:.2f}")
    answers = {str(label) for label in known.answers(task)}
    truths = [] if y is None else [(str(a), str(b)) for a, b in zip(labels, y, strict=True) if str(b) in answers]
    if truths:
        right = sum(a == b for a, b in truths)
        about = f"as the file says: {right} of the {len(truths)} samples of these classes, {right / len(truths):.1%}"
        _print(about, err=True)


def _quoted(text: str) -> str:
    """Text as a field of CSV."""
    return '"' + text.replace('"', '""') + '"' if re.search('[",\r\n]', text) else text


@commands.command()
@click.argument("model", type=click.Path(path_type=Path), metavar="MODEL")
@click.option("--class", "label", required=True, help="The class, by its label.")
@click.option("-n", "count", default=16, show_default=True, type=click.IntRange(1, 10_000), help="How many.")
@click.option(
    "--task", type=click.IntRange(1), help="Of which task, where several have the class.  [default: the last]"
)
@click.option("--seed", default=0, show_default=True, type=click.IntRange(0), help="Which of the run's seeds, from 0.")
@click.option("--draw", default=0, show_default=True, type=click.IntRange(0), help="Another number draws others.")
@click.option("-o", "file", type=click.Path(path_type=Path), help="A .png (images) or .npy.  [default: CLASS.png]")
def sample(model: Path, label: str, count: int, task: int | None, seed: int, draw: int, file: Path | None) -> None:
    """Draw fresh samples of a class from a model's memory.

    \b
    prer sample runs/digits-prer-f902fb16 --class 3 -n 16 -o threes.png
    """
    from prer.model import Model
    from prer.samples import write

    _print(f"Written: {write(Model(model).sample(label, count, task, seed, draw), label, file)}")


@commands.command()
@click.option("--quick", is_flag=True, help="Measure little, in less than a minute; for a first look.")
@click.option("--against", multiple=True, metavar="PEER", help="avalanche, normflows or nflows; may be given again.")
@click.option("--device", default="auto", show_default=True, help="auto, cpu or cuda.")
@click.option("--json", "file", type=click.Path(path_type=Path, dir_okay=False), help="Write every time taken there.")
def bench(quick: bool, against: tuple[str, ...], device: str, file: Path | None) -> None:
    """Measure what training costs here, in turn with a bare PyTorch loop and with other libraries.

    \b
    prer bench --quick
    prer bench --against avalanche --json bench.json
    """
    from prer.bench import suite, table
    from prer.console import new_console, say
    from prer.output import check_output, write_output

    console = new_console()
    if file is not None:
        check_output(file, "--json")
    sizes = suite.QUICK if quick else suite.FULL
    record = suite.measure(sizes, against, device, lambda part: say(console, f"measuring {part}"))
    options = [*(["--quick"] if quick else []), *(f"--against {name}" for name in against), f"--device {device}"]
    record = {"command": " ".join(["prer bench", *options])} | record
    table.show(console, record)
    if file is not None:
        write_output(file, json.dumps(record, indent=1).encode() + b"\n", "--json")
        _print(f"Written: {file}")


class DefaultGroup(click.Group):
    """A group in which `run` may be left out: a first word that is no command is given to it."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Put `run` where it was left out."""
        named = not args or args[0] in (*self.commands, *ctx.help_option_names)
        return super().parse_args(ctx, args if named else ["run", *args])


@commands.group(cls=DefaultGroup)
def sweep() -> None:
    """Run many experiments, every combination of lists of settings and random draws, or find the best of them.

    \b
    prer sweep SWEEP.toml --workers 4
    prer sweep SWEEP.toml learner.epochs=5 --seeds 3
    prer sweep best SWEEP.toml -o best.toml
    """


def _of_sweep(command: Callable[..., None]) -> Callable[..., None]:
    """What all commands about a sweep are given, so that they mean the same points."""
    for given in (
        click.option(
            "--out", default="runs", show_default=True, type=click.Path(path_type=Path), help="The run folders."
        ),
        click.option("--device", help="auto, cpu or cuda, for all points."),
        click.option("--seeds", help="How many seeds, or which, for all points: 5, or 0,1,7."),
        click.argument("settings", nargs=-1, metavar="[key=value ...]"),
        click.argument("file", type=click.Path(path_type=Path), metavar="SWEEP.toml"),
    ):
        command = given(command)
    return command


@sweep.command("run")
@_of_sweep
@click.option("--engine", default="local", show_default=True, help="Who computes: local (later ray, slurm).")
@click.option("--workers", type=click.IntRange(1), help="How many at a time.  [default: one for each core]")
def run_sweep(
    file: Path,
    settings: tuple[str, ...],
    seeds: str | None,
    device: str | None,
    out: Path,
    engine: str,
    workers: int | None,
) -> None:
    """Run the points of a sweep that are not finished; `prer sweep SWEEP.toml` is the same."""
    from prer.console import new_console, say
    from prer.engines import engine as engine_of
    from prer.follow import CHECKING, follow, show_points, stepped
    from prer.sweep import Sweep

    console, chosen = new_console(), engine_of(engine, workers)
    plan = Sweep.read(file, _overrides(settings, seeds, device))
    points = plan.points(lambda settings, most: stepped(console, settings, CHECKING, most))
    say(console, f"points of the sweep: {len(points)}; run folders: {out}")
    waiting = stepped(console, points, "looking for points that are finished", len(points))
    outcomes = follow(console, chosen.run(waiting, out), points)
    show_points(console, outcomes, plan.keys)
    failed = [outcome for outcome in outcomes if outcome.error]
    if failed:
        raise RunError(f"{len(failed)} of {len(points)} points failed; the sweep again tries them again")


@sweep.command("best")
@_of_sweep
@click.option(
    "-o", "file_out", default="best.toml", show_default=True, type=click.Path(path_type=Path), help="Where to."
)
@click.option("--by", default="accuracy", show_default=True, help="The metric: accuracy, bwt, final_accuracy, ...")
def best_of_sweep(
    file: Path, settings: tuple[str, ...], seeds: str | None, device: str | None, out: Path, file_out: Path, by: str
) -> None:
    """Write the best point of a sweep, by the mean over its seeds, as an experiment."""
    from prer.best import best
    from prer.console import new_console
    from prer.follow import CHECKING, about, stepped
    from prer.output import write_output
    from prer.sweep import Sweep

    if file_out.resolve() == file.resolve():
        raise InputError(f"{file_out} is the sweep itself; give another file by -o")
    plan, console = Sweep.read(file, _overrides(settings, seeds, device)), new_console()
    points = plan.points(lambda settings, most: stepped(console, settings, CHECKING, most))
    winner = best(points, out, by)
    write_output(file_out, winner.to_test().to_toml().encode(), "-o")
    for line in (*about(winner, by), f"Written: {file_out}; run it by: prer run {file_out}"):
        _print(line)


@commands.command()
@click.argument("part", type=click.Choice(("table1", "table2", "figure2", "claims", "significance", "all")))
@click.option(
    "--only", default="", metavar="NAME,...", help="Data sets and methods, mixed: mnist,prer.  [default: all]"
)
@click.option("--device", help="auto, cpu or cuda.  [default: auto]")
@click.option("--out", default="runs", show_default=True, type=click.Path(path_type=Path), help="Run folders, tables.")
@click.option("--seeds", help="How many seeds, or which: 5, or 0,1,7.  [default: 5, of significance 20]")
@click.option("--workers", default=1, show_default=True, type=click.IntRange(1), help="How many runs at a time.")
@click.option("--fast", is_flag=True, help="The built-in digits, three seeds: does it all work?")
@click.option("--finished", is_flag=True, help="Of the runs that are finished alone; run nothing.")
@click.option("--data", "paths", multiple=True, metavar="NAME=PATH", help="Read that from there; may be given again.")
@click.option(
    "--write",
    is_flag=False,
    flag_value="REPRODUCIBILITY.md",
    metavar="[FILE]",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Also write a document of all that has run.  [default: REPRODUCIBILITY.md; with --fast, in --out]",
)
def reproduce(
    part: str,
    only: str,
    device: str | None,
    out: Path,
    seeds: str | None,
    workers: int,
    fast: bool,
    finished: bool,
    paths: tuple[str, ...],
    write: Path | None,
) -> None:
    """Make the paper's tables and figure, ours beside the paper's; what is finished is not run again.

    \b
    prer reproduce table1 --fast
    prer reproduce table1 --only mnist,prer
    prer reproduce table1 --data kmnist=my/kmnist10k --workers 2
    prer reproduce all --write
    """
    from prer.console import new_console
    from prer.paper.ablation import NAMES
    from prer.paper.plan import Request, places
    from prer.paper.reproduce import reproduce

    names = tuple(filter(None, map(str.strip, only.split(","))))
    request = Request(names, device, seeds, fast, places(paths), NAMES, finished)
    if fast and write is not None and write == Path("REPRODUCIBILITY.md"):
        write = out / write  # that of the paper's data is not to be lost
    reproduce(new_console(), part, request, out, workers, write)


@commands.group()
def data() -> None:
    """List, fetch and check the data sets that have a name."""


@data.command("list")
def list_data() -> None:
    """List the data sets: what they are, their terms, and whether they are here."""
    from prer.console import new_console, show_catalogue
    from prer.data.catalogue import CATALOGUE
    from prer.data.entry import data_folder

    show_catalogue(new_console(), CATALOGUE.values())
    _print(f"Data folder: {data_folder()} (set PRER_DATA to change it)")


@data.command()
@click.argument("names", nargs=-1, required=True, metavar="NAME...")
def fetch(names: tuple[str, ...]) -> None:
    """Fetch data sets, or all of them; what is here and whole is left as it is.

    \b
    prer data fetch mnist cifar10
    prer data fetch all
    """
    from prer.console import new_console
    from prer.data.fetch import fetch
    from prer.display import Downloads

    for entry in _entries(names):
        with Downloads(new_console()) as downloads:
            where = "built in" if entry.built_in else f"here, {fetch(entry, downloads).path}"
        _print(f"{entry.name}: {where}")


@data.command()
@click.argument("names", nargs=-1, metavar="[NAME...]")
def check(names: tuple[str, ...]) -> None:
    """Compare the files that are here with their known checksums."""
    from prer.console import new_console, show_states
    from prer.data.checksums import complaint, examine

    console, results = new_console(), {}
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
    with standard_streams():
        _main(arguments)


def _main(arguments: list[str] | None) -> None:
    try:
        commands.main(arguments, prog_name="prer", standalone_mode=False)
    except click.ClickException as error:
        with suppress(RunError):
            error.show()
        sys.exit(error.exit_code)
    except Interrupted as interrupted:
        folder, same = interrupted.folder, sys.argv[1:] if arguments is None else arguments
        how = shlex.join(["prer", *(["resume", folder] if folder else same)])
        _end(f"interrupted and saved; go on with: {how}", 128 + interrupted.number)
    except (click.Abort, KeyboardInterrupt):
        _end("interrupted; the same command goes on where it was", 130)
    except (InputError, RunError) as error:
        _end(f"prer: {sentence(error)}", 2 if isinstance(error, InputError) else 1)
    except (RuntimeError, MemoryError) as error:
        if not out_of_memory(error):
            raise
        _end(f"prer: {NO_MEMORY}", 1)


def _end(why: str, code: int) -> NoReturn:
    with suppress(RunError):  # standard error is full as well: the exit code must do
        _print(why, err=True)
    sys.exit(code)
