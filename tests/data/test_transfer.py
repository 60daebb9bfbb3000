"""One request for one file, against a real server that is slow, broken, wrong or hostile."""

import socket
import ssl
from email.utils import formatdate
from time import time

import pytest
from support.web_server import (
    BODY,
    NAME,
    OTHER,
    beside,
    broken_chunks,
    chunked,
    drops,
    endless,
    error_page,
    fails,
    get,
    hangs_up,
    ignores_range,
    known,
    nonsense,
    of_another_file,
    part_of,
    slow,
    stalls,
    status,
    whole,
    wrong_range,
)

import prer
from prer.data import fetch, transfer

pytestmark = pytest.mark.usefixtures("waits")


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


def test_a_server_without_an_end_is_stopped(server, tmp_path):
    assert "sent more bytes than the file has" in fails(known(server.answers(endless)), tmp_path)
    assert server.sent < 500  # what the system had taken from it by then


def test_another_part_than_was_asked_for_is_not_taken(server, tmp_path):
    part_of(tmp_path)
    assert "sent a different byte range than requested" in fails(known(server.answers(beside)), tmp_path)


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
    assert "unknown address, or no network" in fails(known("http://nowhere.invalid/x"), tmp_path)


def test_a_certificate_does_not_mend_by_asking_again(tmp_path, waits, monkeypatch):
    def refuse(*arguments, **options):
        error = ssl.SSLCertVerificationError(1, "certificate verify failed")
        error.verify_message = "certificate has expired"
        raise error

    monkeypatch.setattr(socket, "create_connection", refuse)
    assert "not trusted: certificate has expired" in fails(known("https://127.0.0.1/x"), tmp_path)
    assert waits == []


def test_what_a_stranger_writes_is_not_shown_as_it_is(server, tmp_path):
    assert "\x1b" not in fails(known(server.answers(nonsense)), tmp_path)


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
