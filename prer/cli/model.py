"""prer teach, predict, score, sample, undo, privacy."""

from __future__ import annotations

import re
from contextlib import ExitStack, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

import click

from prer.cli.echo import echo
from prer.cli.lesson import lesson_of
from prer.cli.overrides import with_plugins
from prer.errors import InputError

if TYPE_CHECKING:
    from prer.models.model import Model
    from prer.streams.task import Task
    from prer.training.loop import Observer


@click.command()
@click.argument("folder", type=click.Path(path_type=Path), metavar="RUN")
@click.option(
    "-n", "count", default=1000, show_default=True, type=click.IntRange(1), help="Number of samples per seed."
)
@with_plugins
def privacy(folder: Path, count: int) -> None:
    """Compare generated samples with their nearest training samples."""
    from prer.models.privacy import check
    from prer.runs.run import load_model
    from prer.terminal.console import new_console
    from prer.terminal.tables import show_distances

    show_distances(new_console(), check(*load_model(folder), count))


@click.command()
@click.argument("model", type=click.Path(path_type=Path), metavar="MODEL")
@click.argument("data", metavar="DATA")
@click.argument("settings", nargs=-1, metavar="[key=value ...]")
@click.option("--task", type=click.IntRange(1), help="Scenario task: the learned task that gets more data, from 1.")
@click.option("--seeds", help="Number of seeds of a new model, whose probabilities are averaged.  [default: 1]")
@click.option("--device", help="auto, cpu or cuda.  [default: auto]")
@click.option("--quiet", is_flag=True, help="Print only warnings.")
@with_plugins
def teach(
    model: Path,
    data: str,
    settings: tuple[str, ...],
    task: int | None,
    seeds: str | None,
    device: str | None,
    quiet: bool,
) -> None:
    """Make a model, or teach an existing one something new. Old data is not needed; nothing of it is kept.

    MODEL is a folder, which is made by the first lesson. DATA is read as by `prer run`: a table, an .npz file, or a
    folder of images. It may bring new classes, more of known ones, or both. Settings are those of an experiment; most
    are fixed by the first lesson. If this fails or is interrupted, the model stays as it was.

    \b
    prer teach pets monday.csv
    prer teach pets tuesday.csv
    prer teach pets photos stream.size=32 learner.name=slda
    prer teach pets wednesday.csv stream.validation=0.1 stream.balance=true
    prer teach tickets monday.csv stream.text=text stream.features=minilm
    """
    from prer.data.entry import silent
    from prer.models import folder
    from prer.models.teaching import teach
    from prer.terminal.console import new_console, warn
    from prer.terminal.downloads import Downloads
    from prer.terminal.models import show_lesson
    from prer.terminal.progress import LessonDisplay

    console = new_console(stderr=quiet)
    lesson = lesson_of(settings, data, seeds, device)
    with folder.writing(model):
        known, version = lesson.model(model)
        with nullcontext(silent) if quiet else Downloads(console) as progress:
            read = lesson.read(known, progress)

        def begin(learned: Task) -> Observer:
            phases = known.learner.phases(*learned.size)
            return stack.enter_context(LessonDisplay(console, model.name, learned.index + 1, phases, quiet))

        with ExitStack() as stack:
            taught = teach(known, read, task=task, begin=begin, **lesson.how)
        folder.save(model, known, version)
    warn(console, taught.warnings)
    if not quiet:
        show_lesson(console, model, known, taught)


@click.command()
@click.argument("model", type=click.Path(path_type=Path), metavar="MODEL")
@click.argument("data", type=click.Path(path_type=Path), metavar="DATA")
@click.option(
    "--task",
    type=click.IntRange(1),
    help="Task of the samples, from 1; only needed if each task has a head of its own, and not for PRER.",
)
@click.option("--proba", is_flag=True, help="Print the probability of each class, too.")
@click.option("-o", "file", type=click.Path(path_type=Path), help="Output file.  [default: standard output]")
@with_plugins
def predict(model: Path, data: Path, task: int | None, proba: bool, file: Path | None) -> None:
    """Predict the labels of the samples in a file. The output is CSV, with the share of seeds that agree.

    MODEL is the folder of a model or of a finished run. DATA is read in the same way as the training data, with or
    without labels: a table with the same columns in any order, an .npz, an .npy, an image, or a folder of images, which
    are sorted by path.

    \b
    prer predict pets new.csv
    prer predict pets my/photos --proba -o answers.csv
    prer predict runs/digits-prer-3361c516 my/file.npz --task 2
    """
    from prer.disk import check_output, write_output
    from prer.models.folder import load
    from prer.models.samples import samples
    from prer.terminal.console import new_console
    from prer.terminal.downloads import Downloads

    if file is not None:
        check_output(file, "-o")
    known = load(model)
    _check_views(known)
    with Downloads(new_console(stderr=True)) as progress:
        x, y, names = samples(data, known.reading, known.device, progress)
    log, answers = known.log_probabilities(x, task), known.answers(task)
    if task is None and len(known.learner.heads_) > 1:
        note = "no --task given: the flow predicts the class, which is less accurate than the head of a task"
        echo(note, err=True)
    labels, shares = known.voted(log, task)
    p = log.exp().mean(0).tolist() if proba else [()] * len(labels)
    header = ["sample", "label", "seeds", *([f"p({answer})" for answer in answers] if proba else [])]
    lines = [",".join(map(_quoted, header))]
    for row, (label, share, of_classes) in enumerate(zip(labels, shares, p, strict=True)):
        sample = names[row] if names else str(row)
        lines.append(
            ",".join([_quoted(sample), _quoted(str(label)), f"{share:.2f}", *(f"{v:.4f}" for v in of_classes)])
        )
    if file is not None:
        write_output(file, ("\n".join(lines) + "\n").encode(), "-o")
    for line in lines if file is None else ():
        echo(line)
    known_labels = {str(answer) for answer in answers}
    truths = [] if y is None else [(str(a), str(b)) for a, b in zip(labels, y, strict=True) if str(b) in known_labels]
    if truths:
        right = sum(a == b for a, b in truths)
        count = f"{right} of {len(truths)} samples of known classes"
        echo(f"correct by the labels of the file: {count} ({right / len(truths):.1%})", err=True)


