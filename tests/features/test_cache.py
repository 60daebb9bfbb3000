"""Features on disk: the same bits without a second computation, or none; never wrong ones."""

import hashlib
import multiprocessing
import os
import signal
import threading
import time
from dataclasses import replace

import numpy as np
import pytest
import torch
from filelock import FileLock
from safetensors.torch import save
from support.commands import ended, forked, without_privileges
from support.extractors import letters, texts

from prer.data.reading import Reading
from prer.features import cache
from prer.features.extraction import vectors
from prer.features.extractor import Extractor

OF_TEXTS = Extractor("letters", "a" * 64, letters, "texts")
X = texts()[0]
KEY = cache.key_of(X, OF_TEXTS, "0 resize")

pytestmark = pytest.mark.usefixtures("data_folder")


def computed(x=X, extractor=OF_TEXTS):
    """Features of texts through the cache, and how often the network was asked."""
    asked = []
    noted = replace(extractor, embed=lambda batch: asked.append(len(batch)) or letters(batch))
    return vectors(x, noted, Reading(), cached=True), len(asked)


def file_of(key=KEY):
    return cache.folder() / f"{key}{cache.ENDING}"


def names():
    return sorted(path.name for path in cache.folder().iterdir())


# -- hits and misses ---------------------------------------------------------------------------------------------------


def test_the_second_time_they_are_the_same_bits_and_nothing_is_computed():
    made, asked = computed()
    again, asked_again = computed()
    assert (asked, asked_again) == (1, 0) and torch.equal(made, again) and torch.equal(made, letters(X))
    assert names() == sorted([f"{KEY}{cache.ENDING}", f"{KEY}.lock"])


def test_everything_that_decides_the_features_is_in_the_key():
    images = torch.arange(192, dtype=torch.uint8).view(1, 3, 8, 8)
    keys = [
        KEY,
        cache.key_of([*X[:-1], X[-1] + " "], OF_TEXTS, "0 resize"),
        cache.key_of(X[::-1], OF_TEXTS, "0 resize"),
        cache.key_of(X[:-1], OF_TEXTS, "0 resize"),
        cache.key_of([X[0] + X[1], *X[2:]], OF_TEXTS, "0 resize"),
        cache.key_of(X, replace(OF_TEXTS, name="other"), "0 resize"),
        cache.key_of(X, replace(OF_TEXTS, sha256="b" * 64), "0 resize"),
        cache.key_of(X, OF_TEXTS, "32 resize"),
        cache.key_of(images, OF_TEXTS, "32 resize"),
        cache.key_of(images.view(1, 3, 4, 16), OF_TEXTS, "32 resize"),
        cache.key_of(images.view(3, 1, 8, 8), OF_TEXTS, "32 resize"),
        cache.key_of(images.view(torch.int8), OF_TEXTS, "32 resize"),
        cache.key_of(images + 1, OF_TEXTS, "32 resize"),
    ]
    assert len(set(keys)) == len(keys) and all(len(key) == 64 for key in keys)
    assert cache.key_of(images.mT.contiguous().mT, OF_TEXTS, "32 resize") == keys[8]  # whatever its strides
    assert cache.key_of(["a\ud800", "b"], OF_TEXTS, "") != cache.key_of(["a", "\ud800b"], OF_TEXTS, "")


def signed(data):
    return hashlib.sha256(data).digest() + data


