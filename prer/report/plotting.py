"""matplotlib's own defaults, so that no figure depends on a matplotlibrc or on the settings of a notebook."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import chdir, contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any


def import_unconfigured() -> None:
    """Import matplotlib without reading a matplotlibrc; for the command line only, since it affects the whole process.

    The import reads the first such file that it finds, and the current folder comes first. A broken one prints warnings
    or ends in a traceback, so the import sees a folder with an empty one.
    """
    with suppress(OSError), TemporaryDirectory() as folder:  # the current folder may have been deleted
        (Path(folder) / "matplotlibrc").touch()
        with chdir(folder):
            import matplotlib  # noqa: F401


@contextmanager
def matplotlib_defaults(settings: Mapping[str, Any]) -> Iterator[None]:
    """Set matplotlib's defaults with these settings; restore the previous ones at the end."""
    from matplotlib import rc_context, rcParams, rcParamsDefault

    # Not the backend: setting it may load another one. `dict` methods, because they skip the checks, which defaults do
    # not need, and the warnings about deprecated ones.
    defaults = {key: value for key, value in dict.items(rcParamsDefault) if key != "backend"}
    with rc_context():
        dict.update(rcParams, defaults)
        rcParams.update(settings)
        yield
