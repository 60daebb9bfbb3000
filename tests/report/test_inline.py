"""Figures in a page: drawn once, with names as text."""

import io
import re

import numpy as np
import pytest
from support.pages import every_figure

from prer.report import figures
from prer.report.inline import NO_DATES, inlined, svg
from prer.report.plotting import matplotlib_defaults


@pytest.mark.filterwarnings("ignore:Glyph")
def test_a_figure_is_drawn_once_for_a_page_and_left_as_it_was(monkeypatch):
    for figure, same in zip(every_figure(), every_figure(), strict=True):
        expected, times, draw = io.StringIO(), [], figure.draw
        with matplotlib_defaults(figures.STYLE):
            same.savefig(expected, format="svg", transparent=True, metadata=NO_DATES)
        before = figure.get_facecolor(), figure.axes[0].get_facecolor(), figure.dpi, figure.canvas
        monkeypatch.setattr(figure, "draw", lambda renderer, times=times, draw=draw: (times.append(1), draw(renderer)))
        assert svg(figure) == expected.getvalue() and len(times) == 1
        assert (figure.get_facecolor(), figure.axes[0].get_facecolor(), figure.dpi, figure.canvas) == before


def test_names_in_figures_are_neither_markup_nor_formulas():
    figure = figures.agreement(np.array([[99.0], [98.0]]), ["$a_b$ #1f5fa8;", "_</text><script>"], [True, False])
    html = inlined(figure, 'alt "<b>"', 7)
    assert "$a_b$ #1f5fa8; fades" in html and "&lt;/text&gt;&lt;script&gt;" in html
    assert "<script" not in html and 'aria-label="alt &#34;&lt;b&gt;&#34;"' in html
    assert all(name.startswith("f7-") for name in re.findall(r'id="([^"]*)"', html))
