"""Results as tables, and what they mean in one sentence."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.filesize import decimal
from rich.table import Table
from rich.text import Text

from prer.data.entry import Entry
from prer.runs.fading import Fading
from prer.runs.folder import RunFolder
from prer.terminal.console import say, warn, whole
from prer.text import clock, plus_minus, shown
from prer.version import __version__

HARDLY = 0.2  # share of the way from chance level to 100 %; a task below it is hardly learned


EVENTS_OF_A_TASK = 2**20  # bytes at the end of the events; enough for the health of all classes


MOST_NAMES = 5  # maximum number of runs named in one line
MOST_TASKS = 100  # maximum tasks of a matrix that is shown; thousands do not fit on a screen and take minutes to render


def show_result(console: Console, folder: RunFolder, naive: RunFolder | None = None) -> None:
    """Print the mean matrix, the metrics beside naive's, what they mean, and the run folder."""
    result, beside = folder.result, naive.result if naive else None
    assert result is not None
    beside = None if result["learner"] == "naive" else beside
    tasks = len(result["matrix"][0])
    if tasks <= MOST_TASKS:
        whole(console, matrix_table(result))
    else:
        say(console, f"The matrix of {tasks} tasks is too large to show; it is in {folder.path / 'result.json'}")
    whole(console, metrics_table(result, beside))
    say(console, f"Digest of the final state: {str(result.get('digest', 'unknown'))[:64]}")
    say(console, meaning(result, beside, _chance(folder)))
    warn(console, [*folder.warnings, *_last_warnings(folder)])
    say(console, f"Run folder: {folder.path}")
    _say_versions(console, [folder])


def _say_versions(console: Console, folders: Sequence[RunFolder]) -> None:
    """Print which runs were written by other versions of prer."""
    runs: dict[str, list[str]] = {}
    for folder in folders:
        runs.setdefault(folder.earlier_version, []).append(folder.path.resolve().name)
    for version, names in runs.items():
        if version:
            more = f" and {len(names) - MOST_NAMES} more" if len(names) > MOST_NAMES else ""
            say(console, f"Written by prer {version} (this is {__version__}): {', '.join(names[:MOST_NAMES])}{more}")


def _last_warnings(folder: RunFolder) -> list[str]:
    """The warnings of the run after its last task."""
    fading, last = Fading(), []
    for event in folder.newest(EVENTS_OF_A_TASK):
        found = fading.warnings(event)
        last = found if event.get("event") == "task" else last
    return last


def show_distances(console: Console, found: dict[str, list]) -> None:
    """Print the distances of generated samples to training samples, beside those of test samples."""
    table = Table(title=Text("Distance to the nearest training sample"), title_justify="left")
    for name in ("", "smallest", "median"):
        table.add_column(name, justify="right" if name else "left")
    for name, kind in (("generated samples", "generated"), ("test samples (unseen)", "test")):
        table.add_row(name, *(f"{value:.3f}" for value in np.mean(found[kind], axis=0)))
    whole(console, table)
    share, worst, expected = np.mean(found["nearest"]), max(found["nearest"]), np.mean(found["expected"])
    say(
        console,
        f"Meaning: for {share:.1f} % of the generated samples ({worst:.1f} % in the worst seed), the nearest real "
        f"sample is a training sample. {expected:.1f} % is expected of new samples from the same distribution, and "
        "100 % of copies. A small difference does not prove that no sample can be recovered.",
    )


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
    """Accuracy, BWT, memory and time, beside those of a naive run if there is one."""
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


def _chance(folder: RunFolder) -> float | None:
    """Chance level in per cent; None if the experiment does not say how many classes a task has."""
    stream = folder.experiment.get("stream")
    if not isinstance(stream, dict) or stream.get("kind") != "split" or stream.get("tasks"):
        return None
    classes = stream.get("classes_per_task")
    return 100 / classes if type(classes) is int and classes > 0 else None


def hardly_learned(folder: RunFolder) -> str:
    """A warning about a finished run whose tasks were hardly learned; empty otherwise."""
    chance, result = _chance(folder), folder.result
    learned = None if result is None else np.array(result["matrix"], float).diagonal(axis1=1, axis2=2).mean()
    if learned is None or chance is None or not _near_chance(learned, chance):
        return ""
    reached = f"{folder.path.name}: on average, tasks reach only {learned:.1f} % after training"
    return f"{reached}; chance level is {chance:.0f} %"


