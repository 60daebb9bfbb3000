"""Ctrl-C and SIGTERM, handled in a scope."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

STOPPING = (signal.SIGINT, signal.SIGTERM)


@contextmanager
def on_stop(handler: Callable[[int], None]) -> Iterator[None]:
    """Call the handler with the number of each SIGINT or SIGTERM; without effect outside the main thread."""
    listening = threading.current_thread() is threading.main_thread()
    before = {number: signal.signal(number, lambda number, _: handler(number)) for number in STOPPING * listening}
    try:
        yield
    finally:
        for number, previous in before.items():
            signal.signal(number, previous)


def default_handlers() -> None:
    """Restore the default handlers, so that the next SIGINT or SIGTERM ends the process."""
    for number in STOPPING:
        signal.signal(number, signal.SIG_DFL)
