"""Settings of learners as earlier versions wrote them, so that their files and folders are still found and read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from prer.errors import InputError
from prer.learners.prer import PRER
from prer.learners.variants import PRERVariant

# Settings of PRER that have moved to [learner.density], with their present names there.
DENSITY = {"epochs_flow": "epochs", "lr_flow": "lr", "decay_flow": "decay"} | {
    name: name for name in ("levels", "blocks", "condition", "condition_size", "class_prior", "jitter", "clamp")
}
# Settings that PRER no longer has, with the values that it stands for.
SWITCHES = {f.name: f.default for f in fields(PRERVariant) if f.name not in {own.name for own in fields(PRER)}}


def present(table: Mapping[str, Any], name: str) -> dict[str, Any]:
    """A learner's table with every setting where it is now; the density is a table, even if given by its name.

    Example:
        >>> present({"density": "flow", "blocks": 4, "lr_flow": 0.01}, "prer")
        {'density': {'name': 'flow', 'lr': 0.01, 'blocks': 4}}
    """
    result = dict(table)
    if name not in (PRER.name, PRERVariant.name):
        return result
    density = result.pop("density", {})
    density = {"name": density} if isinstance(density, str) else density
    if not isinstance(density, Mapping):
        return result | {"density": density}  # refused later, with what is expected
    moved = {key: result.pop(key) for key in DENSITY if key in result}
    if density.get("name", "flow") != "flow":
        moved = {}  # settings of a flow that this density never used
    for key in moved:
        if DENSITY[key] in density:
            old, new = f"learner.{key}", f"learner.density.{DENSITY[key]}"
            raise InputError(f"{old} is called {new} now, and both are given; leave {old} out")
    density = dict(density) | {DENSITY[key]: value for key, value in moved.items()}
    return result | ({"density": density} if density else {})


def present_name(table: Mapping[str, Any], name: str) -> tuple[str, dict[str, Any]]:
    """The name and the table of a learner; PRER with a switch of the ablation is `prer-variant` now."""
    if name != PRER.name:
        return name, dict(table)
    rest = {key: value for key, value in table.items() if key not in SWITCHES or value != SWITCHES[key]}
    return (PRERVariant.name if any(key in SWITCHES for key in rest) else name), rest


def former(table: Mapping[str, Any]) -> dict[str, Any]:
    """A learner's table, with its name, under the names that settings had before they moved."""
    result = dict(table)
    if result["name"] not in (PRER.name, PRERVariant.name):
        return result
    density = dict(result.pop("density", {}))
    old = {key: density.pop(new) for key, new in DENSITY.items() if new in density}
    kind = density.pop("name", "flow")
    return result | old | {"name": PRER.name, "density": {"name": kind} | density if density else kind}
