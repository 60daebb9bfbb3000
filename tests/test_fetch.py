"""Fetching against a real server that is slow, broken, wrong or hostile, by real processes."""

import gzip
import hashlib
import os
import random
import signal
import socket
import ssl
import subprocess
import sys
import threading
from contextlib import suppress
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from io import StringIO
from pathlib import Path
from time import sleep, time
from types import SimpleNamespace

import pytest
from rich.console import Console

import prer
from prer.data import checksums, fetch, transfer
from prer.data.entry import Entry, File
from prer.errors import InputError, RunError
from prer.terminal.downloads import Downloads

BODY = random.Random(0).randbytes(300_000)
OTHER = bytes(byte ^ 1 for byte in BODY)
NAME = "data.bin"
ROOT = str(Path(prer.__file__).parents[1])


# -- a server that does as it is told --------------------------------------------------------------------------------


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


@pytest.fixture
def server():
    made = Server()
    thread = threading.Thread(target=made.serve_forever, args=(0.01,))
    thread.start()
    yield made
    made.release.set()
    made.shutdown()
    thread.join()
    made.server_close()


@pytest.fixture(autouse=True)
def waits(monkeypatch, tmp_path):
    """Nobody waits; how long they would have."""
    waited = []
    monkeypatch.setattr(fetch, "sleep", waited.append)
    monkeypatch.setattr(transfer, "TIMEOUT", 10.0)
    monkeypatch.setenv("PRER_DATA", str(tmp_path))
    for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    monkeypatch.delenv("PRER_OFFLINE", raising=False)
    return waited


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


# -- what a mirror may do --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("behave", [whole, slow, chunked, ignores_range], ids=lambda b: b.__name__)
def test_a_file_comes_whole(server, tmp_path, waits, behave):
    shown = []
    get(known(server.answers(behave)), tmp_path, lambda done, total: shown.append((done, total)))
    assert (server.asked(), waits) == ([None], [])
    assert shown[0] == (0, len(BODY)) and shown[-1] == (len(BODY), len(BODY)) and shown == sorted(shown)


def test_it_says_who_asks(server, tmp_path):
    agents = []
    get(known(server.answers(lambda h: (agents.append(h.headers["User-Agent"]), whole(h)))), tmp_path)
    assert agents == [f"prer/{prer.__version__}"]


def test_what_is_there_is_not_asked_for_again(server, tmp_path):
    part_of(tmp_path)
    get(known(server.answers(whole)), tmp_path)
    get(known(server.url()), tmp_path)
    assert server.asked() == ["bytes=100000-"]


def test_a_part_that_only_lacked_its_check_needs_no_server(tmp_path):
    part_of(tmp_path, BODY)
    get(known("http://127.0.0.1:9/never-asked"), tmp_path)


RESUMED = {  # what the server does, what it is asked for
    "ignores the range": ([ignores_range], ["bytes=100000-"]),
    "another range": ([wrong_range, whole], ["bytes=100000-", None]),
    "the range of another file": ([of_another_file, whole], ["bytes=100000-", None]),
    "nothing there": ([status(416), whole], ["bytes=100000-", None]),
}


@pytest.mark.parametrize("case", RESUMED)
def test_a_part_is_thrown_away_where_it_does_not_fit(server, tmp_path, case):
    behaviours, asked = RESUMED[case]
    part_of(tmp_path)
    get(known(server.answers(*behaviours)), tmp_path)
    assert server.asked() == asked


@pytest.mark.parametrize("left", [OTHER[:100_000], OTHER, OTHER + b"more"], ids=["half", "all", "more"])
def test_a_part_with_wrong_bytes_is_not_blamed_on_the_mirror(server, tmp_path, left):
    part_of(tmp_path, left)
    get(known(server.answers(whole)), tmp_path)
    assert server.asked()[-1] is None


def test_dropped_connections_are_taken_up_again(server, tmp_path, waits):
    get(known(server.answers(hangs_up, drops(100_000), drops(50_000), whole)), tmp_path)
    assert server.asked() == [None, None, "bytes=100000-", "bytes=150000-"]
    assert waits == list(fetch.WAITS[:3])


