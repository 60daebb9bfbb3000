"""A training step of our learners against a bare loop that does the same work, and against peers."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from prer.bench.bare import Bare, BareClassic, BareEWC, BareGEM, BareRehearsal, BareReplay
from prer.bench.clock import Turn, alternate, summary
from prer.bench.ready import after, pictures
from prer.learners import LEARNERS
from prer.learners.base import Learner
from prer.streams.stream import Stream

PAST = 2  # tasks learned before: the average over five tasks
MEMORY = 64  # GEM's samples of each task; every step uses all of them, as in Avalanche


class Method(NamedTuple):
    """A learner with its settings, and the bare loop that does the same work."""

    learner: str
    settings: dict[str, Any]
    bare: Callable[..., Bare]


METHODS = {
    "naive": Method("naive", {}, Bare),
    "ewc": Method("ewc", {}, BareEWC),
    "lwf, classic": Method("lwf", {"form": "classic"}, BareClassic),
    "lwf, rehearsal": Method("lwf", {"form": "rehearsal"}, BareRehearsal),
    "replay": Method("replay", {"selection": "balanced"}, BareReplay),
    "gem": Method("gem", {"size": MEMORY, "memory_batch": 0}, BareGEM),
}

Peer = Callable[[str, Stream, int, int, str], Turn | None]  # method, stream, past tasks, epochs, device


class Size(NamedTuple):
    """How much is measured."""

    samples: int  # of a task
    epochs: int  # of a turn; the first is not counted
    repeats: int


FULL = Size(1984, 2, 9)  # 31 whole batches
QUICK = Size(512, 2, 3)


def compare(
    size: Size, device: str = "cpu", peers: Mapping[str, Peer] | None = None, say: Callable[[str], object] = str
) -> dict[str, Any]:
    """Measure every method: our learner, the bare loop, and the peers that have it."""
    stream, results = pictures(PAST + 1, size.samples, 28), {}
    for name, method in METHODS.items():
        say(f"a step of {name}")
        turns = ours_and_bare(method, stream, size.epochs, device)
        for peer, make in (peers or {}).items():
            turn = make(name, stream, PAST, size.epochs, device)
            turns |= {peer: turn} if turn else {}
        results[name] = summary(alternate(turns, size.repeats))
    return results


def ours_and_bare(method: Method, stream: Stream, epochs: int, device: str) -> dict[str, Turn]:
    """Turns of our learner and of the bare loop, from the same state."""
    ready = after(PAST, built(method, epochs=epochs), stream, device=device)
    met = copy.deepcopy(ready.learner)
    met.meet(ready.task)
    return {"ours": ready.turn, "bare loop": method.bare(met, ready.task, epochs).turn}


def built(method: Method, **settings: Any) -> Learner:
    """Build the method's learner."""
    usual: dict[str, Any] = {"batch": 64}
    return LEARNERS[method.learner](**usual | method.settings | settings)
