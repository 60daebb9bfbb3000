"""prer predict, sample, privacy."""

from __future__ import annotations

import re
from pathlib import Path

import click

from prer.cli.echo import echo
from prer.cli.overrides import with_plugins
from prer.errors import InputError


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
@click.argument("file", type=click.Path(path_type=Path), metavar="FILE")
@click.option(
    "--task", type=click.IntRange(1), help="Task of the samples, from 1; optional with one head, and for PRER."
)
@with_plugins
def predict(model: Path, file: Path, task: int | None) -> None:
    """Predict the labels of the samples in a file. The output is CSV, with the share of seeds that agree.

    MODEL is the folder of a finished run, or its model/. FILE is read in the same way as the training data, with or
    without labels: a table with the same columns in any order, an .npz, an .npy, an image, or a folder of images, which
    are sorted by path.

    \b
    prer predict runs/digits-prer-3361c516 my/file.npz --task 2
    prer predict runs/pets-prer-0a1b2c3d my/photos
    """
    from prer.models.folder import load
    from prer.models.samples import samples

    known = load(model)
    if known.viewed:
        raise InputError(
            "the model was trained on permuted or rotated samples; "
            "transform new samples in the same way, and use Model.predict in Python"
        )
    x, y = samples(file, known.reading)
    labels, shares = known.predict(x, task)
    if task is None and len(known.learner.heads_) > 1:
        note = "no --task given: the flow predicts the class, which is less accurate than the head of a task"
        echo(note, err=True)
    echo("sample,label,seeds")
    for row, (label, share) in enumerate(zip(labels, shares, strict=True)):
        echo(f"{row},{_quoted(str(label))},{share:.2f}")
    answers = {str(label) for label in known.answers(task)}
    truths = [] if y is None else [(str(a), str(b)) for a, b in zip(labels, y, strict=True) if str(b) in answers]
    if truths:
        right = sum(a == b for a, b in truths)
        count = f"{right} of {len(truths)} samples of known classes"
        echo(f"correct by the labels of the file: {count} ({right / len(truths):.1%})", err=True)


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

    echo(f"Written: {write(load(model).sample(label, count, task, seed, noise_seed), label, file)}")
