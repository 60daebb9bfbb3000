"""Damaged and hostile files: each ends in one sentence that names it, never in a traceback, a hang or a full memory."""

import gc
import tarfile

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.data_files import GOOD, RNG, ROWS, image_bomb, mat, parquet_with, savez, tar_of, text, zipped
from support.hostile_files import HOSTILE

from prer.data import guards
from prer.data.files import read, read_new
from prer.data.reading import Reading
from prer.errors import InputError

pytestmark = pytest.mark.usefixtures("little_memory")
few = settings(max_examples=60, deadline=None, database=None)


@pytest.fixture(autouse=True, scope="module")
def closed_files():
    """So that a file left open fails here and not in a later test."""
    yield
    gc.collect()


def refused(path, said, **options):
    with pytest.raises(InputError, match=said) as caught:
        read(path, **options)
    message = str(caught.value)
    assert message.isprintable()
    assert len(message) < 200
    assert path.name[-20:] in message or "..." in message
    return message


@pytest.mark.parametrize("case", HOSTILE)
def test_a_hostile_file_is_refused_in_one_sentence(tmp_path, case):
    make, said = HOSTILE[case]
    make(tmp_path / "data")
    refused(tmp_path / "data", said)


KNOWN = [
    Reading(columns=("a", "b"), label="label", shape=(2,)),
    Reading(shape=(1, 8, 8)),
    Reading(size=8, shape=(3, 8, 8)),
]


@pytest.mark.parametrize("case", HOSTILE)
def test_a_hostile_file_does_no_harm_where_it_is_to_be_predicted(tmp_path, case):
    path = tmp_path / "data"
    HOSTILE[case][0](path)
    names = ("data",) if path.is_dir() else ("data", "data.npy", "data.png")  # the name of a folder tells nothing
    for name in names:
        path = path.rename(tmp_path / name)
        for known in KNOWN:
            try:
                assert len(read_new(path, known).x)
            except InputError as error:
                assert str(error).isprintable() and len(str(error)) < 300


def test_a_loop_of_links_is_no_file(tmp_path):
    (tmp_path / "loop").symlink_to("loop")
    refused(tmp_path / "loop", "cannot be read")


def test_what_may_not_be_read_is_refused(tmp_path, monkeypatch):
    (tmp_path / "a.csv").write_text(ROWS)

    def forbidden(*_, **__):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(type(tmp_path), "open", forbidden)  # the superuser may read everything
    refused(tmp_path / "a.csv", r"cannot be read \(Permission denied\); check")


def test_what_does_not_fit_into_memory_is_refused(tmp_path):
    with (tmp_path / "a.bin").open("wb") as file:
        file.truncate(3073 << 20)  # a file with holes: all of it would be zeros
    refused(tmp_path / "a.bin", "does not fit into memory")


def test_an_image_bomb_does_not_go_off_where_images_are_made_small(tmp_path, monkeypatch):
    monkeypatch.setattr(guards, "FREE", 1 << 20)
    image_bomb(tmp_path)
    refused(tmp_path, "zip bomb", size=8)


def test_a_path_with_a_line_break_and_no_utf8_stays_in_one_line(tmp_path):
    path = tmp_path / "a\nb\udcff.csv"
    path.write_bytes(b"")
    refused(path, r"a\\nb.*\.csv: it is empty")


def test_a_long_path_leaves_room_for_the_sentence(tmp_path):
    path = tmp_path / ("n" * 200) / ("m" * 200)
    path.mkdir(parents=True)
    refused(path, r"^\.\.\.m+: it contains no folders")


@pytest.mark.parametrize(
    ("most", "said"),
    [("prer.data.formats.zips.ENTRIES", "more than 1 files"), ("prer.data.formats.cifar.MEMBERS", "cannot be")],
)
def test_archives_of_too_many_files_are_refused(tmp_path, monkeypatch, most, said):
    monkeypatch.setattr(most, 1)
    make = (
        (lambda p: zipped(p, GOOD))
        if "zips" in most
        else (lambda p: tar_of(p, *[("a.bin", tarfile.REGTYPE, bytes(3073))] * 2))
    )
    make(tmp_path / "a")
    refused(tmp_path / "a", said)


SOUND = {
    "npz": lambda p: savez(p, x=RNG.random((4, 3)), y=np.arange(4)),
    "mat": mat,
    "zip": lambda p: zipped(p, GOOD),
    "csv": text(ROWS),
    "tar": lambda p: tar_of(p, ("a.bin", tarfile.REGTYPE, bytes(3073))),
    "parquet": parquet_with,
}


@few
@given(st.sampled_from(sorted(SOUND)), st.data())
def test_any_damage_gives_data_or_one_sentence(tmp_path_factory, kind, data):
    path = tmp_path_factory.mktemp("damaged") / "data"
    SOUND[kind](path)
    whole = bytearray(path.read_bytes())
    for _ in range(data.draw(st.integers(1, 4))):
        place = data.draw(st.integers(0, len(whole) - 1))
        whole[place : place + data.draw(st.integers(0, 8))] = data.draw(st.binary(max_size=8))
        whole = whole or bytearray(b"0")
    path.write_bytes(whole)
    try:
        x, y, tests, *_ = read(path)
        assert len(x) == len(y) > tests
    except InputError as error:
        assert str(error).isprintable()
        assert len(str(error)) < 200
