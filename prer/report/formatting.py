"""Formats names and numbers for the page, whatever a run folder holds."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import islice
from typing import Any

import numpy as np
from rich.filesize import decimal

from prer.text import excerpt, plus_minus

MOST_SETTINGS = 500


def is_number(value: object) -> bool:
    """Whether a value is a finite number of reasonable size."""
    return isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) < 1e18


def numbers(values: object) -> list[float] | None:
    """The values as floats if they are a list of finite numbers, else None."""
    if isinstance(values, list) and all(is_number(v) for v in values):
        return [float(v) for v in values]
    return None


def metric(result: dict[str, Any] | None, name: str) -> dict[str, Any] | None:
    """A metric of a result, validated: mean, std (or None) and values; None if there is no such metric."""
    found = result.get(name) if result else None
    if not isinstance(found, dict) or not is_number(found.get("mean")):
        return None
    std, values = found.get("std"), found.get("values")
    return {"mean": found["mean"], "std": std if is_number(std) else None, "values": numbers(values) or []}


def with_spread(found: dict[str, Any] | None) -> str:
    """Mean and standard deviation, with typographic minus signs."""
    return "–" if found is None else true_minus(plus_minus(found))


def size(value: float | None) -> str:
    """A number of bytes for people to read; a dash if it is unknown.

    Example:
        >>> size(153_597), size(None)
        ('153.6 kB', '–')
    """
    return "–" if value is None else decimal(int(value))


def true_minus(text: str) -> str:
    """The text with typographic minus signs."""
    return text.replace("-", "−")


def signed(value: float | None) -> str:
    """A number with two decimals; empty if it is None or not finite.

    Example:
        >>> signed(-0.5), signed(None)
        ('−0.50', '')
    """
    if value is None or not math.isfinite(value):
        return ""
    return true_minus(f"{value:.2f}")


def shade_from(accuracies: np.ndarray) -> float:
    """The accuracy with the palest shade, just low enough that the lowest accuracy is still visible.

    Example:
        >>> shade_from(np.array([np.nan, 93.0]))
        80.0
    """
    lowest = np.nanmin(accuracies) if np.isfinite(accuracies).any() else 0.0
    return float(np.clip(10 * np.floor(lowest / 10) - 10, 0, 90))


def settings(table: object) -> list[tuple[str, str]]:
    """Nested tables as rows of dotted keys and values, at most MOST_SETTINGS."""
    try:
        return list(islice(_rows(table, ""), MOST_SETTINGS))
    except RecursionError:
        return [("–", "nested too deeply to show")]


def _rows(table: object, prefix: str) -> Iterator[tuple[str, str]]:
    if not isinstance(table, dict):
        return
    for key, value in table.items():
        name = f"{prefix}{key}"
        if isinstance(value, dict) and value:
            yield from _rows(value, f"{name}.")
        else:
            yield excerpt(name), _value(value)


def _value(value: object) -> str:
    shown = {True: "true", False: "false", None: "–"}.get(value) if isinstance(value, (bool, type(None))) else None
    return excerpt(value if shown is None else shown)
