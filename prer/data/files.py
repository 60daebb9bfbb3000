"""Files to arrays. Nothing here ever unpickles."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np

from prer.data.catalogue import RECOMMENDED, digits
from prer.errors import InputError


class Arrays(NamedTuple):
    """Samples and labels, with a test part where the source gives one."""

    x: np.ndarray
    y: np.ndarray
    test: tuple[np.ndarray, np.ndarray] | None = None


def load(data: str) -> Arrays:
    """The arrays behind a name of the catalogue or a path to an .npz file."""
    if data in RECOMMENDED:
        return Arrays(*digits())
    path = find(data)
    if path is not None:
        return _npz(path)
    known = ", ".join(RECOMMENDED)
    raise InputError(f"stream.data={data!r} is neither a known data set ({known}) nor a file; check the path")


def find(data: str) -> Path | None:
    """The file a path names, or None where there is none."""
    try:
        path = Path(data).expanduser()
        return path if path.exists() else None
    except (OSError, RuntimeError):  # too long a name, an unknown user
        return None


def _npz(path: Path) -> Arrays:
    try:
        with path.open("rb") as file, np.lib.npyio.NpzFile(file, allow_pickle=False) as archive:
            arrays = {name: archive[name] for name in archive.files if name in _NAMES}
    except Exception as error:  # a damaged archive makes zipfile, zlib and NumPy fail in many ways
        reason = "it holds Python objects" if "allow_pickle" in str(error) else "it cannot be read"
        raise InputError(f"{path}: {reason}; give an .npz with plain arrays x, y or x_train, y_train") from None
    x, y = arrays.get("x_train", arrays.get("x")), arrays.get("y_train", arrays.get("y"))
    if x is None or y is None:
        raise InputError(f"{path}: no arrays x, y or x_train, y_train in it; name them so")
    if ("x_test" in arrays) != ("y_test" in arrays):
        raise InputError(f"{path}: a test part needs both x_test and y_test")
    if "x_test" in arrays:
        return Arrays(x, y, (arrays["x_test"], arrays["y_test"]))
    return Arrays(x, y)


_NAMES = ("x", "y", "x_train", "y_train", "x_test", "y_test")
