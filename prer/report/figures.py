"""The figures: plain functions of arrays, each returning a matplotlib figure.

The same figure is a picture in a notebook, a PDF for a paper (`figure.savefig`) and, through `prer.report.inline`, part
of a page. The same arrays give the same bytes.

Example:
    >>> import numpy as np
    >>> matrix(np.array([[99.0, np.nan], [97.0, 98.0]])).axes[0].get_xlabel()
    'accuracy on task'
"""

# S seeds, M tasks, C channels, H and W image

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from typing import Any, ParamSpec

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MaxNLocator, NullFormatter, NullLocator

from prer.report.formatting import shade_from
from prer.report.plotting import matplotlib_defaults

INK, RULE = "#1a1c20", "#d5d9df"
PALETTE = ("#1f5fa8", "#b3441e", "#1d7a52", "#8a3f9c", "#8c6510", "#0b7487", "#b0306a", "#5a6b1f")
MARKERS = "osD^vP*X"
LINES = ("-", "--", "-.", ":")
STYLE: dict[str, Any] = {
    **{f"{part}.color": INK for part in ("text", "xtick", "ytick")},
    "axes.labelcolor": INK,
    "axes.edgecolor": RULE,
    "grid.color": RULE,
    "axes.grid": True,
    "grid.linewidth": 0.6,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "axes.linewidth": 0.8,
    "font.size": 9.5,
    "axes.titlesize": 10,
    "axes.titlelocation": "left",
    "legend.frameon": False,
    "lines.linewidth": 1.6,
    "lines.markersize": 4.5,
    "legend.fontsize": 8.5,
    "legend.handlelength": 2.2,
    # In SVG text stays text; names are not parsed as formulas; ids depend on the content alone.
    "svg.fonttype": "none",
    "text.parse_math": False,
    "svg.hashsalt": "prer",
    "pdf.compression": 9,
    "font.family": "DejaVu Sans",
    "figure.constrained_layout.use": True,
    "image.composite_image": False,  # images side by side stay as sharp as single ones
    "axes.unicode_minus": False,
}
SIZE = (4.2, 2.8)  # inches; small enough for its text to be legible on a phone
SMALL = (2.6, 2.1)
LARGE = 5.2  # inches; the side of a confusion matrix
CELL = (63, 127, 196)  # its colour, and the opacity of 100 %: text on it can be read on light and on dark pages
OPAQUE = 0.75
MOST_LINES, MOST_BARS, MOST_POINTS = 12, 60, 1500
MOST_WRITTEN, MOST_NAMED = 12, 24  # classes of a confusion matrix whose numbers are written, and that are all named

P = ParamSpec("P")


def _figure(plot: Callable[P, Figure]) -> Callable[P, Figure]:
    """Decorate a function to plot in our style, whatever a matplotlibrc or a notebook has set."""

    @wraps(plot)
    def styled(*args: P.args, **kwargs: P.kwargs) -> Figure:
        with matplotlib_defaults(STYLE):
            return plot(*args, **kwargs)

    return styled


def colour(index: int) -> str:
    """Palette colour number `index`, counted cyclically."""
    return PALETTE[index % len(PALETTE)]


def _axes(size: tuple[float, float], title: str, x: str, y: str) -> tuple[Figure, Axes]:
    figure = Figure(size)
    axes = figure.subplots()
    axes.set(title=title, xlabel=x, ylabel=y)
    return figure, axes


def _legend(axes: Axes, handles: Sequence[Any], labels: Sequence[str]) -> None:
    """Add a legend, also for labels that begin with an underscore, which matplotlib would hide."""
    shown = [f"\u200b{label}" if label.startswith("_") else label for label in labels]
    axes.legend(list(handles), shown, loc="upper left", bbox_to_anchor=(1.0, 1.02), borderaxespad=0.3)


