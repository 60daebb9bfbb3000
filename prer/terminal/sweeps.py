"""Terminal output of a sweep: the active runs, a line for each point that ends, and a final table."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import TypeVar

from rich.console import Console, RenderableType
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, track
from rich.text import Text

from prer.runs.experiment import Experiment
from prer.runs.folder import RunFolder
from prer.sweeps.best import Best
from prer.sweeps.engines.base import Outcome, Runs
from prer.terminal.console import say, warn
from prer.terminal.tables import final_accuracy, hardly_learned, is_class, show_runs
from prer.text import clock, plus_minus
from prer.training.progress import time_left

CHECKING = "checking the points of the sweep"
MANY = 1000  # points; fewer are checked quickly
MOST_RUNS = 8  # runs that are named; a terminal has few lines
SHOWN_ANYWAY = ("learner.name", "stream.data", "seeds")  # columns of every table of runs

T = TypeVar("T")


def stepped(console: Console, items: Iterable[T], what: str, total: int) -> Iterable[T]:
    """The items; if there are many, a terminal shows a progress bar, and a log their number."""
    if total < MANY:
        return items
    if not console.is_terminal:
        say(console, f"{what}: {total:,}")
    return track(items, what, total, console=console, transient=True, disable=not console.is_terminal)


class Bar(Progress):
    """A bar of the points that have ended; below it, the progress of each active run."""

    def __init__(self, console: Console, runs: Runs) -> None:
        columns = (TextColumn("{task.description}", markup=False), BarColumn(), MofNCompleteColumn())
        self.runs = runs
        # Refreshed seldom: reading the events of every run takes time from training, and they change slowly.
        shown = console.is_terminal
        super().__init__(*columns, console=console, transient=True, disable=not shown, refresh_per_second=1)

    def get_renderables(self) -> Iterator[RenderableType]:
        """The bar and the runs."""
        yield from super().get_renderables()
        running = list(self.runs.running)
        for folder in running[:MOST_RUNS]:
            yield Text(f"{folder.path.name}  {far(folder)}", no_wrap=True)
        if len(running) > MOST_RUNS:
            yield Text(f"and {len(running) - MOST_RUNS} more")


def far(folder: RunFolder) -> str:
    """Time left and progress of a run, by its newest epochs; the time first, as a terminal may be narrow."""
    epochs = [event for event in folder.newest() if event.get("event") == "epoch"]
    tasks = folder.tasks
    if not epochs or not tasks:
        return "starting"
    last = epochs[-1]
    try:
        pace = {event["phase"]: event["seconds"] for event in epochs}
        known = folder.phases
        phases = known | {event["phase"]: event["epochs"] for event in epochs if event["phase"] in known}
        left = clock(time_left(last, tasks, phases, pace))
        place = f"task {last['task'] + 1}/{tasks}  {last['phase']} {last['epoch'] + 1}/{last['epochs']}"
    except (ArithmeticError, LookupError, TypeError, ValueError):  # a damaged file must not end the display, or a sweep
        return "starting"
    return f"{left} left  {place}"


def follow(console: Console, outcomes: Runs, points: Sequence[Experiment], out: Path) -> list[Outcome]:
    """Print a line for each outcome, and on a terminal the active runs; return outcomes in the order of the points."""
    ended, total, begin = [], len(points), time.monotonic()
    if outcomes.waiting and not console.is_terminal:
        names = [point.path(out).name for point in outcomes.waiting]
        more = f" and {len(names) - MOST_RUNS} more" if len(names) > MOST_RUNS else ""
        say(console, f"runs to do (one line is printed as each ends): {', '.join(names[:MOST_RUNS])}{more}")
    with closing(outcomes), Bar(console, outcomes) as bar:
        task = bar.add_task("runs", total=total)
        for outcome in outcomes:
            ended.append(outcome)
            left = _left(ended, total, time.monotonic() - begin)
            bar.update(task, completed=len(ended), description=f"runs{left}")
            if outcome.trained or outcome.error:
                line = f"{len(ended):>{len(str(total))}}/{total}  {_line(outcome)}{left}"
                say(console, line, "red" if outcome.error else None)
    place = {point.hash: i for i, point in enumerate(points)}
    return sorted(ended, key=lambda outcome: place[outcome.experiment.hash])


def _line(outcome: Outcome) -> str:
    name = outcome.folder.path.name
    if outcome.error:
        return f"{name}  failed: {outcome.error}"
    result = outcome.folder.result
    assert result is not None
    if is_class(result):
        return f"{name}  final accuracy {plus_minus(final_accuracy(result))}"
    return f"{name}  Accuracy {plus_minus(result['accuracy'])}"


def _left(ended: Sequence[Outcome], total: int, seconds: float) -> str:
    """The time left, estimated from the points that ran now; those finished before took no time."""
    trained = sum(outcome.trained for outcome in ended)
    return f"  {clock(seconds / trained * (total - len(ended)))} left" if trained else ""


def show_points(console: Console, outcomes: Sequence[Outcome], keys: Sequence[str]) -> None:
    """Print the finished points with the settings that vary, the best first."""
    folders = sorted((outcome.folder for outcome in outcomes if not outcome.error), key=_accuracy, reverse=True)
    varying = [key for key in keys if len({folder.setting(key) for folder in folders}) > 1]
    if folders:
        show_runs(console, folders, [key for key in varying if key not in SHOWN_ANYWAY])
        warn(console, concerns(folders))


def show_failures(console: Console, failed: Sequence[Outcome]) -> None:
    """Print the last lines of failed runs, where there is more than the line that was printed as they ended."""
    for outcome in failed:
        if len(outcome.lines) > 1:
            say(console, f"last lines of {outcome.folder.path.name}:", "red")
            for line in outcome.lines:
                say(console, f"  {line}")


def concerns(folders: Sequence[RunFolder]) -> list[str]:
    """The warnings of runs, which are sorted best first: each once, and one if the winner hardly learned its tasks."""
    found = [text for folder in folders for text in folder.warnings]
    nothing = hardly_learned(folders[0])
    return list(dict.fromkeys([*found, nothing] if nothing else found))


def _accuracy(folder: RunFolder) -> float:
    result = folder.result
    assert result is not None
    mean = (final_accuracy(result) if is_class(result) else result["accuracy"])["mean"]
    return float("-inf") if mean is None else mean


def about(best: Best) -> list[str]:
    """Lines about the best point: its metric, how many points were compared, and on which data."""
    lines = [
        f"{best.folder.path.name} has the best {best.by}, {plus_minus(best.metric)}; points compared: {best.compared}"
    ]
    lines += [f"warning: {text}" for text in concerns([best.folder])]
    gaps = {"not finished": best.unfinished, "not started": best.missing}
    if any(gaps.values()):
        listed = " and ".join(f"{n} {what}" for what, n in gaps.items() if n)
        lines.append(f"warning: points left out of the comparison: {listed}")
    if best.point.stream.validation:
        lines.append("It was selected on validation data; the written experiment uses the test part instead")
    else:
        lines.append(
            "warning: it was selected on the test part, so its numbers are too optimistic; set stream.validation"
        )
    return lines
