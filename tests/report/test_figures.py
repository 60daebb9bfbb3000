"""Figures: the same bytes in any process, as SVG and as PDF."""

import io
import json
import sys

import numpy as np
import pytest
from support.commands import printed
from support.pages import digests, every_figure

from prer.report import figures


def test_the_same_arrays_give_the_same_bytes_in_any_process():
    code = f"import json, sys; sys.path[:0] = {sys.path!r}\n"
    code += "from support.pages import digests; print(json.dumps(digests()))"
    assert digests() == json.loads(printed("-c", code))


def test_the_same_figure_is_a_pdf():
    for figure in every_figure():
        target = io.BytesIO()
        if not any("😀" in text.get_text() for text in figure.findobj(lambda artist: hasattr(artist, "get_text"))):
            figure.savefig(target, format="pdf", metadata={"CreationDate": None})
            assert target.getvalue().startswith(b"%PDF")


def test_rows_of_samples_share_one_axes_and_keep_their_titles_and_shapes():
    rows = {name: np.zeros((8, 1, 6, 9), np.uint8) for name in ("real", "rebuilt", "task 1")}
    (axes,) = figures.images(rows).axes  # to make axes takes most of the time of a figure
    assert [label.get_text() for label in axes.get_yticklabels()] == list(rows)
    tops = [image.get_extent()[3] for image in axes.images]
    assert tops == sorted(tops) and axes.yaxis_inverted() and axes.get_aspect() == 1
    for left, right, bottom, top in (image.get_extent() for image in axes.images):
        assert (right - left, bottom - top) == pytest.approx((8 * 9 + 7, 6))  # a pixel is a square
