"""Figures ignore what a user or a notebook has set, and leave it as it was."""

from pathlib import Path

import pytest
from matplotlib import rc_context, rcParams
from support.commands import printed
from support.fake_runs import fake_run
from support.pages import digests, page

RED = b"text.usetex: True\naxes.facecolor: red\nfont.size: 40\nno.such.key: 1\nfigure.dpi: many\n"


@pytest.mark.parametrize(("place", "content"), [("matplotlibrc", RED), ("elsewhere", b"\xff")], ids=["here", "named"])
def test_a_matplotlibrc_is_not_read(tmp_path, place, content):
    fake_run(tmp_path / "a")
    Path(place).write_bytes(content)
    said = printed("-m", "prer", "report", "a", "-o", "page.html", MATPLOTLIBRC=str(tmp_path / "elsewhere"))
    assert said.startswith("Written: page.html") and len(said.splitlines()) == 1
    assert Path("page.html").read_text("utf-8") == page("a")


def test_figures_do_not_depend_on_what_a_notebook_has_set_and_leave_it_as_it_was():
    usual, red = digests(), {"text.usetex": True, "axes.facecolor": "red", "svg.fonttype": "path", "font.size": 40}
    with rc_context(red):
        before = dict(rcParams.copy())
        assert digests() == usual
        assert dict(rcParams.copy()) == before