def _check_views(model: Model) -> None:
    if model.viewed:
        raise InputError(
            "the model was trained on permuted or rotated samples; "
            "transform new samples in the same way, and use prer.load in Python"
        )


@click.command()
@click.argument("model", type=click.Path(path_type=Path), metavar="MODEL")
@click.argument("data", metavar="DATA")
@click.option("--task", type=click.IntRange(1), help="Task of the samples, from 1.")
@with_plugins
def score(model: Path, data: str, task: int | None) -> None:
    """Measure the accuracy of a model on labelled data, class by class, and add it to the model's history.

    If DATA has a test part, that part is used. The history of a run's model is not written.

    \b
    prer score pets test.csv
    """
    from prer.models import folder
    from prer.models.teaching import count_right, now
    from prer.terminal.console import new_console
    from prer.terminal.downloads import Downloads
    from prer.terminal.models import show_score

    known = folder.load(model)
    _check_views(known)
    with Downloads(new_console()) as progress:
        read = lesson_of((), data, None, None).read(known, progress)
    x, y = (part[-read.tests :] if read.tests else part for part in (read.x, read.y))
    counts = count_right(known, x, y.tolist(), task)
    right, total = (sum(of) for of in zip(*counts.values(), strict=True))
    event = {"when": now(), "event": "scored", "data": Path(data).name, "samples": total, "accuracy": right / total}
    if folder.inner(model) == model:
        with folder.writing(model):
            folder.record(model, event | {"classes": [[label, *of] for label, of in counts.items()]})
    show_score(new_console(), counts)


@click.command()
@click.argument("model", type=click.Path(path_type=Path), metavar="MODEL")
@with_plugins
def undo(model: Path) -> None:
    """Take back the last lesson of a model. Only one lesson can be taken back, since one previous version is kept."""
    from prer.models import folder
    from prer.models.teaching import now
    from prer.text import shown

    with folder.writing(model):
        before = folder.undo(model, {"when": now(), "event": "undone"})
    classes = ", ".join(shown(label, 30) for label in before.answers()[:20])
    echo(f"{shown(model)} is again as after lesson {len(before.tasks)}: {len(before.answers())} classes, {classes}")


def _quoted(text: str) -> str:
    """Text as a CSV field, quoted if needed."""
    return '"' + text.replace('"', '""') + '"' if re.search('[",\r\n]', text) else text


@click.command()
@click.argument("model", type=click.Path(path_type=Path), metavar="MODEL")
@click.option("--class", "label", required=True, help="Label of the class.")
@click.option("-n", "count", default=16, show_default=True, type=click.IntRange(1, 10_000), help="Number of samples.")
@click.option(
    "--task",
    type=click.IntRange(1),
    help="The task of the class, from 1, if several tasks have it.  [default: the last]",
)
@click.option("--seed", default=0, show_default=True, type=click.IntRange(0), help="Index of the run's seed, from 0.")
@click.option(
    "--noise-seed",
    "--draw",
    default=0,
    show_default=True,
    type=click.IntRange(0),
    help="A different number gives different samples.",
)
@click.option(
    "-o", "file", type=click.Path(path_type=Path), help="Output file, .png (images) or .npy.  [default: CLASS.png]"
)
@with_plugins
def sample(
    model: Path, label: str, count: int, task: int | None, seed: int, noise_seed: int, file: Path | None
) -> None:
    """Generate new samples of a class from a model's memory.

    \b
    prer sample runs/digits-prer-3361c516 --class 3 -n 16 -o threes.png
    """
    from prer.models.folder import load
    from prer.models.samples import write

    known = load(model)
    echo(f"Written: {write(known.sample(label, count, task, seed, noise_seed), label, file)}")
    if known.reading.extractor:
        echo(f"These are features ({known.reading.extractor}), not {known.reading.inputs}: no decoder is learned.")
