"""What a person sees: a live line on a terminal, one line for each epoch in a log, and the result."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from rich.console import Console
from rich.filesize import decimal
from rich.live import Live
from rich.measure import Measurement
from rich.progress import BarColumn, DownloadColumn, Progress, TaskID, TextColumn, TimeRemainingColumn
from rich.progress import TransferSpeedColumn as SpeedColumn
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from prer.data.entry import Entry
from prer.data.guard import shown
from prer.record import Record

if TYPE_CHECKING:
    from prer.learners import Learner
    from prer.stream import Stream

MOST_TEXT = 100_000  # characters of a line
MOST_TASKS = 100  # of a matrix that is shown; one of thousands fits no screen and takes minutes to draw
LOW_AGREEMENT = 0.8  # a class whose samples are recognised less often than this is on its way to being forgotten


FEW_STEPS = 200  # a phase that is shorter hardly learns anything


def next_steps(settings: Sequence[str], out: Path) -> str:
    """What to try next, with the data of this run."""
    same = " ".join(["prer run", *(shlex.quote(word) for word in settings if not word.startswith("learner.name="))])
    own = any(word.startswith("stream.data=") for word in settings)
    steps = {
        f"{same} learner.name=naive": "what is lost when nothing is done about forgetting",
        f"{same} learner.name=joint": "the upper reference: all data of all tasks at once",
        f"{same} learner.density=gaussian": "a Gaussian for each class instead of the flow",
        "prer run stream.data=PATH like=digits": "your own data: .npz, images, CSV (like=digits where it is small)",
        f"prer show {out}/*": "all results, one line each",
    }
    drop = f"{same} learner.name=naive" if not own else "prer run stream.data=PATH like=digits"
    lines = [f"  {command:<40} {what}" for command, what in steps.items() if command != drop]
    return "\n".join(["What to try next (from scripts/run: write scripts/run in place of prer):", *lines])


def describe(stream: Stream, learner: Learner) -> Iterator[str]:
    """What is about to be learned, and whether that is too little."""
    x, tasks = stream[0].x, [" ".join(shown(label, 20) for label in task.labels) for task in stream]
    order = " | ".join(tasks[:8]) + (" | ..." if len(tasks) > 8 else "")
    shape, classes = "x".join(map(str, x.shape[1:])), len({label for task in stream for label in task.labels})
    what = "vectors of" if x.dim() == 2 else "images"
    yield f"{len(x):,} {what} {shape}, {classes} classes; {len(stream)} tasks: {order[:400]}"
    samples = min(task.train([0]).shape[1] for task in stream)
    steps = {name: epochs * max(samples // learner.batch, 1) for name, epochs in learner.phases().items()}
    phase = min(steps, key=steps.__getitem__)
    if steps[phase] < FEW_STEPS:
        yield (
            f"warning: a task has {samples} samples to learn from, so that phase {phase!r} has {steps[phase]} steps "
            "only; for data this small begin with like=digits, or raise the epochs"
        )


class Display:
    """Follows a run. Use it as a context and give it the run's events.

    Args:
        console: where to write.
        title: the run's name.
        tasks: how many there are.
        phases: each phase's epochs.
        quiet: say nothing but warnings.
    """

    def __init__(self, console: Console, title: str, tasks: int, phases: dict[str, int], quiet: bool = False) -> None:
        self.console, self.title, self.tasks, self.quiet = console, title, tasks, quiet
        self.phases = phases
        self.pace: dict[str, float] = {}  # the newest epoch's seconds, by phase
        self.done = 0
        self.faded: dict[str, float] = {}  # classes whose samples are bad after this task
        self.live = (
            Live(console=console, refresh_per_second=8, transient=True) if console.is_terminal and not quiet else None
        )

    def __enter__(self) -> Display:
        """Begin to show."""
        if self.live:
            self.live.start()
            self.live.update(Text(f"{self.title}: starting"))
        return self

    def __exit__(self, *error: object) -> None:
        """Leave the terminal as it was."""
        if self.live:
            self.live.stop()

    def __call__(self, event: dict[str, Any]) -> None:
        """Show an event."""
        if event["event"] == "epoch":
            self._epoch(event)
        elif event["event"] == "health":
            agreement = min(event["agreement_decoded"])  # of the worst seed, which a mean would hide
            if agreement < LOW_AGREEMENT:
                self.faded[repr(event["class"])] = agreement
        elif event["event"] == "task" and self.faded:
            self._warn(event["task"] + 1)

    def _epoch(self, event: dict[str, Any]) -> None:
        self.done += 1
        self.pace[event["phase"]] = event["seconds"]
        if self.quiet:
            return
        place = f"task {event['task'] + 1}/{self.tasks}  {event['phase']:<11}"
        progress = f"epoch {event['epoch'] + 1:>3}/{event['epochs']}  loss {np.mean(event['loss']):>9.3f}"
        text = f"{place} {progress}  {clock(self.time_left(event))} left"
        if self.live:
            grid = Table.grid(padding=(0, 2))
            grid.add_row(ProgressBar(total=self.tasks * sum(self.phases.values()), completed=self.done, width=12), text)
            self.live.update(grid)
        else:
            say(self.console, text)

    def time_left(self, event: dict[str, Any]) -> float:
        """Seconds to the end, each phase at the pace of its newest epoch (unknown ones at the mean of the known)."""
        names = list(self.phases)
        at = names.index(event["phase"])
        usual = sum(self.pace.values()) / len(self.pace)
        ahead = {name: epochs * (self.tasks - 1 - event["task"]) for name, epochs in self.phases.items()}
        ahead[event["phase"]] += event["epochs"] - 1 - event["epoch"]
        for name in names[at + 1 :]:
            ahead[name] += self.phases[name]
        return sum(epochs * self.pace.get(name, usual) for name, epochs in ahead.items())

    def _warn(self, task: int) -> None:
        worst = sorted(self.faded.items(), key=lambda item: item[1])
        names = ", ".join(f"{name} {agreement:.0%}" for name, agreement in worst[:5])
        more = f" and {len(worst) - 5} more" if len(worst) > 5 else ""
        self.faded = {}
        say(
            self.console,
            f"warning: after task {task} the flow's samples of some classes are hardly recognised as their class "
            f"({names}{more}); they may be forgotten. More epochs may help, of learner.epochs_autoencoder first.",
            "yellow",
        )


def clock(seconds: float) -> str:
    """Seconds as a person says them.

    Example:
        >>> clock(7.2), clock(83), clock(7300)
        ('7 s', '1 min 23 s', '2 h 1 min')
    """
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    return f"{whole // 60} min {whole % 60} s" if whole < 3600 else f"{whole // 3600} h {whole % 3600 // 60} min"


def show_result(console: Console, record: Record, naive: Record | None = None) -> None:
    """The mean matrix, the metrics with naive's beside them, what they mean, and where it all is."""
    result, beside = record.result, naive.result if naive else None
    assert result is not None
    beside = None if result["learner"] == "naive" else beside
    tasks = len(result["matrix"][0])
    if tasks <= MOST_TASKS:
        whole(console, matrix_table(result))
    else:
        say(console, f"The matrix of {tasks} tasks is too large to be shown; it is in {record.path / 'result.json'}")
    whole(console, metrics_table(result, beside))
    say(console, f"Digest of all that was learned: {str(result.get('digest', 'unknown'))[:64]}")
    say(console, meaning(result, beside))
    say(console, f"Run folder: {record.path}")


