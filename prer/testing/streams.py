"""Small made-up streams."""

from __future__ import annotations

import numpy as np

from prer.streams.stream import Stream
from prer.streams.task import Scenario


def vectors(classes: int = 6, per_class: int = 40, scenario: Scenario = "task") -> Stream:
    """Vectors in well separated clouds, two classes in a task; labels are text."""
    rng = np.random.default_rng(0)
    x = np.concatenate([4 * rng.normal(size=5) + rng.normal(size=(per_class, 5)) for _ in range(classes)])
    return Stream.split(x, np.repeat([f"class {c}" for c in range(classes)], per_class), scenario=scenario)


def images(classes: int = 4, per_class: int = 24, scenario: Scenario = "task") -> Stream:
    """Images of bytes, two classes in a task; each class has its own bright rows."""
    rng = np.random.default_rng(0)
    x = rng.integers(0, 60, size=(classes * per_class, 8, 8), dtype=np.uint8)
    y = np.repeat(np.arange(classes), per_class)
    for c in range(classes):
        x[y == c, c : c + 3] = 250
    return Stream.split(x, y, scenario=scenario)


def domains(classes: int = 3, per_class: int = 40, scenario: Scenario = "task") -> Stream:
    """The same images in three domains: as they are, upside down, and one class again."""
    rng = np.random.default_rng(1)
    x = rng.integers(0, 60, size=(classes * per_class, 8, 8), dtype=np.uint8)
    y = np.repeat([f"class {c}" for c in range(classes)], per_class)
    for c in range(classes):
        x[y == f"class {c}", 2 * c : 2 * c + 2] = 250
    return Stream.of([(x, y), (x[:, ::-1], y), (x[y == "class 1"], y[y == "class 1"])], scenario=scenario)
