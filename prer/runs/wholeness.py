"""Whether a result, which anybody may have written, has the expected types and shapes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def is_whole(result: dict[str, Any]) -> bool:
    """Whether the values of a result that are shown have the expected types and shapes."""
    numbers = [result["seconds"]["total"], result["memory_floats"][-1], result["memory_samples"][-1]]
    perhaps = [result[key][part] for key in ("accuracy", "bwt") for part in ("mean", "std")]
    perhaps += [v for R in result["matrix"] for row in R for v in row]
    numbers += [v for v in perhaps if v is not None]
    tasks = {len(R) for R in result["matrix"]} | {len(row) for R in result["matrix"] for row in R}
    texts = (result["learner"], result["stream"])
    return (
        all(isinstance(n, (int, float)) and abs(n) < 1e18 for n in numbers)
        and all(isinstance(t, str) for t in texts)
        and len(tasks) == 1
        and 0 not in tasks
        and len(result["matrix"]) == len(result["seeds"])
        and _fits_scenario(result, *tasks)
    )


def _fits_scenario(result: dict[str, Any], tasks: int) -> bool:
    """Whether the keys that only later versions write have the expected types and shapes, as far as they exist."""
    scenario = result.get("scenario", "task")
    main = ("final_accuracy", "average_incremental_accuracy")
    metrics = [result[key] for key in (*main, "final_accuracy_task_given") if result.get(key) is not None]
    return (
        scenario in ("task", "class", "domain")
        and all(_is_amount(metric[part]) for metric in metrics for part in ("mean", "std"))
        and ("memory_bytes" not in result or _all(_is_size, result["memory_bytes"], tasks))
        and (scenario != "class" or (all(result[key] for key in main) and _fits_classes(result, tasks)))
    )


def _fits_classes(result: dict[str, Any], tasks: int) -> bool:
    """Whether the results about classes, in the scenario "class", have the expected types and shapes."""
    classes, by_label, seeds = result["classes"], result["class_accuracy"], len(result["seeds"])
    return (
        len(classes) > 0
        and _all(lambda label: type(label) in (int, str), classes, len(classes))
        and list(by_label) == [str(label) for label in classes]
        and _all(_is_share, list(by_label.values()), len(classes), seeds)
        and _all(_is_share, result["matrix_task_given"], seeds, tasks, tasks)
        and _all(_is_count, result["confusion"], seeds, len(classes), len(classes))
    )


def _all(fits: Callable[[Any], bool], values: Any, length: int, *inner: int) -> bool:
    """Whether nested lists have these lengths, and all their values fit."""
    if not isinstance(values, list) or len(values) != length:
        return False
    return all(_all(fits, value, *inner) for value in values) if inner else all(map(fits, values))


def _is_amount(value: Any) -> bool:
    return value is None or (type(value) in (int, float) and abs(value) < 1e18)


def _is_share(value: Any) -> bool:
    return value is None or (type(value) in (int, float) and 0 <= value <= 100)


def _is_count(value: Any) -> bool:
    return type(value) is int and 0 <= value < 2**40  # sums of counts fit into 64 bits


def _is_size(value: Any) -> bool:
    return value is None or (type(value) is int and 0 <= value < 1e18)