def test_a_host_that_drops_often_is_asked_as_long_as_something_comes(server, tmp_path, waits, monkeypatch):
    monkeypatch.setattr(fetch, "WORTHWHILE", 20_000)
    get(known(server.answers(drops(20_000))), tmp_path)
    assert len(server.asked()) == 15
    assert set(waits) == {fetch.WAITS[0]}


def test_a_host_that_gives_a_byte_at_a_time_is_given_up(server, tmp_path):
    assert "ended after 5 of 300,000 bytes" in fails(known(server.answers(drops(1))), tmp_path)


@pytest.mark.parametrize(
    "behave", [broken_chunks, hangs_up, nonsense, drops(0)], ids=["chunks", "hung", "nonsense", "none"]
)
def test_a_broken_answer_is_asked_for_again(server, tmp_path, behave):
    get(known(server.answers(behave, whole)), tmp_path)
    assert len(server.asked()) == 2


def test_a_server_that_stalls_is_left_and_taken_up_again(server, tmp_path, monkeypatch):
    monkeypatch.setattr(transfer, "TIMEOUT", 0.2)
    get(known(server.answers(stalls, whole)), tmp_path)
    assert not server.outwaited
    assert int(server.asked()[1].removeprefix("bytes=")[:-1]) > 100_000


@pytest.mark.parametrize("code", [403, 404, 410, 451])
def test_a_mirror_without_the_file_is_left_at_once(server, tmp_path, waits, code):
    get(known(server.answers(status(code)), server.answers(whole, path="/b")), tmp_path)
    assert (server.asked(), server.asked("/b"), waits) == ([None], [None], [])


@pytest.mark.parametrize("code", [429, 500, 502, 503])
def test_a_busy_mirror_is_asked_again(server, tmp_path, waits, code):
    get(known(server.answers(status(code), status(code), whole)), tmp_path)
    assert (len(server.asked()), waits) == (3, list(fetch.WAITS[:2]))


def test_busy_mirrors_take_turns(server, tmp_path, waits):
    get(known(server.answers(status(503)), server.answers(status(503), whole, path="/b")), tmp_path)
    assert [path for path, _ in server.seen] == ["/a/" + NAME, "/b", "/a/" + NAME, "/b"]
    assert waits == [fetch.WAITS[0]]


AFTER = {"7": 7, "100000": transfer.LONGEST_WAIT, "0": 0, "soon": 0, "-5": 0, "": 0, "²": 0}
AFTER["Wed, 21 Oct 2015 07:28:00"] = 0  # without a time zone
AFTER[formatdate(0, usegmt=True)] = 0


@pytest.mark.parametrize("said", AFTER)
def test_a_server_may_say_when_to_come_again(server, tmp_path, waits, said):
    assert transfer._retry_after(said) == AFTER[said]
    get(known(server.answers(status(503, Retry_After=said), whole)), tmp_path)
    assert waits == [max(AFTER[said], fetch.WAITS[0])]


def test_it_may_say_so_by_a_date(server):
    assert 20 < transfer._retry_after(formatdate(time() + 40, usegmt=True)) <= 40
    assert transfer._retry_after(formatdate(time() + 10_000, usegmt=True)) == transfer.LONGEST_WAIT


def test_mirrors_that_stay_busy_are_given_up(server, tmp_path, waits):
    said = fails(known(server.answers(status(503)), server.answers(status(404), path="/b")), tmp_path)
    assert waits == list(fetch.WAITS)
    assert (len(server.asked()), len(server.asked("/b"))) == (1 + len(fetch.WAITS), 1)
    assert "answered" in said


WRONG = {
    "wrong bytes": of(OTHER),
    "another file": of(BODY + b"more"),
    "less of it": of(BODY[:-1]),
    "an error page": error_page,
    "without an end": endless,
    "a length too short": length(10),
    "a length too long": length(len(BODY) * 2),
}


@pytest.mark.parametrize("case", WRONG)
def test_wrong_bytes_are_thrown_away_and_the_next_mirror_is_asked(server, tmp_path, waits, case):
    file = known(server.answers(WRONG[case]), server.answers(whole, path="/b"))
    get(file, tmp_path)
    assert (server.asked(), server.asked("/b"), waits) == ([None], [None], [])


