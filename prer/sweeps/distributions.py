"""Distributions of a sweep's random settings: a list or a range, sampled with 64 random bits."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from prer.errors import InputError
from prer.settings import check_keys, typed

LARGEST = 1e300  # so that high - low cannot overflow


@dataclass(frozen=True)
class Choice:
    """Uniform distribution over a list of values.

    Example:
        >>> Choice([32, 64, 128]).value(0), Choice([32, 64, 128]).value(2**64 - 1)
        (32, 128)
    """

    values: Sequence[Any]

    def value(self, bits: int) -> Any:
        """The value that these 64 bits select."""
        return self.values[bits * len(self.values) >> 64]


@dataclass(frozen=True)
class Range:
    """Uniform or log-uniform distribution from low to high, inclusive; over integers if both are integers.

    Example:
        >>> Range(5, 50).value(2**63), Range(1e-4, 1e-1, log=True).value(2**63)
        (28, 0.00316228)
    """

    low: int | float
    high: int | float
    log: bool = False

    def value(self, bits: int) -> int | float:
        """The value that these 64 bits select."""
        low, high, share = self.low, self.high, (bits >> 11) / 2**53
        if not (isinstance(low, int) and isinstance(high, int)):
            # Six digits are enough, and hide that logarithms differ between machines in the last digit.
            value = float(f"{self._between(high, share):.6g}")
        elif self.log:
            value = math.floor(self._between(high + 1, share))
        else:
            value = low + (bits * (high - low + 1) >> 64)
        return min(max(value, low), high)

    def _between(self, end: float, share: float) -> float:
        if self.log:
            return math.exp(math.log(self.low) + share * (math.log(end) - math.log(self.low)))
        return self.low + share * (end - self.low)


def as_draw(value: Any, key: str) -> Choice | Range:
    """The distribution that a value in a sweep's TOML describes."""
    return as_range(value, key) if isinstance(value, Mapping) else Choice(as_list(value, key))


def as_list(value: Any, key: str) -> list[Any]:
    """Check that a value is a list of one or more distinct values, and return it."""
    if not isinstance(value, list) or not value:
        dots = "; write a key with a dot in quotes" if isinstance(value, Mapping) else ""
        raise InputError(f"{key}={value!r}: expected a list of at least one value{dots}")
    if any(isinstance(v, Mapping) for v in value):
        raise InputError(f"{key} contains a table; name each of its settings with a dotted key such as 'learner.lr'")
    seen: set[Any] = set()
    for v in value:
        if _frozen(v) in seen:
            raise InputError(f"{key} contains {v!r} twice; give it once")
        seen.add(_frozen(v))
    return value


def _frozen(value: Any) -> Any:
    if isinstance(value, Mapping):
        return tuple((key, _frozen(v)) for key, v in value.items())
    return tuple(map(_frozen, value)) if isinstance(value, list) else value


def as_range(table: Mapping[str, Any], key: str) -> Range:
    """The range that a TOML table describes, validated."""
    if not {"low", "high"} <= set(table):
        raise InputError(f'{key} needs low and high; write a key with a dot in quotes, such as "learner.lr"')
    check_keys(table, ("low", "high", "log"), f"{key}.", {})
    for end in ("low", "high"):
        typed(table[end], int | float, f"{key}.{end}")
        if not abs(table[end]) <= LARGEST:
            raise InputError(f"{key}.{end}={str(table[end])[:20]}: expected a finite number")
    drawn = Range(table["low"], table["high"], typed(table.get("log", False), bool, f"{key}.log"))
    if drawn.low > drawn.high:
        raise InputError(f"{key}: low={drawn.low} is above high={drawn.high}; swap them")
    if drawn.log and drawn.low <= 0:
        raise InputError(f"{key}: a log-uniform range needs low above 0, not {drawn.low}; raise low, or leave out log")
    return drawn