OTHERS = {
    "of other samples": torch.zeros(len(X) - 1, 26),
    "of another type": torch.zeros(len(X), 26, dtype=torch.float64),
    "maps": torch.zeros(len(X), 5, 5),
    "NaN": torch.full((len(X), 26), np.nan),
}
DAMAGE = {
    "empty": lambda data: b"",
    "one byte": lambda data: data[:1],
    "without its checksum": lambda data: data[cache.SHA :],
    "truncated": lambda data: data[:-1],
    "cut in half": lambda data: data[: len(data) // 2],
    "longer": lambda data: data + b"\0",
    "a flipped bit": lambda data: data[:-9] + bytes([data[-9] ^ 1]) + data[-8:],
    "another checksum": lambda data: bytes(cache.SHA) + data[cache.SHA :],
    "text": lambda data: b"hello" * 100,
    "a pickle": lambda data: signed(b"\x80\x04cos\nsystem\n(S'touch hacked'\ntR."),
    "a header that claims too much": lambda data: signed(b"\xff" * 8 + b"{}"),
    "another name": lambda data: signed(save({"x": torch.zeros(len(X), 26)})),
    **{name: lambda data, tensor=tensor: signed(save({"features": tensor})) for name, tensor in OTHERS.items()},
}


@pytest.mark.parametrize("case", DAMAGE)
def test_a_file_that_is_damaged_or_forged_is_computed_again(case):
    made, _ = computed()
    file_of().write_bytes(DAMAGE[case](file_of().read_bytes()))
    again, asked = computed()
    assert asked == 1 and torch.equal(again, made)
    assert computed()[1] == 0  # and it was mended


@pytest.mark.parametrize("kind", ["folder", "link", "pipe"])
def test_what_is_no_file_is_neither_read_nor_an_error(kind, tmp_path):
    cache.folder().mkdir(parents=True)
    if kind == "folder":
        file_of().mkdir()
    elif kind == "link":
        (tmp_path / "target").write_bytes(b"mine")
        (tmp_path / "target").chmod(0o666)
        file_of().symlink_to(tmp_path / "target")
    else:
        os.mkfifo(file_of())
    made, asked = computed()
    assert asked == 1 and torch.equal(made, letters(X))
    assert kind != "link" or (tmp_path / "target").read_bytes() == b"mine"
    assert computed()[1] == 0 and file_of().stat().st_mode & 0o022 == 0  # it was replaced, with a mode of its own


# -- where nothing can be written --------------------------------------------------------------------------------------


@pytest.fixture
def no_folder(data_folder):
    data_folder.mkdir(exist_ok=True)
    (data_folder / "features").write_text("in the way")


@pytest.mark.usefixtures("no_folder")
def test_without_a_folder_features_are_computed_every_time():
    assert [computed()[1] for _ in range(2)] == [1, 1] and cache.folder().read_text() == "in the way"


@pytest.mark.parametrize("error", [OSError(30, "Read-only file system"), NotImplementedError("no flock")])
def test_a_folder_that_cannot_be_locked_or_written_still_serves(monkeypatch, error):
    made, _ = computed()

    def fails(*_):
        raise error

    monkeypatch.setattr(cache.FileLock, "acquire", fails)
    monkeypatch.setattr(cache, "replace_file", fails if isinstance(error, OSError) else cache.replace_file)
    monkeypatch.setattr(cache.os, "utime", fails if isinstance(error, OSError) else cache.os.utime)
    again, asked = computed()
    assert asked == 0 and torch.equal(again, made)
    assert computed(X[:5])[1] == 1 and computed(X[:5])[1] == (1 if isinstance(error, OSError) else 0)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs a fork")
def test_a_read_only_folder_serves_what_it_has():
    made, _ = computed()

    def work():
        without_privileges()
        again, asked = computed()
        assert asked == 0 and torch.equal(again, made)
        assert computed(X[:5])[1] == 1

    cache.folder().chmod(0o555)
    try:
        code, _, err = ended(forked(work))
    finally:
        cache.folder().chmod(0o755)
    assert code == 0, err
    assert names() == sorted([f"{KEY}{cache.ENDING}", f"{KEY}.lock"])


def test_a_full_disk_leaves_no_file(monkeypatch):
    def full(handle):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("prer.disk.os.fsync", full)
    assert computed()[1] == 1 and names() == [f"{KEY}.lock"]


# -- bounds ------------------------------------------------------------------------------------------------------------


def test_the_files_that_were_not_used_for_longest_are_deleted(monkeypatch):
    keys = [cache.key_of(X[:n], OF_TEXTS, "0 resize") for n in (10, 11, 12, 13)]
    for number, n in enumerate((10, 11, 12)):
        computed(X[:n])
        os.utime(file_of(keys[number]), (number, number))
    (cache.folder() / f".{keys[0]}{cache.ENDING}.new").write_bytes(bytes(900))  # of a killed process
    os.utime(cache.folder() / f".{keys[0]}{cache.ENDING}.new", (5, 5))
    assert computed(X[:10])[1] == 0  # now it was used
    monkeypatch.setattr(cache, "MOST", 2 * file_of(keys[0]).stat().st_size + 400)
    computed(X[:13])
    kept = [f"{key}{ending}" for key in (keys[0], keys[3]) for ending in (cache.ENDING, ".lock")]
    assert names() == sorted(kept)
    monkeypatch.setattr(cache, "MOST", 1)
    assert computed(X[:12])[1] == 1 and names() == sorted([*kept, f"{keys[2]}.lock"])  # too large to be kept at all


# -- several processes -------------------------------------------------------------------------------------------------


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs a fork")
def test_two_processes_compute_once():
    context = multiprocessing.get_context("fork")
    asked, begun = context.Value("i", 0), context.Event()

    def slow(batch):
        with asked:
            asked.value += 1
        begun.set()
        time.sleep(0.3)
        return letters(batch)

    def work():
        made = vectors(X, replace(OF_TEXTS, embed=slow), Reading(), cached=True)
        assert torch.equal(made, letters(X))

    first = forked(work)
    assert begun.wait(30)
    others = [forked(work) for _ in range(2)]
    assert [ended(process)[0] for process in (first, *others)] == [0, 0, 0]
    assert asked.value == 1


@pytest.mark.parametrize("seconds", [0.5, 30])
def test_waiting_for_another_process_is_said_and_ends(monkeypatch, seconds):
    """A lock that is held too long is left alone, and so are the features on disk."""
    monkeypatch.setattr(cache, "SOON", 0.1)
    monkeypatch.setattr(cache, "LONG", 30 if seconds < 1 else 0.1)
    cache.folder().mkdir(parents=True)
    lock = FileLock(cache.folder() / f"{KEY}.lock", thread_local=False)
    lock.acquire()
    timer = threading.Timer(seconds, lock.release)
    timer.start()
    with pytest.warns(UserWarning, match="another process is computing these features; waiting for it"):
        made, asked = computed()
    timer.cancel()
    lock.release()
    assert asked == 1 and torch.equal(made, letters(X)) and file_of().exists() == (seconds < 1)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs a fork")
def test_a_process_that_dies_while_it_computes_or_writes_leaves_no_wrong_file(monkeypatch):
    def dies(*_):
        os.kill(os.getpid(), signal.SIGKILL)

    def at(place):
        def work():
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(f"prer.disk.{place}", dies)
                computed()

        return work

    for place in ("os.fsync", "Path.replace"):
        file_of().unlink(missing_ok=True)
        if place == "Path.replace":
            file_of().write_bytes(b"damaged")
        assert ended(forked(at(place)))[0] == -signal.SIGKILL
        made, asked = computed()
        assert asked == 1 and torch.equal(made, letters(X)) and computed()[1] == 0
    file_of().unlink()
    child = forked(lambda: vectors(X, replace(OF_TEXTS, embed=dies), Reading(), cached=True))
    assert ended(child)[0] == -signal.SIGKILL
    assert computed()[1] == 1
