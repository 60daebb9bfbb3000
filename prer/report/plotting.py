"""matplotlib with its own defaults: no figure of ours depends on a matplotlibrc or on what a notebook has set."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import chdir, contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any


def import_unconfigured() -> None:
    """Import matplotlib without reading a matplotlibrc; for the command line, since it holds for the whole process.

    The import reads the first such file that it finds, and the current folder comes first. A broken one prints warnings
    or ends in a traceback, so the import sees a folder with an empty one.
    """
    with suppress(OSError), TemporaryDirectory() as folder:  # the current folder may have been deleted
        (Path(folder) / "matplotlibrc").touch()
        with chdir(folder):
            import matplotlib  # noqa: F401


@contextmanager
def matplotlib_defaults(settings: Mapping[str, Any]) -> Iterator[None]:
    """Matplotlib's defaults with these settings; what was set before comes back at the end."""
    from matplotlib import rc_context, rcParams, rcParamsDefault

    # The backend is not for drawing: to set it may load another. Through `dict`, because a default needs no check, and
    # a deprecated one no warning.
    defaults = {key: value for key, value in dict.items(rcParamsDefault) if key != "backend"}
    with rc_context():
        dict.update(rcParams, defaults)
        rcParams.update(settings)
        yield
