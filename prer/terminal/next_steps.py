"""Suggestions after a run."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Sequence
from dataclasses import fields
from pathlib import Path


def next_steps(settings: Sequence[str], options: Sequence[str], out: Path, new: Callable[[Sequence[str]], bool]) -> str:
    """Commands to try next, with the data and seeds of this run, so that the results can be compared.

    Args:
        settings: the settings given for this run.
        options: the command-line options given for it.
        out: the folder that holds its run folder.
        new: whether settings make a valid experiment that has not been run.
    """
    from prer.presets import CLOSED_FORMS

    tries = {
        (*_fitting(settings, "prer"), "learner.name=prer"): "PRER: remembers old tasks without stored samples",
        (
            *_fitting(settings, "naive"),
            "learner.name=naive",
        ): "the lower reference: training without any remedy against forgetting",
        (
            *_fitting(settings, "joint"),
            "learner.name=joint",
        ): "the upper reference: training on the data of all tasks together",
        (*settings, "learner.density=gaussian"): "a Gaussian for each class instead of the flow",
    }
    if not any(
        word.startswith("stream.kind") or word.removeprefix("learner.name=") in CLOSED_FORMS for word in settings
    ):
        closed = (*_scenario(_fitting(settings, "ranpac")), "learner.name=ranpac")
        tries[closed] = "a closed form, if nobody tells the task: fast, and often better on small data"
    steps = {shlex.join(["prer", "run", *words, *options]): what for words, what in tries.items() if new(words)}
    if not any(word.startswith("stream.data=") for word in settings):
        steps["prer run stream.data=PATH"] = "your own data: .npz, images, CSV"
    steps[f"prer show {shlex.quote(str(out))}/*"] = "all results, one line each"
    lines = [f"  {command}\n      {what}" for command, what in steps.items()]
    return "\n".join(["What to try next (if you use scripts/run, write scripts/run instead of prer):", *lines])


def _scenario(settings: Sequence[str]) -> list[str]:
    """The settings in the scenario "class"."""
    return [*(word for word in settings if not word.startswith("stream.scenario")), "stream.scenario=class"]


def _fitting(settings: Sequence[str], learner: str) -> list[str]:
    """The settings without those that this learner does not have."""
    from prer.learners import LEARNERS, Learner  # here, so that fetching data does not import torch
    from prer.presets import CLOSED_FORMS

    unused = {f.name for f in fields(Learner)} if learner in CLOSED_FORMS else set()
    own = {f"learner.{f.name}" for f in fields(LEARNERS[learner]) if f.name not in unused}
    keys = [word.partition("=")[0].strip().split(".") for word in settings]
    return [word for key, word in zip(keys, settings, strict=True) if key[0] != "learner" or ".".join(key[:2]) in own]
