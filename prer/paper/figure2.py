"""Figure 2: PRER's memory beside real data: embeddings in two dimensions, and decoded samples."""

# n samples, D embedding, K classes, H x W pixels

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from prer.data.grid import grid
from prer.disk import write_into
from prer.errors import InputError
from prer.report.plotting import matplotlib_defaults

if TYPE_CHECKING:
    from matplotlib.figure import Figure

EACH = 200  # embeddings of a class, at most
SHOWN = 8  # decoded samples of a class
STYLE = {"svg.hashsalt": "prer", "font.size": 8, "pdf.fonttype": 42}
DATES: dict[str, dict[str, Any]] = {"svg": {"Date": None}, "pdf": {"CreationDate": None}, "png": {}}


@dataclass(frozen=True)
class Figure2Data:
    """Real and sampled embeddings [n, D] with their classes [n], and images [K, SHOWN, C, H, W] of both kinds."""

    names: Sequence[str]
    real: np.ndarray
    real_class: np.ndarray
    sampled: np.ndarray
    sampled_class: np.ndarray
    images: np.ndarray
    decoded: np.ndarray
    temperature: float


def remembered(folder: Path) -> Figure2Data:
    """Samples of the memory of a finished PRER run (first seed, after the last task), and test samples."""
    import torch

    from prer.learners.prer import PRER
    from prer.runs.run import load_model

    learner, stream = load_model(folder)
    if not isinstance(learner, PRER):
        raise InputError(f"{folder} is a run of {learner.name}, but the figure shows PRER's memory; give a run of PRER")
    seeds, address = learner.address_.seeds, learner.address_ / "figure"
    real, classes, images = [], [], []
    for ids, task in zip(learner.tasks_, stream, strict=True):
        rows = task.test_rows(seeds)
        x, y = task.samples(rows)
        z = learner.embed(task, rows)[0]
        for k in range(len(ids)):
            at = (y[0] == k).nonzero().flatten()[:EACH]
            real.append(z[at].numpy())
            classes += [ids[k]] * len(at)
            images.append(learner.inputs_(x[:, at[:SHOWN]])[0].numpy())
    every = torch.arange(learner.tasks_[-1].stop)
    asked, few = (every.repeat_interleave(n).expand(len(seeds), -1) for n in (EACH, SHOWN))
    sampled = learner.density_.sample(asked, address / "embeddings", learner.temperature)[0].numpy()
    decoded = learner.generate(few, address / "images")[0].unflatten(0, (len(every), SHOWN)).numpy()
    about = np.concatenate(real), np.array(classes), sampled, asked[0].numpy()
    return Figure2Data(
        [str(label) for label in learner.labels_], *about, np.stack(images), decoded, learner.temperature
    )


def spreads(what: Figure2Data) -> list[float]:
    """For each class, the standard deviation of sampled embeddings, divided by that of real ones."""
    parts = ((what.sampled, what.sampled_class), (what.real, what.real_class))
    # Root of the mean variance of all dimensions: some of them may hardly vary.
    sampled, real = ([z[of == k].var(0).mean() ** 0.5 for k in range(len(what.names))] for z, of in parts)
    return [a / b for a, b in zip(sampled, real, strict=True)]


def caption(what: Figure2Data) -> str:
    """How far the spread of sampled embeddings is that of real ones, in a sentence."""
    found = spreads(what)
    return (
        f"Sampled at temperature {what.temperature:g}, as in training, the embeddings of a class have {min(found):.2f} "
        f"to {max(found):.2f} times the standard deviation of real ones (mean {np.mean(found):.2f})."
    )


def projected(real: np.ndarray, sampled: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Both projected on the first two principal components of the real embeddings."""
    from sklearn.decomposition import PCA

    plane = PCA(2, svd_solver="full").fit(real)
    return plane.transform(real), plane.transform(sampled)


def plot(what: Figure2Data) -> Figure:
    """The figure: embeddings above, images below, real on the left and sampled on the right."""
    from matplotlib.figure import Figure

    with matplotlib_defaults(STYLE):
        figure = Figure(figsize=(7, 7.6), layout="constrained")
        above, below = figure.subplots(2, 2, height_ratios=(1, 1.25))
        points = projected(what.real, what.sampled)
        _scatter(above, points, (what.real_class, what.sampled_class), what.names)
        titles = ("Test samples", "Decoded samples of the flow")
        for axis, images, title in zip(below, (what.images, what.decoded), titles, strict=True):
            height = images.shape[3] + 1
            axis.imshow(_rows(images), interpolation="nearest")
            axis.set(title=title, xticks=[], ylabel="class")
            axis.set_yticks([height * (k + 0.5) for k in range(len(images))], what.names)
        return figure


def _rows(images: np.ndarray) -> np.ndarray:
    """Images [K, n, C, H, W] in [0, 1] as one image, a row for each class, with white gaps."""
    one = np.clip(grid(images.reshape(-1, *images.shape[2:]), across=images.shape[1], gap=1), 0, 1)
    return np.broadcast_to(one, (*one.shape[:2], 3))


def _scatter(
    axes: Sequence[Any], points: Sequence[np.ndarray], classes: Sequence[np.ndarray], names: Sequence[str]
) -> None:
    """Real and sampled embeddings on the same limits, each class in its colour."""
    from matplotlib import colormaps

    colours = colormaps["tab10" if len(names) <= 10 else "tab20"]
    every = np.concatenate(points)
    low, high = every.min(0), every.max(0)
    edge = 0.03 * (high - low)
    titles = ("Embeddings of test samples", "Embeddings sampled from the flow")
    for axis, at, of, title in zip(axes, points, classes, titles, strict=True):
        for k, name in enumerate(names):
            axis.scatter(*at[of == k].T, s=3, color=colours(k % colours.N), label=name, linewidths=0)
        axis.set(title=title, xlabel="first component", ylabel="second component")
        axis.set(xlim=(low[0] - edge[0], high[0] + edge[0]), ylim=(low[1] - edge[1], high[1] + edge[1]))
    axes[1].legend(markerscale=3, ncols=2, fontsize=6, title="class", title_fontsize=6)


def save(figure: Figure, out: Path, name: str = "figure2") -> list[Path]:
    """Write a figure as SVG, PDF and PNG, the same bytes for the same figure."""
    files = {kind: io.BytesIO() for kind in DATES}
    with matplotlib_defaults(STYLE):
        for kind, dates in DATES.items():
            figure.savefig(files[kind], format=kind, metadata=dates, dpi=200)
    return write_into(out, {f"{name}.{kind}": data.getvalue() for kind, data in files.items()}, "--out")