def show_distances(console: Console, found: dict[str, list]) -> None:
    """How near generated samples come to training samples, with test samples beside them."""
    table = Table(title=Text("Distance to the nearest training sample"), title_justify="left")
    for name in ("", "smallest", "median"):
        table.add_column(name, justify="right" if name else "left")
    for name, kind in (("generated samples", "generated"), ("test samples, never seen", "test")):
        table.add_row(name, *(f"{value:.3f}" for value in np.mean(found[kind], axis=0)))
    whole(console, table)
    share, worst, expected = np.mean(found["nearest"]), max(found["nearest"]), np.mean(found["expected"])
    say(
        console,
        f"It means: for {share:.1f} % of the generated samples (for {worst:.1f} % of the worst seed's) the nearest "
        f"real sample is a training sample; for new samples of the same kind it would be {expected:.1f} %, for copies "
        "100 %. A small difference is no proof that none can be recovered.",
    )


def say(console: Console, text: str, style: str | None = None) -> None:
    """Print text as it is, however wide."""
    console.print(shown(text, MOST_TEXT), style=style, soft_wrap=True, highlight=False, markup=False, emoji=False)


def whole(console: Console, table: Table) -> None:
    """Print a table at its full width: a log has 80 columns, and numbers that are cut are of no use."""
    usual = console.width
    needed = Measurement.get(console, console.options.update(max_width=10_000), table).maximum
    console.width = max(usual, needed)
    console.print(table, crop=False)
    console.width = usual


def matrix_table(result: dict[str, Any]) -> Table:
    """Accuracy on each task (columns) after each task (rows), mean over seeds."""
    matrix = np.array(result["matrix"], float)
    title = f"Accuracy in % of {result['learner']} on {result['stream']}, {_seeds(len(result['seeds']))}"
    table = Table(title=Text(shown(title, 200)), title_justify="left")
    table.add_column("after \\ on")
    for task in range(matrix.shape[1]):
        table.add_column(f"task {task + 1}", justify="right")
    for i in range(matrix.shape[1]):
        table.add_row(f"task {i + 1}", *(f"{matrix[:, i, j].mean():.2f}" for j in range(i + 1)))
    return table


def _seeds(count: int) -> str:
    return "one seed" if count == 1 else f"mean of {count} seeds"


