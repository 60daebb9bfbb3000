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
from prer.runs import metrics as evaluation
from prer.runs.folder import RunFolder
from prer.terminal.console import say, warn, whole
from prer.text import clock, plus_minus, shown
from prer.training.fading import Fading
from prer.version import __version__

HARDLY = 0.2  # share of the way from chance level to 100 %; a task below it is hardly learned
ALL_CLASSES = 10  # classes that are all listed; if there are more, the worst are
WORST = 5  # classes


EVENTS_OF_A_TASK = 2**20  # bytes at the end of the events; enough for the health of all classes


MOST_NAMES = 5  # maximum number of runs named in one line
MOST_TASKS = 100  # maximum tasks of a matrix that is shown; thousands do not fit on a screen and take minutes to render


def show_result(console: Console, folder: RunFolder, naive: RunFolder | None = None) -> None:
    """Print the mean matrix, the metrics beside naive's, what they mean, and the run folder."""
    result, beside = folder.result, naive.result if naive else None
    assert result is not None
    beside = None if result["learner"] == "naive" else beside
    figures, by_class = metrics_table(result, beside), is_class(result)
    if by_class:
        whole(console, figures)
    tasks = len(result["matrix"][0])
    if tasks <= MOST_TASKS:
        whole(console, matrix_table(result))
    else:
        say(console, f"The matrix of {tasks} tasks is too large to show; it is in {folder.path / 'result.json'}")
    if by_class:
        say(console, class_line(result))
    else:
        whole(console, figures)
    say(console, f"Digest of the final state: {str(result.get('digest', 'unknown'))[:64]}")
    say(console, meaning(result, beside, _chance(folder)))
    warn(console, [*folder.warnings, *_last_warnings(folder)])
    say(console, f"Run folder: {folder.path}")
    _say_versions(console, [folder])


def show_briefly(console: Console, question: str, folder: RunFolder, naive: RunFolder) -> None:
    """Print the metrics of a run beside naive's, what they mean, and the run folder."""
    result = folder.result
    assert result is not None
    table = metrics_table(result, naive.result)
    table.title, table.title_justify = Text(question), "left"
    whole(console, table)
    say(console, f"Digest of the final state: {result['digest']}")
    say(console, meaning(result, naive.result, _chance(folder)))
    warn(console, [*folder.warnings, *_last_warnings(folder)])
    say(console, f"Run folder: {folder.path}")


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


def is_class(result: Mapping[str, Any]) -> bool:
    """Whether the task of a test sample is not given; earlier versions had no such scenario."""
    return result.get("scenario") == "class"


def matrix_table(result: dict[str, Any]) -> Table:
    """Accuracy on each task (columns) after each task (rows), mean over seeds."""
    matrix = np.array(result["matrix"], float)
    unknown = ", task not given" if is_class(result) else ""
    title = f"Accuracy in % of {result['learner']} on {result['stream']}{unknown}, {_seeds(len(result['seeds']))}"
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
    """Accuracy, BWT, memory and time, beside those of a naive run if there is one; main metrics first."""
    table = Table()
    table.add_column("")
    rows = [result] if naive is None else [result, naive]
    for row in rows:
        table.add_column(Text(shown(row["learner"])), justify="right")
    if is_class(result):
        table.add_row(f"Final accuracy, {_classes(result)}", *(plus_minus(final_accuracy(row)) for row in rows))
        means = (row.get("average_incremental_accuracy") for row in rows)
        table.add_row("Average incremental accuracy", *("-" if mean is None else plus_minus(mean) for mean in means))
        if not _alone(result):
            table.add_row("Final accuracy, task given", *(plus_minus(_task_given(row)) for row in rows))
    for key, label in (("accuracy", "Accuracy"), ("bwt", "BWT")):
        table.add_row(label, *(plus_minus(row[key]) for row in rows))
    table.add_row("samples kept", *(str(row["memory_samples"][-1]) for row in rows))
    kept = [_bytes(row) for row in rows]
    if kept != ["-"] * len(rows):
        table.add_row("bytes kept", *kept)
    table.add_row("floats kept", *(f"{row['memory_floats'][-1]:,}" for row in rows))
    table.add_row("training", *(clock(row["seconds"]["total"]) for row in rows))
    return table


