"""Ctrl-C and SIGTERM, handled in a scope."""

import signal
import threading

import pytest

from prer.signals import STOPPING, default_handlers, on_stop


@pytest.fixture(autouse=True)
def handlers():
    """The handlers of this process, which are put back."""
    before = {number: signal.getsignal(number) for number in STOPPING}
    yield before
    for number, handler in before.items():
        signal.signal(number, handler)


def now():
    return {number: signal.getsignal(number) for number in STOPPING}


@pytest.mark.parametrize("number", STOPPING)
def test_each_signal_calls_the_handler_with_its_number(number):
    came = []
    with on_stop(came.append):
        signal.raise_signal(number)
        signal.raise_signal(number)
    assert came == [number, number]


def test_the_handlers_of_before_are_put_back(handlers):
    with on_stop(lambda number: None):
        assert not set(now().values()) & set(handlers.values())
    assert now() == handlers
    with pytest.raises(KeyError), on_stop(lambda number: None):
        raise KeyError
    assert now() == handlers


def test_scopes_may_lie_in_each_other():
    outer, inner = [], []
    with on_stop(outer.append):
        with on_stop(inner.append):
            signal.raise_signal(signal.SIGTERM)
        signal.raise_signal(signal.SIGINT)
    assert (outer, inner) == ([signal.SIGINT], [signal.SIGTERM])


def test_another_thread_cannot_listen_and_goes_on_without(handlers):
    seen = []

    def work():
        with on_stop(lambda number: None):
            seen.append(now())

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert seen == [handlers]


def test_the_next_signal_may_end_the_process():
    default_handlers()
    assert set(now().values()) == {signal.SIG_DFL}