@pytest.mark.parametrize("case", WRONG)
def test_wrong_bytes_never_get_the_name(server, tmp_path, waits, case):
    fails(known(server.answers(WRONG[case])), tmp_path)
    assert not (tmp_path / f"{NAME}.part").exists()
    assert (len(server.asked()), waits) == (1, [])


def test_a_server_without_an_end_is_stopped(server, tmp_path):
    assert "sends more bytes than the file has" in fails(known(server.answers(endless)), tmp_path)
    assert server.sent < 500  # what the system had taken from it by then


def test_another_part_than_was_asked_for_is_not_taken(server, tmp_path):
    part_of(tmp_path)
    assert "sent another part than was asked for" in fails(known(server.answers(beside)), tmp_path)


def test_an_error_page_costs_nothing_of_what_is_there(server, tmp_path):
    part = part_of(tmp_path)
    fails(known(server.answers(error_page)), tmp_path)
    assert part.read_bytes() == BODY[:100_000]


def test_redirects_are_followed(server, tmp_path):
    server.answers(status(308, Location="/there"), path="/hop")
    server.answers(whole, path="/there")
    part_of(tmp_path)
    get(known(server.answers(status(302, Location="/hop"))), tmp_path)
    assert server.asked("/there") == ["bytes=100000-"]


REDIRECTS = {"a loop": "/a/" + NAME, "a file": "file:///etc/passwd", "no address": "http://[", "nothing": ""}


@pytest.mark.parametrize("case", REDIRECTS)
def test_redirects_to_nowhere_are_left(server, tmp_path, case):
    loop = server.answers(status(302, Location=REDIRECTS[case]))
    get(known(loop, server.answers(whole, path="/b")), tmp_path)


def test_nobody_there(tmp_path, waits):
    assert "Connection refused" in fails(known("http://127.0.0.1:9/x"), tmp_path)
    assert waits == list(fetch.WAITS)


