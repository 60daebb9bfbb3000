"""Figures as inline SVG: their ids do not clash, and the page sets their colours."""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from markupsafe import Markup, escape

from prer.report.plotting import matplotlib_defaults

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# A page may contain many figures, so parts that are the same in all of them are removed.
SUPERFLUOUS = re.compile(r"<metadata>.*?</metadata>|<style[^>]*>.*?</style>|<!--.*?-->", re.DOTALL)
NO_DATES = {"Date": None, "Creator": None, "Format": None, "Type": None}


def svg(figure: Figure) -> str:
    """The figure as SVG, the same bytes for the same content."""
    target = io.StringIO()
    with warnings.catch_warnings(action="ignore", category=UserWarning):  # missing glyphs: the page's font has them
        _save(figure, target)
    return target.getvalue()


def _save(figure: Figure, target: io.StringIO) -> None:
    """Write what `savefig(transparent=True)` would, but draw once: `savefig` draws twice to find the layout."""
    from matplotlib.backends.backend_svg import FigureCanvasSVG

    from prer.report.figures import STYLE

    with matplotlib_defaults(STYLE), _transparent(figure):
        FigureCanvasSVG(figure).print_svg(target, metadata=NO_DATES)


@contextmanager
def _transparent(figure: Figure) -> Iterator[None]:
    """Remove the backgrounds of a figure; at the end restore its colours, canvas and resolution."""
    patches = [figure.patch, *(axes.patch for axes in figure.axes)]
    colours, canvas, dpi = [patch.get_facecolor() for patch in patches], figure.canvas, figure.dpi
    for patch in patches:
        patch.set_facecolor("none")
    try:
        yield
    finally:
        for patch, colour in zip(patches, colours, strict=True):
            patch.set_facecolor(colour)
        figure.set_canvas(canvas)
        figure.dpi = dpi


def inlined(figure: Figure, alt: str, number: int) -> Markup:
    """The figure as an inline SVG element, with a text for screen readers.

    Args:
        figure: the figure to draw.
        alt: what it shows.
        number: its number, unique on the page.
    """
    text = SUPERFLUOUS.sub("", svg(figure))
    text = text[text.index("<svg") :]
    # Within tags only, so that names in the text stay unchanged. matplotlib writes no ">" inside a tag.
    text = re.sub(r"<[^>]+>", lambda tag: _adapted(tag[0], number), text)
    text = re.sub(
        r"<svg[^>]*?(viewBox=\"[^\"]*\")[^>]*>", rf'<svg \1 role="img" aria-label="{_alt(alt)}">', text, count=1
    )
    return Markup(text)


def _alt(alt: str) -> str:
    """Escape text for an attribute, and for use as a regex replacement."""
    return str(escape(alt)).replace("\\", r"\\")


def _adapted(tag: str, number: int) -> str:
    """A tag with the figure's number in its ids, the page's variables as colours, and two decimals in lengths."""
    from prer.report.figures import INK, PALETTE, RULE

    tag = re.sub(r'( id="|url\(#|href="#)', rf"\g<1>f{number}-", tag)
    variables = {INK: "var(--ink)", RULE: "var(--rule)", **{c: f"var(--c{i})" for i, c in enumerate(PALETTE)}}
    tag = re.sub(r"(?<=: )#[0-9a-f]{6}\b", lambda colour: variables.get(colour[0], colour[0]), tag)
    tag = re.sub(r"font-family: [^;\"]*;? ?", "", tag)  # the page sets the font family
    return tag if "base64" in tag else re.sub(r"(\d+\.\d\d)\d+", r"\1", tag)
