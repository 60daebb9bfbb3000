"""A web server that does as it is told, well or badly, and the file that it has."""

import hashlib
import random
import threading
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from time import sleep

import pytest

from prer.data import fetch, transfer
from prer.data.entry import File

BODY = random.Random(0).randbytes(300_000)
OTHER = bytes(byte ^ 1 for byte in BODY)
NAME = "data.bin"


class Server(ThreadingHTTPServer):
    """Answers a path with the next of its behaviours, the last one again and again."""

    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.plan, self.seen, self.release = {}, [], threading.Event()
        self.outwaited, self.sent = False, 0

    def url(self, path="/a/" + NAME):
        return f"http://127.0.0.1:{self.server_port}{path}"

    def answers(self, *behaviours, path="/a/" + NAME):
        self.plan[path] = list(behaviours)
        return self.url(path)

    def asked(self, path="/a/" + NAME):
        """The ranges that were asked for, None for the whole."""
        return [wanted for where, wanted in self.seen if where == path]

    def handle_error(self, request, client_address):
        """A client that hangs up is what many of these tests are about."""


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        self.close_connection = True
        self.server.seen.append((self.path, self.headers["Range"]))
        plan = self.server.plan[self.path]
        behave = plan.pop(0) if len(plan) > 1 else plan[0]
        with suppress(ConnectionError):
            behave(self)

    def log_message(self, *arguments):
        pass

    def first(self):
        wanted = self.headers["Range"]
        return int(wanted.removeprefix("bytes=").removesuffix("-")) if wanted else 0

    def start(self, code, **headers):
        self.send_response(code)
        for key, value in headers.items():
            self.send_header(key.replace("_", "-"), str(value))
        self.end_headers()


# -- what it can do ---------------------------------------------------------------------------------------------------


def whole(h, body=BODY):
    """A server as it should be."""
    first = h.first()
    if not first:
        h.start(200, Content_Length=len(body))
    elif first >= len(body):
        h.start(416, Content_Range=f"bytes */{len(body)}", Content_Length=0)
    else:
        h.start(206, Content_Length=len(body) - first, Content_Range=f"bytes {first}-{len(body) - 1}/{len(body)}")
    h.wfile.write(body[first:])


def of(body):
    return lambda h: whole(h, body)


def slow(h):
    h.start(200, Content_Length=len(BODY))
    for i in range(0, len(BODY), 30_000):
        h.wfile.write(BODY[i : i + 30_000])
        sleep(0.005)


def drops(count, body=BODY):
    """Breaks off after so many bytes more."""

    def behave(h):
        first = h.first()
        headers = {"Content_Range": f"bytes {first}-{len(body) - 1}/{len(body)}"} if first else {}
        h.start(206 if first else 200, Content_Length=len(body) - first, **headers)
        h.wfile.write(body[first : first + count])

    return behave


def hangs_up(h):
    """Closes the connection without a word."""


def stalls(h):
    h.start(200, Content_Length=len(BODY))
    h.wfile.write(BODY[:200_000])
    h.wfile.flush()
    h.server.outwaited = not h.server.release.wait(5)


def status(code, **headers):
    return lambda h: h.start(code, Content_Length=0, **headers)


def ignores_range(h):
    h.start(200, Content_Length=len(BODY))
    h.wfile.write(BODY)


def wrong_range(h):
    h.start(206, Content_Length=len(BODY), Content_Range=f"bytes 0-{len(BODY) - 1}/{len(BODY)}")
    h.wfile.write(BODY)


def beside(h):
    """As many bytes as were asked for, from another place."""
    h.start(206, Content_Length=200_000, Content_Range=f"bytes 50000-249999/{len(BODY)}")
    h.wfile.write(BODY[50_000:250_000])


def of_another_file(h):
    """A part of a file that has grown since."""
    first = h.first()
    h.start(206, Content_Length=10, Content_Range=f"bytes {first}-{first + 9}/{len(BODY) + 5}")
    h.wfile.write(BODY[:10])


def endless(h):
    h.start(200)
    for h.server.sent in range(2_000):  # 600 MB, were nobody to stop it
        h.wfile.write(BODY)


def chunked(h):
    h.start(200, Transfer_Encoding="chunked")
    for i in range(0, len(BODY), 100_000):
        h.wfile.write(b"%x\r\n%b\r\n" % (100_000, BODY[i : i + 100_000]))
    h.wfile.write(b"0\r\n\r\n")


def broken_chunks(h):
    h.start(200, Transfer_Encoding="chunked")
    h.wfile.write(b"%x\r\n%b" % (100_000, BODY[:50_000]))


def length(stated):
    """Says so many bytes, and sends all."""

    def behave(h):
        h.start(200, Content_Length=stated)
        h.wfile.write(BODY)

    return behave


def error_page(h):
    h.start(200, Content_Length=9, Content_Type="text/html")
    h.wfile.write(b"<p>hello!")


def nonsense(h):
    h.wfile.write(b"220 ftp.example.org ready \x1b[2J\r\n")


# -- the file ---------------------------------------------------------------------------------------------------------


def known(*urls, body=BODY):
    return File(NAME, urls, len(body), hashlib.sha256(body).hexdigest())


def get(file, folder, progress=lambda done, total: None):
    """Fetch a file, and be sure that it is the right one and that nothing half is left."""
    fetch.fetch_file(file, folder, progress)
    assert (folder / file.name).read_bytes() == BODY
    assert not (folder / f"{file.name}.part").exists()


def fails(file, folder):
    """Why a file could not be fetched; nothing is there under its name."""
    with pytest.raises(transfer.Failed) as caught:
        fetch.fetch_file(file, folder, lambda done, total: None)
    assert not (folder / file.name).exists()
    return str(caught.value)


def part_of(folder, body=BODY[:100_000]):
    part = folder / f"{NAME}.part"
    part.write_bytes(body)
    return part