def _classes(result: Mapping[str, Any]) -> str:
    count = len(result["classes"])
    return "one class" if count == 1 else f"all {count} classes"


def final_accuracy(result: Mapping[str, Any]) -> dict[str, Any]:
    """The accuracy after the last task; computed from the matrix if an earlier version did not write it."""
    return result.get("final_accuracy") or _last_row(result["matrix"])


def _last_row(matrix: Sequence[Any]) -> dict[str, Any]:
    return evaluation.spread([evaluation.final_accuracy(R) for R in np.array(matrix, float)])


def _task_given(result: Mapping[str, Any]) -> dict[str, Any]:
    """The final accuracy with the task given, which is how the scenario "task" tests."""
    return result.get("final_accuracy_task_given") or _last_row(
        result["matrix_task_given"] if is_class(result) else result["matrix"]
    )


def _alone(result: Mapping[str, Any]) -> bool:
    """Whether each task has a single class, so that nothing is left to predict if the task is given."""
    return len(result["classes"]) <= len(result["matrix"][0]) and _task_given(result)["mean"] == 100


def _bytes(result: Mapping[str, Any]) -> str:
    """The size of the memory; "-" if an earlier version did not count it."""
    size = (result.get("memory_bytes") or [None])[-1]
    return "-" if size is None else decimal(size)


def class_line(result: Mapping[str, Any]) -> str:
    """The final accuracy of each class, mean over seeds; of many classes, the worst."""
    known = {label: mean for label, mean in _class_means(result).items() if mean is not None}
    if not known:
        return "Accuracy by class: unknown"
    many = len(known) > ALL_CLASSES
    worst = dict(sorted(known.items(), key=lambda of: of[1])[:WORST]) if many else known
    head = f"The worst {WORST} of {len(known)} classes, accuracy in %" if many else "Accuracy by class in %"
    return f"{head}: {', '.join(f'{shown(label, 30)}: {mean:.1f}' for label, mean in worst.items())}"


def _class_means(result: Mapping[str, Any]) -> dict[str, float | None]:
    """The final accuracy of each class, mean over the seeds that have test samples of it; None if there are none."""
    known = {label: [v for v in of if v is not None] for label, of in result["class_accuracy"].items()}
    return {label: float(np.mean(values)) if values else None for label, values in known.items()}


def _worst_class(result: Mapping[str, Any]) -> str:
    """A sentence about the class with the lowest accuracy, and what it is mistaken for; empty if it is unknown."""
    means = [np.inf if mean is None else mean for mean in _class_means(result).values()]
    counts, worst = np.array(result["confusion"]).sum(0), int(np.argmin(means))
    if not counts[worst].sum() or means[worst] == 100:
        return ""
    mistaken = np.where(np.arange(len(means)) == worst, -1, counts[worst])
    name, taken = (shown(result["classes"][i], 30) for i in (worst, int(mistaken.argmax())))
    share = 100 * mistaken.max() / counts[worst].sum()
    text = f" The worst class is {name}: {means[worst]:.1f} % of its samples are classified correctly"
    return f"{text}, and {share:.1f} % are mistaken for {taken}."


def _chance(folder: RunFolder) -> float | None:
    """Chance level right after a task is learned, in per cent, mean over tasks; None if the classes are not known.

    In the scenario "class" a sample may be of any class seen so far, so that chance level falls with every task.
    """
    stream = folder.experiment.get("stream")
    if not isinstance(stream, dict) or stream.get("kind") != "split" or stream.get("tasks"):
        return None
    classes, result = stream.get("classes_per_task"), folder.result
    if type(classes) is not int or classes <= 0:
        return None
    if result is None or not is_class(result):
        return 100 / classes
    seen = [min(classes * task, len(result["classes"])) for task in range(1, len(result["matrix"][0]) + 1)]
    return float(np.mean([100 / count for count in seen]))


