"""A sweep = a base experiment + axes + draws, as strict TOML; its points are experiments."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from prer.address import Address
from prer.errors import InputError
from prer.migration import former_key, moved, present_key
from prer.runs.experiment import KEYS, Experiment, nested, parse_override, reading, tables_of
from prer.settings import check_keys, merged, typed
from prer.sweeps.distributions import Choice, Range, as_draw, as_list

OWN_KEYS = ("base", "budget", "random_seed", "draw", "axes", "draws")  # draw: the former name of random_seed
MOST_POINTS = 100_000
PATIENCE = 30  # about n log n draws find all of n equally likely values; 30 n draws miss none


@dataclass(frozen=True, kw_only=True)
class Sweep:
    """Many experiments: every combination of the axes, each with the same random settings.

    Attributes:
        shared: the settings of all points, as tables of an experiment, of which later ones override earlier ones.
        axes: the values of each key.
        draws: the distribution of each sampled key.
        budget: the number of random settings for each combination.
        random_seed: the seed of the random settings.
    """

    shared: Sequence[Mapping[str, Any]]
    axes: Mapping[str, Sequence[Any]]
    draws: Mapping[str, Choice | Range]
    budget: int = 1
    random_seed: int = 0

    @classmethod
    def read(cls, path: Path, overrides: Sequence[str] = ()) -> Sweep:
        """A sweep from a TOML file; an override applies to all points, and replaces an axis or draw of the same key."""
        with reading(path, "a sweep in TOML"):
            tables, given = moved(tables_of(path)), [parse_override(override) for override in overrides]
            own = {key: value for layer in given for key, value in layer.items() if key in OWN_KEYS}
            tables = merged(tables, own, {})
            return cls.parse(tables, _base(tables, path), given)

    @classmethod
    def parse(
        cls, tables: Mapping[str, Any], base: Mapping[str, Any] | None = None, given: Sequence[Mapping[str, Any]] = ()
    ) -> Sweep:
        """A sweep from its tables, over those of a base; settings that are `given` are neither axes nor sampled."""
        tables, fixed = moved(tables), {_same_key(key) for layer in given for key in _leaves(layer)}
        check_keys(tables, (*OWN_KEYS, *KEYS), "", {})
        axes = {key: as_list(value, f"axes.{key}") for key, value in _table(tables, "axes").items()}
        draws = {key: as_draw(value, f"draws.{key}") for key, value in _table(tables, "draws").items()}
        for key in axes.keys() & draws.keys():
            raise InputError(f"{key!r} is both in axes and in draws; remove it from one of them")
        numbers = {"budget": _budget(tables, bool(draws)), "random_seed": _random_seed(tables)}
        own = {key: value for key, value in tables.items() if key in KEYS}
        axes = {key: values for key, values in axes.items() if _same_key(key) not in fixed}
        draws = {key: draw for key, draw in draws.items() if _same_key(key) not in fixed}
        of_points = [{key: value for key, value in layer.items() if key not in OWN_KEYS} for layer in given]
        return cls(shared=[base or {}, own, *of_points], axes=axes, draws=draws, **numbers)

    @property
    def keys(self) -> tuple[str, ...]:
        """The settings that vary."""
        return (*self.axes, *self.draws)

    def points(self, stepped: Callable[[Iterable[Any], int], Iterable[Any]] = lambda each, _: each) -> list[Experiment]:
        """The distinct, validated experiments, in an order that never changes.

        Args:
            stepped: shows progress; it is given the settings of the points and their maximum number, and yields them.
        """
        most = math.prod(map(len, self.axes.values())) * (self.budget if self.draws else 1)
        if most > MOST_POINTS:
            raise InputError(
                f"the sweep has {most:,} points, more than the limit of {MOST_POINTS:,}; vary fewer settings"
            )
        found: dict[str, Experiment] = {}
        for number, settings in enumerate(stepped(self._settings(), most), 1):
            point = self._point(number, settings)
            found.setdefault(point.hash, point)
        return list(found.values())

    def _settings(self) -> Iterator[dict[str, Any]]:
        drawn = self._drawn() if self.draws else [{}]
        for values in itertools.product(*self.axes.values()):
            yield from (dict(zip(self.axes, values, strict=True)) | draws for draws in drawn)

    def _drawn(self) -> list[dict[str, Any]]:
        """As many distinct random settings as the budget asks for, or as exist."""
        found: dict[str, dict[str, Any]] = {}
        for index in itertools.count():
            if len(found) == self.budget or index > PATIENCE * (len(found) + 10):
                return list(found.values())
            values = {key: draw.value(self._bits(key, index)) for key, draw in self.draws.items()}
            found.setdefault(repr(values), values)
        raise AssertionError  # not reached: the loop is infinite

    def _bits(self, key: str, index: int) -> int:
        # The address holds only the index and the key, by its former name: the values of a setting do not change with
        # other settings, or if it is renamed.
        return int((Address((self.random_seed,)) / "sweep" / former_key(key) / index).bits(1)[0, 0])

    def _point(self, number: int, settings: Mapping[str, Any]) -> Experiment:
        try:
            return Experiment.layered([*self.shared, *(nested(key.split("."), v) for key, v in settings.items())])
        except InputError as error:
            chosen = ", ".join(f"{key}={value!r}" for key, value in settings.items())
            raise InputError(f"point {number} of the sweep ({chosen}): {error}") from None


def _base(tables: Mapping[str, Any], path: Path) -> dict[str, Any]:
    """The tables of a sweep's base experiment."""
    if "base" not in tables:
        return {}
    base = path.parent / typed(tables["base"], str, "base")
    if base.resolve() == path.resolve():
        raise InputError(f"base={tables['base']!r} is the sweep itself; name an experiment, or leave out base")
    with reading(base, "an experiment in TOML as base"):
        values = tables_of(base)
    check_keys(
        values, KEYS, f"{base}: ", dict.fromkeys(OWN_KEYS, "it is allowed only in sweeps, and a base is an experiment")
    )
    return values