@_figure
def matrix(values: np.ndarray, title: str = "") -> Figure:
    """R as a heat map with its numbers [M, M]; NaN stays empty."""
    figure, axes = _axes((max(2.6, 0.62 * len(values) + 1), max(2.2, 0.45 * len(values) + 1)), title, "", "")
    axes.grid(False)
    axes.pcolormesh(values, cmap="Blues", vmin=shade_from(values), vmax=130, edgecolor="white")
    for i, j in zip(*np.nonzero(np.isfinite(values)), strict=True):
        axes.text(j + 0.5, i + 0.5, f"{values[i, j]:.1f}", ha="center", va="center")
    places, names = np.arange(len(values)) + 0.5, [str(task + 1) for task in range(len(values))]
    axes.set(xticks=places, yticks=places, xlabel="accuracy on task", ylabel="after task")
    axes.set_xticklabels(names), axes.set_yticklabels(names)
    axes.invert_yaxis()
    return figure


@_figure
def confusion(shares: np.ndarray, labels: Sequence[str]) -> Figure:
    """Per cent of each true class (rows) that is predicted as each class (columns) [C, C]; NaN stays empty."""
    C = len(shares)
    side = min(LARGE, 0.4 * C + 1.6)
    figure, axes = _axes((side, side), "", "predicted class", "true class")
    axes.grid(False)
    pixels = np.full((C, C, 4), (*CELL, 0), np.uint8)
    pixels[..., 3] = np.round(255 * OPAQUE * np.nan_to_num(shares) / 100)
    axes.imshow(pixels, interpolation="none", extent=(0, C, C, 0))  # not resampled: a class is one pixel of the picture
    if C <= MOST_WRITTEN:
        for i, j in zip(*np.nonzero(np.nan_to_num(shares) >= 0.5), strict=True):
            axes.text(j + 0.5, i + 0.5, f"{shares[i, j]:.0f}", ha="center", va="center")
    if C <= MOST_NAMED:
        axes.hlines(range(1, C), 0, C, color=RULE, lw=0.5)
        axes.vlines(range(1, C), 0, C, color=RULE, lw=0.5)
    named = range(0, C, -(-C // MOST_NAMED))
    names, places = [labels[i] for i in named], [i + 0.5 for i in named]
    axes.set_xticks(places, names, rotation=90 if max(map(len, names)) > 2 else 0)
    axes.set_yticks(places, names)
    axes.spines[:].set_visible(True)
    return figure


@_figure
def over_time(values: np.ndarray) -> Figure:
    """Accuracy of each task after each task [S, M, M], mean and one standard deviation over seeds."""
    figure, axes = _axes(SIZE, "Accuracy of each task over time", "after task", "accuracy in %")
    S, M = values.shape[:2]
    lines = []
    shown = np.unique(np.linspace(0, M - 1, min(M, MOST_LINES)).round().astype(int)).tolist()  # a subset if many
    for j in shown:
        at, of_task = np.arange(j, M), values[:, j:, j]
        mean, spread = of_task.mean(0), of_task.std(0, ddof=1) if S > 1 else np.zeros(M - j)
        style = {"color": colour(j), "marker": MARKERS[j % len(MARKERS)], "linestyle": LINES[j // len(PALETTE) % 4]}
        lines += axes.plot(at + 1, mean, **style)
        axes.fill_between(at + 1, mean - spread, np.minimum(mean + spread, 100), color=colour(j), alpha=0.15, lw=0)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    _legend(axes, lines, [f"task {j + 1}" for j in shown])
    return figure


@_figure
def losses(values: np.ndarray, starts: Sequence[int], phase: str) -> Figure:
    """The loss of a phase in every epoch [epochs, S] of all tasks; a line where a task begins."""
    figure, axes = _axes(SIZE, f"Loss of phase {phase}", "epoch, over all tasks", "loss")
    step = 1 + len(values) // MOST_POINTS
    at, values = np.arange(1, len(values) + 1)[::step], values[::step]
    for start in starts[1:] if len(starts) <= MOST_BARS else ():
        axes.axvline(start + 0.5, color=RULE, lw=1)
    axes.plot(at, values.mean(1), color=colour(0))
    axes.fill_between(at, values.min(1), values.max(1), color=colour(0), alpha=0.15, lw=0)
    if len(values) and values.min() > 0 and values.max() > 50 * np.median(values):
        axes.set_yscale("log")
        axes.yaxis.set_major_formatter(FuncFormatter(plain))
        axes.yaxis.set_minor_formatter(NullFormatter())
    return figure


@_figure
def seconds(by_phase: Mapping[str, Sequence[float]]) -> Figure:
    """Training seconds of each task, stacked by phase."""
    figure, axes = _axes(SIZE, "Time for each task", "task", "seconds")
    bars, below = [], np.zeros(max((len(values) for values in by_phase.values()), default=0))
    for index, values in enumerate(by_phase.values()):
        hatch = ("", "///", "...", "xx")[index % 4]
        style: dict[str, Any] = {"color": colour(index), "alpha": 0.85, "hatch": hatch, "edgecolor": "white"}
        at, above = np.arange(len(below)) + 1, below + np.asarray(values)
        if len(below) > MOST_BARS:
            bars.append(axes.fill_between(at, below, above, **style, lw=0))
        else:
            bars.append(axes.bar(at, values, bottom=below, width=0.7, **style))
        below = above
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.grid(axis="x", visible=False)
    _legend(axes, bars, list(by_phase))
    return figure


@_figure
def memory(floats: Sequence[float], transient: Sequence[float]) -> Figure:
    """Scalars kept of the past after each task, and those of temporary copies during its training."""
    figure, axes = _axes(SIZE, "Memory after each task", "task", "thousand numbers")
    at = np.arange(1, len(floats) + 1)
    plot = axes.bar if len(at) <= MOST_BARS else axes.fill_between
    kept: Any = plot(at, np.asarray(floats) / 1000, color=colour(0))
    handles, names = [kept], ["kept"]
    if any(transient):
        copies = axes.plot(at, np.asarray(transient) / 1000, color=colour(1), marker="D", linestyle="--")
        handles, names = [kept, *copies], ["kept", "copies during\ntraining"]
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.grid(axis="x", visible=False)
    _legend(axes, handles, names)
    return figure


@_figure
def agreement(values: np.ndarray, labels: Sequence[str], fading: Sequence[bool]) -> Figure:
    """Per cent of each class's samples that are classified correctly [classes, M]; NaN where not measured."""
    figure, axes = _axes(SIZE, "Class agreement of the memory's samples", "after task", "agreement in %")
    lines = []
    for index, (of_class, fades) in enumerate(zip(values, fading, strict=True)):
        style: dict[str, Any] = {"lw": 2.6, "marker": "v"} if fades else {"lw": 1.2, "marker": "o", "ms": 3}
        at = np.nonzero(np.isfinite(of_class))[0]
        lines += axes.plot(at + 1, of_class[at], color=colour(index), linestyle=LINES[index // 8 % 4], **style)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    names = [f"{label} fades" if fades else label for label, fades in zip(labels, fading, strict=True)]
    chosen = [i for i in range(len(labels)) if fading[i] or len(labels) <= 10][:12]
    if chosen:
        _legend(axes, [lines[i] for i in chosen], [names[i] for i in chosen])
    return figure


@_figure
def images(rows: Mapping[str, np.ndarray]) -> Figure:
    """Rows of samples with a title each: uint8 [n, C, H, W], or vectors [n, features] as lines of grey."""
    figure, axes = _axes((2.9, 0.42 * len(rows) + 0.1), "", "", "")  # one axes for all rows: creating axes is slow
    vectors = [x for x in rows.values() if x.dtype != np.uint8]  # one scale for all rows, to make them comparable
    limits = min((x.min() for x in vectors), default=0), max((x.max() for x in vectors), default=1)
    pictures = [strip(x) for x in rows.values()]
    width = max(picture.shape[1] for picture in pictures)
    pitch = max([0.18 * width, *(1.2 * x.shape[2] for x in rows.values() if x.ndim == 4)])  # from row to row, in pixels
    places = [row * pitch for row in range(len(rows))]
    for place, picture, samples in zip(places, pictures, rows.values(), strict=True):
        low, high = (0, 255) if samples.dtype == np.uint8 else limits
        across, tall = (width, 0.8 * pitch) if samples.ndim == 2 else picture.shape[1::-1]
        extent = (0, across, place + tall / 2, place - tall / 2)
        axes.imshow(picture, cmap="gray", vmin=low, vmax=high, interpolation="nearest", extent=extent)
    axes.set(xlim=(0, width), ylim=(places[-1] + pitch / 2, -pitch / 2), xticks=[], anchor="W")
    axes.set_yticks(places, list(rows))
    axes.tick_params(length=0)
    axes.grid(False)
    axes.spines[:].set_visible(False)
    return figure


def strip(samples: np.ndarray) -> np.ndarray:
    """Images [n, C, H, W] side by side, [H, width] or [H, width, 3], with grey gaps; vectors unchanged."""
    if samples.ndim == 2:
        return samples
    gap = max(1, samples.shape[3] // 14)
    space = np.full((len(samples), *samples.shape[1:3], gap), 150, samples.dtype)
    line = np.concatenate([np.concatenate([samples, space], 3)[i] for i in range(len(samples))], 2)[:, :, :-gap]
    return np.moveaxis(line, 0, -1) if len(line) == 3 else line[0]


@_figure
def embeddings(real: np.ndarray, sampled: np.ndarray, others: np.ndarray, title: str = "") -> Figure:
    """The first two principal components of a class's real and sampled embeddings, in front of the others."""
    figure, axes = _axes(SMALL, title, "", "")
    axes.set(xticks=[], yticks=[])
    axes.grid(False)
    axes.scatter(*others.T, s=3, color=RULE, lw=0)
    first = axes.scatter(*real.T, s=9, color=colour(0), lw=0, alpha=0.8)
    second = axes.scatter(*sampled.T, s=12, color=colour(1), marker="x", lw=0.8)
    axes.legend([first, second], ["real", "sampled"], loc="upper center", bbox_to_anchor=(0.5, 0), ncols=2)
    return figure


def plain(value: float, position: int = 0) -> str:
    """A short axis label for a number of any size.

    Example:
        >>> plain(0.5), plain(20), plain(30_000), plain(2e6)
        ('0.5', '20', '30k', '2M')
    """
    for size, unit in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= size:
            return f"{value / size:.3g}{unit}"
    return f"{value:.3g}"


def _powers(axes: Axes, x: Sequence[float]) -> None:
    """Use a logarithmic x axis for costs of different magnitudes; linear near 0 if a cost is 0."""
    low, high = min((v for v in x if v > 0), default=1.0), max([*x, 1.0])
    start = 10 ** np.floor(np.log10(low))
    axes.set_xscale("symlog", linthresh=start) if min(x, default=0) <= 0 else axes.set_xscale("log")
    ticks = [start * step for power in range(12) for step in (10**power, 3 * 10**power)]
    ticks = [tick for tick in ticks if low / 2 <= tick <= 1.5 * high]
    ticks = ticks if len(ticks) <= 5 else ticks[:: -(-len(ticks) // 5)]
    axes.set_xticks([0, *ticks] if min(x, default=0) <= 0 else ticks)
    axes.xaxis.set_major_formatter(FuncFormatter(plain))
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.xaxis.set_minor_locator(NullLocator())
    axes.margins(x=0.1)


@_figure
def trade_off(
    x: Sequence[float], y: Sequence[float], groups: Sequence[str], xlabel: str, metric: str = "Accuracy"
) -> Figure:
    """Accuracy of runs against a cost, with a colour and a marker for each group."""
    figure, axes = _axes(SIZE, "", xlabel, f"{metric} in %")
    names, handles = list(dict.fromkeys(groups)), []
    for index, name in enumerate(names[:24]):
        at = [i for i, group in enumerate(groups) if group == name]
        style = {"color": colour(index), "marker": MARKERS[(index + index // 8) % 8], "s": 26, "alpha": 0.85}
        handles.append(axes.scatter([x[i] for i in at], [y[i] for i in at], **style))
    _powers(axes, x)
    if len(names) <= 12:
        _legend(axes, handles, [name if len(name) <= 16 else f"{name[:15]}…" for name in names])
    return figure
