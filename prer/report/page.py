"""The report page: one self-contained HTML file."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from prer.disk import write_output
from prer.report.comparison import columns, costs, main_name, row, tests
from prer.report.formatting import signed
from prer.report.page_figures import PageFigures
from prer.report.run import Run
from prer.report.view import view
from prer.text import excerpt
from prer.version import __version__

HERE = Path(__file__).parent
MOST_FULL = 12  # runs that are shown with figures; if there are more, all are compact
MOST_LOADED = 4  # if there are more runs, no model is loaded


def build(runs: Sequence[Run], complaints: Sequence[str] = (), watch: int = 0) -> str:
    """The page about these runs.

    Args:
        runs: the runs to show.
        complaints: sentences about folders that hold no run.
        watch: seconds after which the page reloads itself; 0: never.
    """
    full, plots = len(runs) <= MOST_FULL, PageFigures()
    views = [view(run, i, full, len(runs) <= MOST_LOADED, plots) for i, run in enumerate(runs)]
    script = (HERE / "page.js").read_text("utf-8")
    about: dict[str, Any] = {"views": views, "complaints": complaints, "watch": watch, "version": __version__}
    about |= {"script": Markup(script), "style": Markup((HERE / "page.css").read_text("utf-8"))}
    about |= {"script_hash": base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(), "full": full}
    about |= {"excerpt": excerpt, "signed": signed}
    about |= {"title": f"{len(runs)} runs" if len(runs) > 1 else runs[0].name if runs else "No runs"}
    if len(runs) > 1:
        known = columns(runs)
        about |= {"columns": list(known.values()), "rows": [row(run, known) for run in runs], "tests": tests(runs)}
        about |= {"costs": _costs(runs, plots)}
    return _templates().get_template("page.html").render(about) + "\n"


def _templates() -> Environment:
    """The Jinja environment; it escapes all values that we have not marked as markup."""
    environment = Environment(loader=FileSystemLoader(HERE), autoescape=True, undefined=StrictUndefined)
    environment.trim_blocks = environment.lstrip_blocks = True
    return environment


def _costs(runs: Sequence[Run], plots: PageFigures) -> list[dict[str, Any]]:
    from prer.report import figures

    found, of = [], main_name(runs)
    for name, (x, y, groups) in costs(runs).items():
        if len(x) > 1:
            alt = f"Points: {of} of {len(x)} runs against {name}. The numbers are in the table of runs."
            figure = figures.trade_off(x, y, groups, name, of)
            found.append({"svg": plots(figure, alt), "caption": f"{of} against {name}."})
    return found


def write(page: str, file: Path) -> int:
    """Write the page atomically, so that nobody ever reads half of it; return its size in bytes."""
    data = page.encode("utf-8", "backslashreplace")
    write_output(file, data, "-o")
    return len(data)