def _table(tables: Mapping[str, Any], name: str) -> dict[str, Any]:
    """The table of axes or of draws, with its keys checked."""
    table = tables.get(name, {})
    if not isinstance(table, dict):
        raise InputError(f'{name!r} must be a table of settings, such as "learner.lr" = [0.1, 0.01]')
    others = {"name": "a name does not change the experiment"} | dict.fromkeys(
        OWN_KEYS, "it is a setting of the sweep itself"
    )
    # Whether a setting exists depends on the learner, so each point checks that.
    check_keys([key.split(".")[0] for key in table], [key for key in KEYS if key != "name"], f"{name}.", others)
    return {key if key.startswith("learner.") else present_key(key): value for key, value in table.items()}


def _budget(tables: Mapping[str, Any], draws: bool) -> int:
    if draws and "budget" not in tables:
        raise InputError("a sweep with draws needs their number for each combination of the axes, such as budget = 30")
    if "budget" in tables and not draws:
        raise InputError("budget applies only with [draws]; leave it out, or add draws")
    return _whole(tables, "budget", 1, 1)


def _same_key(key: str) -> str:
    """One name for all ways to write a setting."""
    return "learner.density.name" if key == "learner.density" else present_key(key)


def _random_seed(tables: Mapping[str, Any]) -> int:
    if "random_seed" in tables and "draw" in tables:
        raise InputError("draw is called random_seed now, and both are given; leave draw out")
    return _whole(tables, "draw" if "draw" in tables else "random_seed", 0, 0)


def _whole(tables: Mapping[str, Any], key: str, default: int, low: int) -> int:
    value = typed(tables.get(key, default), int, key)
    if value < low:
        raise InputError(f"{key}={value}: must be at least {low}")
    return value


def _leaves(tables: Mapping[str, Any], prefix: str = "") -> Iterator[str]:
    """The dotted keys of all values."""
    for key, value in tables.items():
        if isinstance(value, Mapping):
            yield from _leaves(value, f"{prefix}{key}.")
        else:
            yield prefix + key
