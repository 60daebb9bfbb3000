"""What tests of data sets share: a web server, and no waiting."""

import threading

import pytest
from support.web_server import Server

from prer.data import fetch, transfer


@pytest.fixture
def server():
    """A web server on this machine."""
    made = Server()
    thread = threading.Thread(target=made.serve_forever, args=(0.01,))
    thread.start()
    yield made
    made.release.set()
    made.shutdown()
    thread.join()
    made.server_close()


@pytest.fixture
def waits(monkeypatch, tmp_path):
    """How long fetching would have waited, in seconds; it does not wait, and has the network and a data folder."""
    waited = []
    monkeypatch.setattr(fetch, "sleep", waited.append)
    monkeypatch.setattr(transfer, "TIMEOUT", 10.0)
    monkeypatch.setenv("PRER_DATA", str(tmp_path))
    for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    monkeypatch.delenv("PRER_OFFLINE", raising=False)
    return waited