def _near_chance(learned: float, chance: float) -> bool:
    """Whether an accuracy is hardly above chance level."""
    return learned < chance + HARDLY * (100 - chance)


def meaning(result: dict[str, Any], naive: dict[str, Any] | None = None, chance: float | None = None) -> str:
    """What the numbers mean, in a few sentences.

    Args:
        result: the result of the run.
        naive: the result of naive on the same stream.
        chance: chance level in per cent.
    """
    tasks = len(result["matrix"][0])
    accuracy, bwt = result["accuracy"]["mean"], result["bwt"]["mean"]
    if accuracy is None:
        return "Meaning: none, because the accuracy is unknown."
    if bwt is None:
        return f"Meaning: the only task reached {accuracy:.1f} %; forgetting can be measured from two tasks on."
    R = np.array(result["matrix"], float)
    learned, last = R.diagonal(axis1=1, axis2=2).mean(), R[:, -1].mean()
    if chance is not None and _near_chance(learned, chance):
        text = f"Meaning: tasks reach {learned:.1f} % after training, on average, which is hardly better than chance"
        return f"{text} ({chance:.0f} %), so BWT is meaningless here."
    change = _moved(bwt, "lost", "gained")
    text = (
        f"Meaning: {accuracy:.1f} % of predictions are correct, averaged over the tests after each of {tasks} tasks "
        f"({last:.1f} % after the last). A task {change} points on average while later tasks were learned"
    )
    if naive is not None and naive["bwt"]["mean"] is not None:
        text += f"; with naive training it {_moved(naive['bwt']['mean'], 'loses', 'gains')}"
        if (naive["accuracy"]["mean"] or 0) > accuracy:
            text += (
                f" but reaches a higher accuracy ({naive['accuracy']['mean']:.1f} %), so this run needs more training"
            )
    return f"{text}. Stored samples of old tasks: {result['memory_samples'][-1]}."


def _moved(bwt: float, lost: str, gained: str) -> str:
    return f"{lost if bwt < 0 else gained} {abs(bwt):.1f}"


def show_runs(console: Console, folders: Sequence[RunFolder], settings: Sequence[str] = ()) -> None:
    """Print one line for each run, with the requested settings."""
    table = Table()
    for column in ("run", "learner", "data", *settings):
        table.add_column(Text(column))
    for column in ("seeds", "Accuracy", "BWT", "samples", "floats", "time"):
        table.add_column(column, justify="right")
    unfinished = []
    for folder in folders:
        r = folder.result
        name = Text(shown(folder.path.resolve().name, 300))
        if r is None:
            table.add_row(name, "not finished")
            unfinished.append(folder)
            continue
        memory = (str(r["memory_samples"][-1]), f"{r['memory_floats'][-1]:,}")
        metrics = (plus_minus(r["accuracy"]), plus_minus(r["bwt"]))
        values = (r["learner"], r["stream"], *(folder.setting(key) for key in settings))
        texts = (Text(shown(value, 200)) for value in values)
        table.add_row(name, *texts, str(len(r["seeds"])), *metrics, *memory, clock(r["seconds"]["total"]))
    whole(console, table)
    _say_versions(console, folders)
    if unfinished:
        say(console, f"To resume an unfinished run: prer resume {shown(unfinished[0].path, 300)}")


def show_catalogue(console: Console, entries: Iterable[Entry]) -> None:
    """Print one line for each data set."""
    table = Table()
    for column in ("name", "what"):
        table.add_column(column)
    for column in ("samples", "shape", "classes"):
        table.add_column(column, justify="right")
    for column in ("licence", "status"):
        table.add_column(column)
    for entry in entries:
        status = "available" if entry.local_form() else f"{decimal(entry.size)} to download"
        shape, classes = "x".join(map(str, entry.shape)), str(len(entry.classes) or 10)
        table.add_row(
            entry.name,
            entry.title,
            f"{entry.samples:,}",
            shape,
            classes,
            entry.licence,
            "built in" if entry.built_in else status,
        )
    whole(console, table)


def show_states(console: Console, name: str, states: Mapping[Path, str]) -> None:
    """Print the state of each file of a data set, one line each."""
    if set(states.values()) <= {"missing"}:
        say(console, f"{name}: {'not downloaded' if states else 'built in'}")
        return
    for path, state in states.items():
        say(console, f"{name}: {state:<8} {path}", None if state == "ok" else "yellow")
