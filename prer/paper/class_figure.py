"""The figure of class-incremental learning: final accuracy against the bytes that a learner keeps of the past."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from prer.paper.class_incremental import METHODS, SIZED, TITLES, sized
from prer.paper.figure2 import STYLE, save
from prer.paper.plan import Key, Request, data_of
from prer.paper.table1 import result_of
from prer.report.plotting import import_unconfigured, matplotlib_defaults
from prer.sweeps.engines.base import Outcome

if TYPE_CHECKING:
    from matplotlib.figure import Figure

NOTHING = 500  # bytes; where methods that keep nothing are drawn on a logarithmic axis
COLOURS = {"prer": "tab:red", "replay": "tab:blue", "der": "tab:green"}


def write(request: Request, outcomes: Mapping[Key, Outcome], out: Path) -> list[Path]:
    """Draw and save the figure; no file if no run is finished."""
    if not any(result_of(outcome) for outcome in outcomes.values()):
        return []
    import_unconfigured()
    return save(plot(request, outcomes), out, "class")


def plot(request: Request, outcomes: Mapping[Key, Outcome]) -> Figure:
    """One panel for each data set: a point for each method, a line for each with several sizes."""
    from matplotlib.figure import Figure

    datas = data_of(outcomes)
    with matplotlib_defaults(STYLE):
        columns = min(len(datas), 2)
        rows = -(-len(datas) // columns)
        figure = Figure(figsize=(3.6 * columns, 3.2 * rows), layout="constrained")
        axes = figure.subplots(rows, columns, squeeze=False).flatten()
        for axis, data in zip(axes, datas, strict=False):
            _panel(axis, outcomes, data)
            axis.set(title=request.title(data), xscale="log", xlabel="bytes kept", ylabel="final accuracy, %")
        for axis in axes[len(datas) :]:
            axis.set_axis_off()
        return figure


def _panel(axis: Any, outcomes: Mapping[Key, Outcome], data: str) -> None:
    for method in SIZED:
        points = [_point(result) for _, result in sized(outcomes, data, method)]
        if points:
            axis.plot(*zip(*sorted(points), strict=True), marker="o", ms=3, lw=1, color=COLOURS[method])
    for method in METHODS:
        result = result_of(outcomes.get((data, method)))
        if result is not None:
            x, y = _point(result)
            axis.plot(x, y, marker="s", ms=4, ls="", color=COLOURS.get(method, "0.4"))
            axis.annotate(TITLES[method], (x, y), xytext=(3, 2), textcoords="offset points", fontsize=6)


def _point(result: Mapping[str, Any]) -> tuple[float, float]:
    return max(result["memory_bytes"][-1], NOTHING), result["final_accuracy"]["mean"]
