"""Autosave: writes a run's checkpoint during training, at intervals and on a stop signal."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
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

LONG = 0.2  # seconds; the state is copied after every longer epoch, so that a signal can save it at any time


class Autosave:
    """Saves a run during training, so that it can be resumed.

    Args:
        checkpoint: the checkpoint to write.
        context: what the result depends on; a checkpoint with another context is refused.
        note: returns plain values to save with a state; called whenever a state is copied.
        secure: called before a checkpoint is written; must flush to disk what `note` refers to.
        force: accept a checkpoint with another context anyway.
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
        self.saved: Saved | None = None  # content of the next checkpoint
        self.writing = False
        self.received: int | None = None  # the signal that was received
        self.before = checkpoint.read()
        self.forced = self._differences() if self.before else []
        if self.forced and not force:
            raise InputError(
                f"{checkpoint.path} was written by a different setup: {'; '.join(self.forced)}; undo that, delete it "
                "to start over, or resume with --force, which may change the result"
            )
        self.begin = time.perf_counter() - (self.before.about["elapsed"] if self.before else 0.0)

    def _differences(self) -> list[str]:
        """Validate the checkpoint; return the differences between its context and the current one."""
        assert self.before is not None
        about = self.before.about
        shape = {"tasks": int, "elapsed": float, "ledger": dict, "notes": dict, "seconds": dict, "context": dict}
        wrong = [key for key, kind in shape.items() if type(about.get(key)) is not kind]
        if not wrong:
            times = {"elapsed": [about["elapsed"]], "seconds": about["seconds"].values()}
            wrong = [key for key, of in times.items() if any(type(t) is not float or not 0 <= t < 1e12 for t in of)]
        if wrong:
            raise InputError(
                f"{self.checkpoint.path} has invalid values for {', '.join(wrong)}; delete it to start over"
            )
        return list(differences(modernised(about["context"]), self.context))

    def restore(self, learner: Learner, learned: Sequence[Task]) -> dict[str, Any]:
        """Restore a newly started learner from the checkpoint; return the checkpoint's plain values."""
        assert self.before is not None
        before, self.before = self.before, None
        try:
            learner.restore(learned, before.state, before.about["notes"])
            learner.loop_.seconds.update(before.about["seconds"])
        except (RuntimeError, KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
            raise InputError(
                f"{self.checkpoint.path} does not fit its experiment ({error}); delete it to start over"
            ) from None
        learner.loop_.trained = before.phases
        self.follow(learner, before.about)
        assert self.saved is not None
        self.saved.state, self.saved.phases = before.state, learner.loop_.trained
        return before.about

    def follow(self, learner: Learner, known: dict[str, Any]) -> None:
        """Copy the state of the learner before it learns a task, and hook into its epochs."""
        self.learner = learner
        learner.loop_.after_epoch = self.after_epoch
        state = {name: tensor.clone() for name, tensor in learner.state().items()}
        self.saved = Saved(known | self.note(), state, learner.loop_.trained)

    def after_epoch(self, phase: str, under_way: Phase, done: int, epochs: int, seconds: float) -> None:
        """Copy the tensors of a phase where a save may need them, and write a checkpoint when it is due."""
        assert self.saved is not None
        due = self.pace.due() or self.received is not None
        if due or done == epochs or seconds > LONG:
            # One assignment, since a signal may arrive between any two: the state and its notes must match.
            phases = self.saved.phases | {phase: under_way.copied(done)}
            self.saved = replace(self.saved, about=self.saved.about | self.note(), phases=phases)
        if due:
            self.save()

    def save(self) -> None:
        """Write a checkpoint of the last copied state."""
        if self.learner is None or self.saved is None:
            return
        begin, self.writing = time.monotonic(), True
        try:
            for phase, trained in self.saved.phases.items():
                check_finite(trained.tensors.values(), len(self.learner.tasks_), phase, trained.epochs)
            now = {"elapsed": time.perf_counter() - self.begin, "seconds": dict(self.learner.loop_.seconds)}
            about = self.saved.about | {"context": self.context} | now
            self.secure()
            self.checkpoint.write(Saved(about, self.saved.state, self.saved.phases))
        except OSError as error:
            raise RunError(
                f"cannot write {self.checkpoint.path}: {error.strerror}; the previous checkpoint is intact"
            ) from None
        finally:
            self.writing = False
        self.pace.wrote(begin)
        if self.received:
            raise Interrupted(self.received)

    def listening(self) -> AbstractContextManager[None]:
        """Save and stop on Ctrl-C or SIGTERM; a second signal ends the process at once."""

        def stop(number: int) -> None:
            default_handlers()
            self.received = number
            if not self.writing and not _capturing():  # otherwise stop after the write or the epoch
                self.save()  # the last copied epoch is complete
                raise Interrupted(number)

        return on_stop(stop)


def _capturing() -> bool:
    """Whether a CUDA graph is being captured; nothing may be copied from the GPU meanwhile."""
    return torch.cuda.is_initialized() and torch.cuda.is_current_stream_capturing()


def differences(then: Mapping[str, Any], now: Mapping[str, Any], above: str = "") -> Iterator[str]:
    """Differences between two nested tables, in words.

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


def platform_of(device: str, has_kernels: bool) -> dict[str, Any]:
    """Versions, hardware and kernels, which decide the last bits of a result.

    Args:
        device: "cpu" or "cuda".
        has_kernels: whether a CPU has kernels for some network of the learner.
    """
    cuda = device == "cuda"
    used, by = cuda or has_kernels, made_by(device)
    return {
        "torch": torch.__version__,
        "device": device,
        "processor": torch.cuda.get_device_name() if cuda else torch.backends.cpu.get_cpu_capability(),
        "threads": torch.get_num_threads(),
        "steps": "captured" if cuda else "plain",
        "kernels": "torch's" if not used or by is None else "ours" if cuda else by,
    }
