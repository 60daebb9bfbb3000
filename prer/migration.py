"""Settings as earlier versions wrote them, so that their files and folders are still found and read.

A setting that is renamed or moved is listed here. The hash of an experiment uses the former names, so that its folder
keeps its name.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from prer.errors import InputError

MOVED = {"stream.draw": "stream.shuffle_seed"}
# Settings of PRER that are in [learner.density] now, with their names there.
DENSITY = {"epochs_flow": "epochs", "lr_flow": "lr", "decay_flow": "decay"} | {
    name: name for name in ("levels", "blocks", "condition", "condition_size", "class_prior", "jitter", "clamp")
}
# Settings of PRER that only `prer-variant` has now, with the values that PRER stands for.
SWITCHES: dict[str, Any] = {
    "schedule": "separate",
    "distance": "l2",
    "augment": True,
    "sparsity_on": "z",
    "restart": False,
    "norm": "batch",
    "one_hot": False,
    "bounded": True,
    "permutation": "swapping",
}
PRER, VARIANT = "prer", "prer-variant"


def moved(tables: Mapping[str, Any], learner: str = "", density: str = "") -> dict[str, Any]:
    """An experiment's tables with every setting where it is now; those of a learner only if its name is given.

    `density` is the kind that another table sets.

    Example:
        >>> moved({"stream": {"data": "digits", "draw": 3}, "learner": {"blocks": 4}}, "prer")
        {'stream': {'data': 'digits', 'shuffle_seed': 3}, 'learner': {'density': {'blocks': 4}}}
    """
    result = {key: dict(value) if isinstance(value, Mapping) else value for key, value in tables.items()}
    for old, new in MOVED.items():
        (table, key), (_, name) = old.split("."), new.split(".")
        if isinstance(result.get(table), dict) and key in result[table]:
            if name in result[table]:
                raise _both(old, new)
            result[table][name] = result[table].pop(key)
    if isinstance(result.get("learner"), dict):
        result["learner"] = present(result["learner"], learner, density)
    return result


def moved_run(tables: Mapping[str, Any]) -> dict[str, Any]:
    """The tables of a run with every setting where it is now, and with the present name of its learner."""
    table = tables.get("learner")
    name = table.get("name", PRER) if isinstance(table, Mapping) else ""
    result = moved(tables, name)
    if name == PRER and isinstance(result.get("learner"), dict):
        name, result["learner"] = present_name(result["learner"], name)
        result["learner"] |= {"name": name} if "name" in result["learner"] else {}
    return result


def present(table: Mapping[str, Any], name: str, density: str = "") -> dict[str, Any]:
    """A learner's table with every setting where it is now; the density is a table, even if given by its name.

    Example:
        >>> present({"density": "flow", "blocks": 4, "lr_flow": 0.01}, "prer")
        {'density': {'name': 'flow', 'lr': 0.01, 'blocks': 4}}
    """
    result = dict(table)
    if name not in (PRER, VARIANT):
        return result
    own = result.pop("density", {})
    own = {"name": own} if isinstance(own, str) else own
    if not isinstance(own, Mapping):
        return result | {"density": own}  # refused later, with what is expected
    found = {key: result.pop(key) for key in DENSITY if key in result}
    if (density or own.get("name", "flow")) != "flow":
        found = {}  # settings of a flow that this density never used
    for key in found:
        if DENSITY[key] in own:
            raise _both(f"learner.{key}", f"learner.density.{DENSITY[key]}")
    own = dict(own) | {DENSITY[key]: value for key, value in found.items()}
    return result | ({"density": own} if own else {})


def present_name(table: Mapping[str, Any], name: str) -> tuple[str, dict[str, Any]]:
    """The name and the table of a learner; PRER with a switch of the ablation is `prer-variant` now."""
    if name != PRER:
        return name, dict(table)
    same = {key for key, default in SWITCHES.items() if type(table.get(key)) is type(default) and table[key] == default}
    rest = {key: value for key, value in table.items() if key not in same}
    return (VARIANT if any(key in SWITCHES for key in rest) else name), rest


def present_key(key: str) -> str:
    """The dotted name of a setting now."""
    table, _, name = key.partition(".")
    return f"learner.density.{DENSITY[name]}" if table == "learner" and name in DENSITY else MOVED.get(key, key)


def former(table: Mapping[str, Any]) -> dict[str, Any]:
    """A learner's table, with its name, under the names that settings had before they moved."""
    result = dict(table)
    if result["name"] not in (PRER, VARIANT):
        return result
    density = dict(result.pop("density", {}))
    old = {key: density.pop(new) for key, new in DENSITY.items() if new in density}
    kind = density.pop("name", "flow")
    return result | old | {"name": PRER, "density": {"name": kind} | density if density else kind}


def former_key(key: str) -> str:
    """The dotted name that a setting of the density had."""
    old = {f"learner.density.{new}": f"learner.{name}" for name, new in DENSITY.items()}
    return old.get(key, key)


def _both(old: str, new: str) -> InputError:
    return InputError(f"{old} is called {new} now, and both are given; leave {old} out")
