"""Fetching from several mirrors by several processes: resumed, verified, and never half a file under its name."""

import gzip
import hashlib
import os
import signal
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from support.web_server import (
    BODY,
    NAME,
    OTHER,
    drops,
    endless,
    error_page,
    fails,
    get,
    hangs_up,
    known,
    length,
    of,
    part_of,
    stalls,
    status,
    whole,
)

import prer
from prer.data import fetch
from prer.data.entry import Entry, File
from prer.errors import InputError, RunError

ROOT = str(Path(prer.__file__).parents[1])
pytestmark = pytest.mark.usefixtures("waits")


# -- mirrors ----------------------------------------------------------------------------------------------------------


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
    assert "closed after 5 of 300,000 bytes" in fails(known(server.answers(drops(1))), tmp_path)


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


# -- files that hosts compress anew -----------------------------------------------------------------------------------


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
    assert "sent more bytes than the file has" in fails(file, tmp_path)


def test_a_dropped_connection_is_seen_by_the_stated_length(server, tmp_path):
    served, file = packed(server.url(), size=250_000)
    server.answers(drops(100_000, served), of(served))
    fetch.fetch_file(file, tmp_path, lambda done, total: None)
    assert server.asked() == [None, "bytes=100000-"]


# -- a data set -------------------------------------------------------------------------------------------------------


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
    assert f"tiny: {NAME} could not be downloaded (127.0.0.1:{server.server_port}: answered 503 Service Unav" in said
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
    assert f"has 0 MB left, but {NAME} needs 0 MB; free some" in refused(entry, InputError)
    assert server.seen == []
    free.free = 200_000  # what is there already is not counted
    assert fetch.fetch(entry)


# -- processes --------------------------------------------------------------------------------------------------------


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
