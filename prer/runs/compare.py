"""Compare methods on a user's own data: which lessons are made of it, and which method to take."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

METHODS = ("prer", "ncm", "slda", "ranpac", "naive", "joint")
REFERENCES = ("naive", "joint")  # does nothing against forgetting; keeps all data
LESSONS = 5  # the most
CLOSE = 1.0  # points; within them, or within one standard deviation, the smaller memory decides
FAR = 5.0  # points; a method that is further behind is not offered for its smaller memory
WORTH = 3.0  # points by which joint has to be better before it is recommended to keep the data


@dataclass(frozen=True)
class Compared:
    """What one method reached.

    Attributes:
        name: the learner's name.
        accuracy: mean final accuracy over all classes, in per cent.
        std: its standard deviation over seeds; None for one seed.
        bytes: what one seed keeps of the past.
        samples: raw samples that it keeps.
        seconds: training and tests of all seeds.
    """

    name: str
    accuracy: float
    std: float | None
    bytes: int
    samples: int
    seconds: float

    @classmethod
    def of(cls, name: str, result: Mapping[str, Any]) -> Compared:
        """From the contents of a `result.json`."""
        final = result["final_accuracy"]
        kept = (result["memory_bytes"][-1], result["memory_samples"][-1])
        return cls(name, final["mean"], final["std"], *kept, result["seconds"]["total"])


def classes_per_lesson(classes: int) -> int:
    """Number of classes in a lesson if the user does not say: up to five lessons, of two classes where possible.

    Example:
        >>> [classes_per_lesson(classes) for classes in (2, 3, 4, 10, 26)]
        [1, 1, 2, 2, 6]
    """
    lessons = classes if classes <= 3 else min(LESSONS, classes // 2)
    return math.ceil(classes / max(lessons, 1))


def choice(found: Sequence[Compared]) -> Compared | None:
    """The method to take: the most accurate one, or one that is as good and keeps far less; None if there is none."""
    rivals = [method for method in found if method.name not in REFERENCES]
    if not rivals:
        return None
    best = max(rivals, key=lambda method: method.accuracy)
    enough = best.accuracy - max(CLOSE, best.std or 0.0)
    close = [m for m in rivals if m.accuracy >= enough and m.bytes <= best.bytes / 2]
    return min(close, key=lambda method: method.bytes) if close else best


def _smaller(found: Sequence[Compared], taken: Compared) -> Compared | None:
    """The best of the methods that keep a tenth at most and are not far behind; None if there is none."""
    rivals = [m for m in found if m.name not in REFERENCES and m.bytes <= taken.bytes / 10]
    near = [method for method in rivals if method.accuracy >= taken.accuracy - FAR]
    return max(near, key=lambda method: method.accuracy, default=None)


def advice(found: Sequence[Compared], size: Mapping[str, str]) -> str:
    """Which method to take, and why, in words.

    Args:
        found: what each method reached.
        size: the bytes of each method's memory, as text.
    """
    taken = choice(found)
    if taken is None:
        return ""
    by_name = {method.name: method for method in found}
    best = max((m for m in found if m.name not in REFERENCES), key=lambda method: method.accuracy)
    keeps = f"{size[taken.name]} and {taken.samples or 'no'} samples"
    said = [f"Take {taken.name}: {taken.accuracy:.1f} % correct after the last lesson; it keeps {keeps}."]
    smaller = _smaller(found, taken)
    if best is not taken:
        said.append(f"{best.name} reaches {best.accuracy:.1f} %, but keeps {size[best.name]}.")
    elif smaller is not None:
        said.append(
            f"If that is too much to keep, take {smaller.name}: {smaller.accuracy:.1f} %, {size[smaller.name]}."
        )
    prer, joint = by_name.get("prer"), by_name.get("joint")
    if prer is not None and prer not in (taken, best, smaller):
        said.append(f"prer reaches {prer.accuracy:.1f} % here.")
    if joint is not None and joint.accuracy >= taken.accuracy + WORTH:
        said.append(f"If you may keep all data, train on all of it instead (joint): {joint.accuracy:.1f} %.")
    return " ".join(said)