def metrics_table(result: dict[str, Any], naive: dict[str, Any] | None = None) -> Table:
    """Accuracy and BWT, with naive's beside them where there is such a run."""
    table = Table()
    table.add_column("")
    rows = [result] if naive is None else [result, naive]
    for row in rows:
        table.add_column(Text(shown(row["learner"])), justify="right")
    for key, label in (("accuracy", "Accuracy"), ("bwt", "BWT")):
        table.add_row(label, *(plus_minus(row[key]) for row in rows))
    table.add_row("samples kept", *(str(row["memory_samples"][-1]) for row in rows))
    table.add_row("floats kept", *(f"{row['memory_floats'][-1]:,}" for row in rows))
    table.add_row("training", *(clock(row["seconds"]["total"]) for row in rows))
    return table


def plus_minus(metric: dict[str, Any]) -> str:
    """Mean and standard deviation, where they are known."""
    if metric["mean"] is None:
        return "-"
    return f"{metric['mean']:.2f}" + ("" if metric["std"] is None else f" ± {metric['std']:.2f}")


def meaning(result: dict[str, Any], naive: dict[str, Any] | None = None) -> str:
    """What the numbers say, in one sentence."""
    tasks = len(result["matrix"][0])
    accuracy, bwt = result["accuracy"]["mean"], result["bwt"]["mean"]
    if accuracy is None:
        return "It means: nothing, its accuracy is not known."
    if bwt is None:
        return f"It means: the one task was learned to {accuracy:.1f} %; forgetting shows from the second task on."
    change = _moved(bwt, "lost", "gained")
    text = (
        f"It means: over {tasks} tasks {accuracy:.1f} % of answers were right, and a learned task {change} points "
        "on average while later ones were learned"
    )
    if naive is not None and naive["bwt"]["mean"] is not None:
        text += f"; training naively it {_moved(naive['bwt']['mean'], 'loses', 'gains')}"
        if (naive["accuracy"]["mean"] or 0) > accuracy:
            text += f" but gets {naive['accuracy']['mean']:.1f} % right, which is more: this run is trained too little"
    return text + f", with {result['memory_samples'][-1]} old samples stored."


def _moved(bwt: float, lost: str, gained: str) -> str:
    return f"{lost if bwt < 0 else gained} {abs(bwt):.1f}"


def show_runs(console: Console, records: Sequence[Record], settings: Sequence[str] = ()) -> None:
    """One line for each run, with the settings asked for."""
    table = Table()
    for column in ("run", "learner", "data", *settings):
        table.add_column(Text(column))
    for column in ("seeds", "Accuracy", "BWT", "samples", "floats", "time"):
        table.add_column(column, justify="right")
    for record in records:
        r = record.result
        name = Text(shown(record.path.resolve().name, 300))
        if r is None:
            table.add_row(name, "not finished")
            continue
        memory = (str(r["memory_samples"][-1]), f"{r['memory_floats'][-1]:,}")
        metrics = (plus_minus(r["accuracy"]), plus_minus(r["bwt"]))
        values = (r["learner"], r["stream"], *(record.setting(key) for key in settings))
        texts = (Text(shown(value, 200)) for value in values)
        table.add_row(name, *texts, str(len(r["seeds"])), *metrics, *memory, clock(r["seconds"]["total"]))
    whole(console, table)


class Downloads:
    """Follows downloads: a bar on a terminal, one line for each file in a log. Use it as a context."""

    def __init__(self, console: Console) -> None:
        self.console = console
        columns = (TextColumn("{task.description}", markup=False), BarColumn(), DownloadColumn(), SpeedColumn())
        off = not console.is_terminal
        self.bars = Progress(*columns, TimeRemainingColumn(), console=console, transient=True, disable=off)
        self.known: dict[str, TaskID] = {}

    def __enter__(self) -> Downloads:
        """Begin to show."""
        self.bars.start()
        return self

    def __exit__(self, *error: object) -> None:
        """Leave the terminal as it was."""
        self.bars.stop()

    def __call__(self, what: str, done: int, total: int) -> None:
        """Show how far a download is."""
        if what not in self.known:
            self.known[what] = self.bars.add_task(what, total=total, completed=done)
            if not self.console.is_terminal:
                say(self.console, f"{what}: fetching {decimal(total)}")
        self.bars.update(self.known[what], completed=done)


def show_catalogue(console: Console, entries: Iterable[Entry]) -> None:
    """One line for each data set."""
    table = Table()
    for column in ("name", "what"):
        table.add_column(column)
    for column in ("samples", "shape", "classes"):
        table.add_column(column, justify="right")
    for column in ("licence", "here"):
        table.add_column(column)
    for entry in entries:
        there = "built in" if entry.built_in else "here" if entry.found() else f"{decimal(entry.size)} to fetch"
        shape, classes = "x".join(map(str, entry.shape)), str(len(entry.classes) or 10)
        table.add_row(entry.name, entry.title, f"{entry.samples:,}", shape, classes, entry.licence, there)
    whole(console, table)


def show_states(console: Console, name: str, states: Mapping[Path, str]) -> None:
    """How each file of a data set is, one line for each."""
    if set(states.values()) <= {"missing"}:
        say(console, f"{name}: {'not here' if states else 'built in'}")
        return
    for path, state in states.items():
        say(console, f"{name}: {state:<8} {path}", None if state == "ok" else "yellow")
