"""Settings: dataclass fields with a help text and a range, and the validation of their values."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from functools import cache
from typing import Any, ClassVar, Literal, Self, get_args, get_origin, get_type_hints

from prer.errors import InputError
from prer.text import did_you_mean

Auto = Literal["auto"]
# The schema version is part of every experiment's hash: raise it when a default changes. A new setting needs no new
# version, and neither does one that is renamed, if `migration.py` lists it.
SCHEMA = 2


def setting(default: Any, help: str, *, low: float | None = None, high: float | None = None) -> Any:
    """A dataclass field for a setting, with its default, help text and range."""
    return field(default=default, metadata={"help": help, "low": low, "high": high})


@dataclass(frozen=True, kw_only=True)
class Options:
    """Settings in a table of their own, whose `name` selects the kind: `[learner.density]` with `name = "flow"`.

    A direct subclass is a family; its subclasses with a `name` are the kinds that can be selected.
    """

    name: ClassVar[str]
    default: ClassVar[str]  # the kind of a table without a name
    kinds: ClassVar[dict[str, type[Options]]]

    def __init_subclass__(cls) -> None:
        """Add a kind to its family."""
        if Options in cls.__bases__:
            cls.kinds = {}
        elif "name" in vars(cls):
            cls.kinds[cls.name] = cls

    @classmethod
    def read(cls, value: Any, key: str) -> Self:
        """The settings from a name, a table or an object of this family, with their values checked."""
        if isinstance(value, cls):
            return replace(
                value, **checked(type(value), {f.name: getattr(value, f.name) for f in fields(value)}, f"{key}.")
            )
        table = dict(value) if isinstance(value, Mapping) else {"name": value}
        name = table.pop("name", cls.default)
        if not isinstance(name, str) or name not in cls.kinds:
            raise InputError(f"{key}={name!r}: choose one of {', '.join(cls.kinds)}")
        if table and not fields(cls.kinds[name]):
            raise InputError(f"{key} is {name!r}, which has no settings; leave out {', '.join(map(str, table))}")
        return build(cls.kinds[name], table, key, {})


def families(kind: type) -> dict[str, str]:
    """The settings of a class that are `Options`, each with the kind that it has by default."""
    return {f.name: f.default.default for f in fields(kind) if isinstance(f.default, Options)}


def named(table: Mapping[str, Any], of: Iterable[str]) -> dict[str, Any]:
    """A table in which these settings are tables, even where they are given by the name of their kind."""
    return {key: {"name": value} if key in of and isinstance(value, str) else value for key, value in table.items()}


def merged(base: Mapping[str, Any], over: Mapping[str, Any], of: Mapping[str, str]) -> dict[str, Any]:
    """The tables of `base`, recursively updated with those of `over`.

    Args:
        base: the tables to update.
        over: the tables that take precedence.
        of: settings that are `Options`, with their default kind. Another kind replaces the whole table, since settings
            of one kind have no meaning for another.
    """
    result = dict(base)
    for key, value in over.items():
        before = result.get(key, {})
        if not isinstance(value, Mapping) or not isinstance(before, Mapping):
            result[key] = value
        elif key in of and "name" in value and value["name"] != before.get("name", of[key]):
            result[key] = dict(value)
        else:
            result[key] = merged(before, value, of)
    return result


def build(kind: type, table: Mapping[str, Any], prefix: str, others: Mapping[str, str]) -> Any:
    """Build a settings object from a table and validate it; `others` maps keys that belong elsewhere to a hint."""
    check_keys(table, [f.name for f in fields(kind)], f"{prefix}.", others)
    return kind(**checked(kind, table, f"{prefix}."))


def values_of(settings: Any) -> dict[str, Any]:
    """All settings as plain values: lists for tuples, a table for `Options`."""
    return {f.name: _plain(getattr(settings, f.name), values_of) for f in fields(settings)}


def chosen(settings: Any) -> dict[str, Any]:
    """The settings that differ from their defaults, as plain values."""
    values = {f.name: (getattr(settings, f.name), f.default) for f in fields(settings)}
    return {name: _plain(value, chosen) for name, (value, default) in values.items() if value != default}


def _plain(value: Any, table_of: Callable[[Any], dict[str, Any]]) -> Any:
    if isinstance(value, Options):
        return {"name": value.name} | table_of(value)
    return [_plain(v, table_of) for v in value] if isinstance(value, tuple) else value


def checked(kind: type, values: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Convert values to the types of their settings and check their ranges."""
    known, hints = {f.name: f for f in fields(kind)}, _hints(kind)
    right = {key: typed(value, hints[key], prefix + key) for key, value in values.items()}
    for key, value in right.items():
        _in_range(value, known[key].metadata, prefix + key)
    return right


