"""Autosave: writes the checkpoint of a run while it goes, at intervals or when it is told to stop."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Any

import torch

from prer.errors import InputError, Interrupted, RunError
from prer.kernels.registry import made_by
from prer.learners.base import Learner
from prer.runs.checkpoint import Checkpoint, Pace, Saved
from prer.runs.experiment import modernised
from prer.signals import default_handlers, on_stop
from prer.streams.task import Task
from prer.text import shown
from prer.training.phase import Phase, check_finite

LONG = 0.2  # seconds; after an epoch this long its state is copied, so that it can be saved at any moment


class Autosave:
    """Saves a run that is under way, and lets it go on later.

    Args:
        checkpoint: where to.
        context: what the run depends on; a checkpoint of another context is refused.
        note: plain values to keep beside, asked for whenever a state is copied.
        secure: called before a checkpoint is written; what was noted must then be safe.
        force: take a checkpoint of another context nevertheless.
    """

    def __init__(
        self,
        checkpoint: Checkpoint,
        context: Mapping[str, Any],
        note: Callable[[], dict[str, Any]] = dict,
        secure: Callable[[], None] = lambda: None,
        force: bool = False,
    ) -> None:
        self.checkpoint, self.context, self.pace = checkpoint, dict(context), Pace()
        self.note, self.secure = note, secure
        self.learner: Learner | None = None
        self.saved: Saved | None = None  # what would be written now
        self.writing = False
        self.told: int | None = None  # the signal that came
        self.before = checkpoint.read()
        self.forced = self._differences() if self.before else []
        if self.forced and not force:
            raise InputError(
                f"{checkpoint.path} was made otherwise: {'; '.join(self.forced)}; undo that, delete it to begin anew, "
                "or resume with --force, and the result may be another"
            )
        self.begin = time.perf_counter() - (self.before.about["elapsed"] if self.before else 0.0)

    def _differences(self) -> list[str]:
        """What was otherwise when the checkpoint was made."""
        assert self.before is not None
        about = self.before.about
        shape = {"tasks": int, "elapsed": float, "ledger": dict, "notes": dict, "seconds": dict, "context": dict}
        wrong = [key for key, kind in shape.items() if type(about.get(key)) is not kind]
        if not wrong:
            times = {"elapsed": [about["elapsed"]], "seconds": about["seconds"].values()}
            wrong = [key for key, of in times.items() if any(type(t) is not float or not 0 <= t < 1e12 for t in of)]
        if wrong:
            raise InputError(f"{self.checkpoint.path} has no sense in {', '.join(wrong)}; delete it to begin anew")
        return list(differences(modernised(about["context"]), self.context))

    def restore(self, learner: Learner, learned: Sequence[Task]) -> dict[str, Any]:
        """Put a learner that has just started where it was; returns what was known of the run then."""
        assert self.before is not None
        before, self.before = self.before, None
        try:
            learner.restore(learned, before.state, before.about["notes"])
            learner.seconds_.update(before.about["seconds"])
        except (RuntimeError, KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
            raise InputError(
                f"{self.checkpoint.path} does not fit its experiment ({error}); delete it to begin anew"
            ) from None
        learner.trained_ = before.phases
        self.follow(learner, before.about)
        assert self.saved is not None
        self.saved.state, self.saved.phases = before.state, learner.trained_
        return before.about

    def follow(self, learner: Learner, known: dict[str, Any]) -> None:
        """Note where the run stands before it learns a task."""
        self.learner = learner
        learner.after_epoch_ = self.after_epoch
        state = {name: tensor.clone() for name, tensor in learner.state().items()}
        self.saved = Saved(known | self.note(), state, learner.trained_)

    def after_epoch(self, phase: str, under_way: Phase, done: int, epochs: int, seconds: float) -> None:
        """Copy what a phase has trained, where that may be asked for, and save it when it is time."""
        assert self.saved is not None
        due = self.pace.due() or self.told is not None
        if due or done == epochs or seconds > LONG:
            # In one stroke, for a signal may come before or after any: the state and what was noted belong together.
            phases = self.saved.phases | {phase: under_way.copied(done)}
            self.saved = replace(self.saved, about=self.saved.about | self.note(), phases=phases)
        if due:
            self.save()

    def save(self) -> None:
        """Write a checkpoint of what is known."""
        if self.learner is None or self.saved is None:
            return
        begin, self.writing = time.monotonic(), True
        try:
            for phase, trained in self.saved.phases.items():
                check_finite(trained.tensors.values(), len(self.learner.tasks_), phase, trained.epochs)
            now = {"elapsed": time.perf_counter() - self.begin, "seconds": dict(self.learner.seconds_)}
            about = self.saved.about | {"context": self.context} | now
            self.secure()
            self.checkpoint.write(Saved(about, self.saved.state, self.saved.phases))
        except OSError as error:
            raise RunError(
                f"cannot write {self.checkpoint.path}: {error.strerror}; what was saved before is whole"
            ) from None
        finally:
            self.writing = False
        self.pace.wrote(begin)
        if self.told:
            raise Interrupted(self.told)

    def listening(self) -> AbstractContextManager[None]:
        """Save and stop when Ctrl-C or SIGTERM comes; when another one comes, end at once."""

        def stop(number: int) -> None:
            default_handlers()
            self.told = number
            if not self.writing and not _capturing():  # else it waits for the checkpoint's or the epoch's end
                self.save()  # a whole one of the last epoch that was copied: none is half done
                raise Interrupted(number)

        return on_stop(stop)


def _capturing() -> bool:
    """Whether a GPU records a step right now; nothing may then be copied from it."""
    return torch.cuda.is_initialized() and torch.cuda.is_current_stream_capturing()


def differences(then: Mapping[str, Any], now: Mapping[str, Any], above: str = "") -> Iterator[str]:
    """What is not the same in two nested tables, in words.

    Example:
        >>> list(differences({"torch": "2.13", "learner": {"lr": 1}}, {"torch": "2.14", "learner": {"lr": 1}}))
        ["torch was '2.13' and is '2.14'"]
    """
    for key in dict.fromkeys([*then, *now]):
        a, b = then.get(key), now.get(key)
        if isinstance(a, Mapping) and isinstance(b, Mapping):
            yield from differences(a, b, f"{above}{key}.")
        elif a != b:
            yield f"{shown(above + str(key))} was {shown(repr(a), 100)} and is {shown(repr(b), 100)}"


def platform_of(device: str, phases: Collection[str], large_maps: bool) -> dict[str, Any]:
    """What decides the last bits of a result, and the path that is taken there."""
    cuda = device == "cuda"
    # A CPU has kernels for the flow and for large maps only.
    used = cuda or large_maps or bool({"flow", "joint"} & set(phases))
    by = made_by(device)
    return {
        "torch": torch.__version__,
        "device": device,
        "processor": torch.cuda.get_device_name() if cuda else torch.backends.cpu.get_cpu_capability(),
        "threads": torch.get_num_threads(),
        "steps": "captured" if cuda else "plain",
        "kernels": "torch's" if not used or by is None else "ours" if cuda else by,
    }
