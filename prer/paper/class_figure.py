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

NOTHING = 10_000  # bytes; where methods that keep nothing, or less than that, are drawn on a logarithmic axis
COLOURS = {"prer": "tab:red", "replay": "tab:blue", "der": "tab:green", "joint": "black"}
COLOURS |= {"slda-patches": "tab:purple", "ranpac-patches": "tab:orange", "prer-flow": "tab:pink"}
MARKERS = dict(zip(METHODS, "xX+vP<>dsD^123hHo423sDp*", strict=True))


def write(request: Request, outcomes: Mapping[Key, Outcome], out: Path) -> list[Path]:
    """Draw and save the figure; no file if no run is finished."""
    if not any(result_of(outcome) for outcome in outcomes.values()):
        return []
    import_unconfigured()
    return save(plot(request, outcomes), out, "class")


def plot(request: Request, outcomes: Mapping[Key, Outcome]) -> Figure:
    """One panel for each data set: a point for each method, a line for each with several sizes, and one legend."""
    from matplotlib.figure import Figure

    datas = data_of(outcomes)
    with matplotlib_defaults(STYLE):
        columns = min(len(datas), 2)
        rows = -(-len(datas) // columns)
        figure = Figure(figsize=(3.6 * columns, 3 * rows + 0.8), layout="constrained")
        axes = figure.subplots(rows, columns, squeeze=False).flatten()
        named: dict[str, Any] = {}
        for axis, data in zip(axes, datas, strict=False):
            named |= _panel(axis, outcomes, data)
            axis.set(title=request.title(data), xscale="log", xlabel="bytes kept", ylabel="final accuracy, %")
        for axis in axes[len(datas) :]:
            axis.set_axis_off()
        in_order = {TITLES[method]: named[method] for method in METHODS if method in named}
        figure.legend(in_order.values(), in_order.keys(), loc="outside lower center", ncols=2 * columns, fontsize=7)
        return figure


def _panel(axis: Any, outcomes: Mapping[Key, Outcome], data: str) -> dict[str, Any]:
    """Draw a panel; return the points of each method for the legend."""
    named = {}
    for method in METHODS:
        look = {"color": COLOURS.get(method, "0.45"), "marker": MARKERS[method]}
        own = result_of(outcomes.get((data, method)))
        points = [_point(result) for _, result in sized(outcomes, data, method)] if method in SIZED else []
        if points:
            points = list(dict.fromkeys([*points, *([_point(own)] if own else [])]))
            (named[method],) = axis.plot(*zip(*sorted(points), strict=True), ms=4, lw=1, **look)
        elif own is not None:
            x, y = _point(own)
            (named[method],) = axis.plot(x, y, ms=6, ls="", **look)
    return named


def _point(result: Mapping[str, Any]) -> tuple[float, float]:
    return max(result["memory_bytes"][-1], NOTHING), result["final_accuracy"]["mean"]