_hints = cache(get_type_hints)  # it compiles every annotation, and a sweep calls it a hundred thousand times


def check_keys(keys: Iterable[str], known: Iterable[str], prefix: str, others: Mapping[str, str]) -> None:
    """Raise an error for an unknown key, with a suggestion."""
    for key in keys:
        if key not in known and key in others:
            raise InputError(f"unknown key {prefix + key!r}: {others[key]}")
        if key not in known:
            close = did_you_mean(key, [*known, *others])
            raise InputError(f"unknown key {prefix + key!r}{close if '?' in close else did_you_mean(key, known)}")


def typed(value: Any, kind: Any, key: str) -> Any:
    """Convert a value to the type of its setting, or raise an error that names the expected type."""
    if isinstance(kind, type) and issubclass(kind, Options):
        return kind.read(value, key)
    if get_origin(kind) is Literal:
        if value in get_args(kind):
            return value
        choices = ", ".join(str(choice) or "''" for choice in get_args(kind))
        raise InputError(f"{key}={value!r}: choose one of {choices}")
    if kind in (int | Auto, float | Auto):
        number = int if kind == int | Auto else float
        if value == "auto" or type(value) in (int, number):
            return value if value == "auto" else number(value)
        raise InputError(f"{key}={value!r}: expected {'a whole number' if number is int else 'a number'} or auto")
    if get_origin(kind) is tuple and isinstance(value, (list, tuple)):
        return tuple(typed(v, get_args(kind)[0], f"{key}[{i}]") for i, v in enumerate(value))
    wanted = kind if isinstance(kind, type) else get_args(kind)
    if wanted is float and type(value) is int:
        if abs(value) > sys.float_info.max:
            raise InputError(f"{key} is too large for a number; choose a smaller one")
        return float(value)
    if get_origin(kind) is not tuple and isinstance(value, wanted) and (kind is bool or not isinstance(value, bool)):
        if isinstance(value, str) and not value.isprintable() and _not_text(value):
            raise InputError(f"{key}={value!r}: this is not text in UTF-8")
        return value
    words = {int: "a whole number", float: "a number", str: "a string", bool: "true or false", str | int: "a label"}
    raise InputError(f"{key}={value!r}: expected {words.get(kind, 'a list')}")


def _not_text(value: str) -> bool:
    return any("\ud800" <= character <= "\udfff" for character in value)


def _in_range(value: Any, metadata: Mapping[str, Any], key: str) -> None:
    low, high = metadata.get("low"), metadata.get("high")
    if value == "auto":
        return
    for v in value if isinstance(value, tuple) else (value,):
        if isinstance(v, float) and not abs(v) < float("inf"):
            raise InputError(f"{key}={v}: expected a finite number")
        if (low is not None and v < low) or (high is not None and v > high):
            span = f"{low} or more" if high is None else f"from {low} to {high}"
            raise InputError(f"{key}={v}: take {span}")
    if isinstance(value, tuple) and not value and low is not None:
        raise InputError(f"{key}=[]: give one value at least")