def test_a_name_that_is_not_known(tmp_path, monkeypatch):
    def no_name(*arguments, **options):
        raise socket.gaierror(-2, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", no_name)
    assert "no such address, or no network" in fails(known("http://nowhere.invalid/x"), tmp_path)


def test_a_certificate_does_not_mend_by_asking_again(tmp_path, waits, monkeypatch):
    def refuse(*arguments, **options):
        error = ssl.SSLCertVerificationError(1, "certificate verify failed")
        error.verify_message = "certificate has expired"
        raise error

    monkeypatch.setattr(socket, "create_connection", refuse)
    assert "not trusted, certificate has expired" in fails(known("https://127.0.0.1/x"), tmp_path)
    assert waits == []


def test_what_a_stranger_writes_is_not_shown_as_it_is(server, tmp_path):
    assert "\x1b" not in fails(known(server.answers(nonsense)), tmp_path)


# -- files that hosts compress anew ----------------------------------------------------------------------------------


def packed(url, level=9, size=None):
    served = gzip.compress(BODY, level)
    sha = hashlib.sha256(BODY).hexdigest()
    return served, File("x.gz", (url,), size or len(served), content_sha256=sha, content_size=len(BODY))


@pytest.mark.parametrize("size", [200_000, 290_000, None])
def test_a_file_may_be_compressed_in_another_way(server, tmp_path, size):
    served, file = packed(server.url(), 1, size)
    server.answers(of(served))
    fetch.fetch_file(file, tmp_path, lambda done, total: None)
    assert (tmp_path / "x.gz").read_bytes() == served


PACKED = {
    "no gzip": BODY,
    "other content": gzip.compress(OTHER),
    "cut": gzip.compress(BODY)[:-9],
    "no deflate": gzip.compress(BODY)[:10] + b"\xff" * 50,
    "flipped": gzip.compress(BODY)[:1000] + b"\0\0\0\0" + gzip.compress(BODY)[1004:],
    "more content": gzip.compress(BODY + b"more"),
    "more behind it": gzip.compress(BODY) + b"more",
    "nothing": b"",
}


@pytest.mark.parametrize("case", PACKED)
def test_other_content_is_refused(server, tmp_path, case):
    _, file = packed(server.answers(of(PACKED[case])))
    assert fails(file, tmp_path)
    assert len(server.asked()) == 1
    assert not (tmp_path / "x.gz.part").exists()


def test_more_than_twice_as_much_is_too_much(server, tmp_path):
    served, file = packed(server.url())
    server.answers(of(served + served + b"more"))
    assert "sends more bytes than the file has" in fails(file, tmp_path)


def test_a_dropped_connection_is_seen_by_the_stated_length(server, tmp_path):
    served, file = packed(server.url(), size=250_000)
    server.answers(drops(100_000, served), of(served))
    fetch.fetch_file(file, tmp_path, lambda done, total: None)
    assert server.asked() == [None, "bytes=100000-"]


def test_few_bytes_that_unpack_to_very_many_are_not_unpacked(tmp_path, monkeypatch):
    class Bomb:
        reads = 0

        def __enter__(self):
            return self

        def __exit__(self, *error):
            pass

        def read(self, count):
            self.reads += 1
            assert self.reads < 10
            return bytes(count)

    (tmp_path / "x.gz").touch()
    monkeypatch.setattr(checksums.gzip, "open", lambda path: Bomb())
    assert checksums.state(packed("")[1], tmp_path / "x.gz") == "damaged"


# -- a data set ------------------------------------------------------------------------------------------------------


def data_set(*files):
    words = {"name": "tiny", "title": "t", "licence": "l", "source": "s"}
    return Entry(**words, shape=(1, 2, 2), train=1, test=0, folders=("TINY", "."), files=files)


def refused(entry, kind):
    with pytest.raises(kind) as caught:
        fetch.fetch(entry)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_a_data_set_is_fetched_once(server, tmp_path):
    entry, shown = data_set(known(server.answers(whole))), []
    form = fetch.fetch(entry, lambda *event: shown.append(event))
    assert form.path == tmp_path / "TINY" and (form.path / NAME).read_bytes() == BODY
    assert shown[-1] == (f"tiny/{NAME}", len(BODY), len(BODY))
    assert fetch.fetch(entry) == form
    assert len(server.seen) == 1


def test_a_damaged_file_is_replaced(server, tmp_path):
    entry = data_set(known(server.answers(whole)))
    target = fetch.fetch(entry).path / NAME
    target.write_bytes(OTHER)
    fetch.fetch(entry)
    assert target.read_bytes() == BODY


def test_a_users_damaged_file_elsewhere_stays(server, tmp_path):
    (tmp_path / NAME).write_bytes(OTHER)
    assert fetch.fetch(data_set(known(server.answers(whole)))).path == tmp_path / "TINY"
    assert (tmp_path / NAME).read_bytes() == OTHER


def test_without_a_network_the_user_is_told_what_to_put_where(server, tmp_path):
    mirrors = (server.answers(status(404)), server.answers(status(503), path="/b/" + NAME))
    said = refused(data_set(known(*mirrors)), RunError)
    assert f"tiny: {NAME} could not be fetched (127.0.0.1:{server.server_port}: answered 503 Service Unav" in said
    assert f"put {NAME} into {tmp_path / 'TINY'}, from {server.url('/a/')} or {server.url('/b/')}" in said


@pytest.mark.parametrize("value", ["1", "yes"])
def test_offline_means_no_network_at_all(server, tmp_path, monkeypatch, value):
    monkeypatch.setenv("PRER_OFFLINE", value)
    entry = data_set(known(server.answers(whole)))
    said = refused(entry, InputError)
    assert "PRER_OFFLINE is set" in said
    assert f"put {NAME} into {tmp_path / 'TINY'}, from {server.url('/a/')}" in said
    assert (server.seen, list(tmp_path.iterdir())) == ([], [])
    (tmp_path / NAME).write_bytes(BODY)
    assert fetch.fetch(entry).path == tmp_path  # what is here needs no network


@pytest.mark.parametrize("value", ["0", ""])
def test_not_offline(server, monkeypatch, value):
    monkeypatch.setenv("PRER_OFFLINE", value)
    assert fetch.fetch(data_set(known(server.answers(whole))))


def test_a_folder_that_cannot_be_written(server, tmp_path, monkeypatch):
    (tmp_path / "file").touch()
    for folder, why in ((tmp_path / "file", "Not a directory"), (tmp_path / ("a" * 300), "File name too long")):
        monkeypatch.setenv("PRER_DATA", str(folder))
        said = refused(data_set(known(server.answers(whole))), InputError)
        assert f"cannot write {folder}" in said and why in said and "PRER_DATA" in said


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a disk that is always full")
def test_a_disk_that_fills_up(server, tmp_path):
    (tmp_path / "TINY").mkdir()
    (tmp_path / "TINY" / f"{NAME}.part").symlink_to("/dev/full")
    said = refused(data_set(known(server.answers(whole))), InputError)
    assert "No space left on device" in said
    assert len(server.seen) == 1  # no mirror is to blame


def test_a_disk_that_is_too_full_is_seen_before(server, tmp_path, monkeypatch):
    (tmp_path / "TINY").mkdir()
    part_of(tmp_path / "TINY")
    entry = data_set(known(server.answers(whole)))
    free = SimpleNamespace(free=199_999)
    monkeypatch.setattr(fetch.shutil, "disk_usage", lambda path: free)
    assert f"has 0 MB left and {NAME} needs 0 MB; free some" in refused(entry, InputError)
    assert server.seen == []
    free.free = 200_000  # what is there already is not counted
    assert fetch.fetch(entry)


# -- processes -------------------------------------------------------------------------------------------------------

CODE = """
import sys
from pathlib import Path
from prer.data.entry import File
from prer.data.fetch import fetch_file
url, size, sha256, folder = sys.argv[1:]
fetch_file(File("data.bin", (url,), int(size), sha256), Path(folder), lambda done, total: print(done, flush=True))
"""


def process(file, folder):
    command = [sys.executable, "-c", CODE, *file.urls, str(file.size), file.sha256, str(folder)]
    environment = os.environ | {"PYTHONPATH": ROOT}
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)


