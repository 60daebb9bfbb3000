"""The paper's experiments: one file for each data set and method of its Table 1, and what is made of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

DATA = ("mnist", "kmnist", "svhn", "cifar10")
METHODS = ("naive", "lwf", "ewc", "gem", "er", "prer")
LITERAL = ("mnist", "cifar10")  # data sets with a file `prer-literal`: PRER without one deviation from the paper


def file_of(data: str, method: str) -> Path:
    """The experiment of a data set and a method; there are files for those of the paper."""
    return Path(__file__).parent / f"{data}-{method}.toml"


def settings(data: str, method: str) -> dict[str, dict[str, Any]] | None:
    """The stream's and the learner's settings in the paper's experiment, or None where it has none such."""
    import tomllib

    if data not in DATA or method not in METHODS:
        return None
    tables = tomllib.loads(file_of(data, method).read_text("utf-8"))
    return {
        table: {key: v for key, v in tables[table].items() if key not in ("data", "name")}
        for table in ("stream", "learner")
    }
