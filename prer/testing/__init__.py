"""Checks for a learner of your own: the promises that every learner of this package keeps.

from prer.testing import check_learner
check_learner(MyLearner)

Each check trains small networks on small made-up data on the CPU; all of them take some seconds.
"""

from __future__ import annotations

import functools
import random
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch

from prer.learners import Learner
from prer.learners.registry import registered
from prer.streams.task import Scenario
from prer.testing.checks import TASK_GIVEN, Suite

__all__ = ["check_learner", "learner_checks"]


def check_learner(cls: type[Learner], **settings: Any) -> None:
    """Run all checks of a learner; raise an AssertionError that says which promises it breaks, and how.

    Args:
        cls: a subclass of `Learner`; it need not be registered.
        settings: settings of the learner in all checks; the others are small enough to be quick.

    Example:
        >>> from prer import LWF
        >>> check_learner(LWF, form="classic")
    """
    broken: list[AssertionError] = []
    for _, check in learner_checks(cls, **settings):
        try:
            check()
        except AssertionError as error:
            broken.append(error)
    if len(broken) == 1:
        raise broken[0]
    if broken:
        raise AssertionError("\n".join([f"{len(broken)} promises are broken:", *map(str, broken)])) from broken[0]


def learner_checks(cls: type[Learner], **settings: Any) -> Iterator[tuple[str, Callable[[], None]]]:
    """Yield the name and the function of each check, for `pytest.mark.parametrize`.

    Most checks are made twice: with the task given, and in the scenario "class".

    Example:
        >>> from prer import Naive
        >>> checks = dict(learner_checks(Naive))
        >>> checks["is_deterministic"]()
    """
    scenarios: tuple[Scenario, ...] = ("task", "class")
    for scenario in scenarios:
        suite, where = Suite(cls, settings, scenario), "" if scenario == "task" else f" (scenario {scenario})"
        for name, check in vars(Suite).items():
            if not name.startswith("_") and (scenario == "task" or name not in TASK_GIVEN):
                promise = check.__doc__.rstrip(".") + where
                yield name + where, functools.partial(_run, cls, functools.partial(check, suite), promise)


def _run(cls: type[Learner], check: Callable[[], None], promise: str) -> None:
    """Run a check with the learner registered, and leave global generators as they were."""
    states = random.getstate(), np.random.get_state(), torch.get_rng_state()
    try:
        with registered(cls):
            check()
    except Exception as error:
        how = str(error) if isinstance(error, AssertionError) else f"{type(error).__name__}: {error}"
        raise AssertionError(f"{cls.__name__} breaks a promise of learners. {promise}: {how}") from error
    finally:
        random.setstate(states[0])
        np.random.set_state(states[1])
        torch.set_rng_state(states[2])