def test_of_two_processes_one_downloads(server, tmp_path):
    def waits_for_another(h):
        if len(server.seen) > 1:
            server.release.set()
        server.release.wait(0.7)  # long enough for the other to ask, if it were to
        whole(h)

    file = known(server.answers(waits_for_another))
    both = [process(file, tmp_path) for _ in range(2)]
    for one in both:
        assert one.stdout.readline() == "0\n"
    assert [one.communicate(timeout=20)[1] or one.returncode for one in both] == [0, 0]
    assert server.asked() == [None]
    get(file, tmp_path)


def test_a_killed_process_leaves_what_the_next_one_goes_on_with(server, tmp_path):
    file = known(server.answers(stalls, whole))
    part = tmp_path / f"{NAME}.part"
    with process(file, tmp_path) as one:
        while int(one.stdout.readline()) < 100_000:
            pass
        assert not (tmp_path / NAME).exists()
        one.send_signal(signal.SIGKILL)
    assert one.returncode == -signal.SIGKILL
    there = part.stat().st_size
    assert 100_000 <= there < len(BODY)
    get(file, tmp_path)
    assert server.asked() == [None, f"bytes={there}-"]


def test_proxies_of_the_environment_are_used(server, tmp_path, monkeypatch):
    far = "http://far-away.invalid/data.bin"
    server.answers(whole, path=far)
    monkeypatch.setenv("http_proxy", server.url(""))
    get(known(far), tmp_path)
    assert server.asked(far) == [None]
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    (tmp_path / "near").mkdir()
    get(known(server.answers(whole)), tmp_path / "near")
    assert server.asked() == [None]  # a proxy would have been asked for the whole address


# -- what is shown ---------------------------------------------------------------------------------------------------


def test_a_terminal_shows_bytes_speed_and_time():
    console = Console(file=StringIO(), width=150, force_terminal=True, force_interactive=True)
    with Downloads(console) as downloads:
        downloads("[red]tiny/x", 0, 4_000_000)
        downloads("[red]tiny/x", 500_000, 4_000_000)
        downloads("[red]tiny/x", 1_000_000, 4_000_000)
        downloads.bars.refresh()
        said = console.file.getvalue()
    assert "[red]tiny/x" in said and "1.0/4.0 MB" in said and "/s" in said and "fetching" not in said


def test_a_log_shows_one_line_for_each_file():
    console = Console(file=StringIO(), width=20)
    with Downloads(console) as downloads:
        for done in (0, 1, 4_000_000):
            downloads("tiny/a-long-name.gz", done, 4_000_000)
    assert console.file.getvalue() == "tiny/a-long-name.gz: fetching 4.0 MB\n"