def hardly_learned(folder: RunFolder) -> str:
    """A warning about a finished run whose tasks were hardly learned; empty otherwise."""
    chance, result = _chance(folder), folder.result
    learned = None if result is None else np.array(result["matrix"], float).diagonal(axis1=1, axis2=2).mean()
    if result is None or learned is None or chance is None or not _near_chance(learned, chance, is_class(result)):
        return ""
    reached = f"{folder.path.name}: on average, tasks reach only {learned:.1f} % after training"
    return f"{reached}; chance level is {chance:.0f} %"


def _near_chance(learned: float, chance: float, among_many: bool = False) -> bool:
    """Whether an accuracy is hardly above chance level; `among_many` classes, twice that level is well above it."""
    limit = chance + HARDLY * (100 - chance)
    return learned < (min(limit, 2 * chance) if among_many else limit)


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
    if is_class(result):
        return _meaning_of_classes(result, naive, chance)
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


def _meaning_of_classes(result: dict[str, Any], naive: dict[str, Any] | None, chance: float | None) -> str:
    """What the numbers mean if the task of a sample is not given."""
    final, given = final_accuracy(result)["mean"], _task_given(result)["mean"]
    if final is None or given is None:
        return "Meaning: none, because the accuracy is unknown."
    learned, guessed = np.array(result["matrix"], float).diagonal(axis1=1, axis2=2).mean(), 100 / len(result["classes"])
    if chance is not None and _near_chance(learned, chance, among_many=True):
        text = f"Meaning: tasks reach {learned:.1f} % after training, on average, which is hardly better than chance"
        return f"{text} ({chance:.0f} % among the classes seen), so the other metrics are meaningless here."
    text = (
        f"Meaning: without the task given, {final:.1f} % of the test samples of {_classes(result)} are classified "
        f"correctly after the last task (chance level: {guessed:.3g} %"
    )
    beside = None if naive is None else final_accuracy(naive)["mean"]
    if beside is not None:
        text += f"; naive training: {beside:.1f} %"
    text += ")." if _alone(result) else f"). With the task given, it is {given:.1f} %."
    text += _worst_class(result)
    if beside is not None and beside > final:
        text += " Naive training reaches a higher accuracy, so this run needs more training."
    return f"{text} Stored samples of old tasks: {result['memory_samples'][-1]}."


def _moved(bwt: float, lost: str, gained: str) -> str:
    return f"{lost if bwt < 0 else gained} {abs(bwt):.1f}"


def show_runs(console: Console, folders: Sequence[RunFolder], settings: Sequence[str] = ()) -> None:
    """Print one line for each run, with the requested settings; the final accuracy if the task is not given to any."""
    results = [folder.result for folder in folders]
    by_class = any(r is not None and is_class(r) for r in results)
    table = Table()
    for column in ("run", "learner", "data", *(["scenario"] if by_class else []), *settings):
        table.add_column(Text(column))
    main = ("final accuracy", "samples", "bytes") if by_class else ("Accuracy", "BWT", "samples", "floats")
    for column in ("seeds", *main, "time"):
        table.add_column(column, justify="right")
    for folder, r in zip(folders, results, strict=True):
        name = Text(shown(folder.path.resolve().name, 300))
        if r is None:
            table.add_row(name, "not finished")
            continue
        scenario = [r.get("scenario", "task")] if by_class else []
        values = (r["learner"], r["stream"], *scenario, *(folder.setting(key) for key in settings))
        texts = (Text(shown(value, 200)) for value in values)
        figures = _figures(r, by_class)
        table.add_row(name, *texts, str(len(r["seeds"])), *figures, clock(r["seconds"]["total"]))
    whole(console, table)
    _say_versions(console, folders)
    unfinished = [folder for folder, r in zip(folders, results, strict=True) if r is None]
    if unfinished:
        say(console, f"To resume an unfinished run: prer resume {shown(unfinished[0].path, 300)}")


def _figures(result: Mapping[str, Any], by_class: bool) -> list[str]:
    """The metrics and the memory of a run for its line in a table of runs."""
    samples = str(result["memory_samples"][-1])
    if by_class:
        return [plus_minus(final_accuracy(result)), samples, _bytes(result)]
    return [plus_minus(result["accuracy"]), plus_minus(result["bwt"]), samples, f"{result['memory_floats'][-1]:,}"]


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
