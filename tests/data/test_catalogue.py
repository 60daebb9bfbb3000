"""The catalogue: every entry is complete, and is read with the names of its classes."""

import re

import numpy as np
import pytest
from support.data_sets import put

from prer.data import fetch, files
from prer.data.arrays import Data
from prer.data.catalogue import CATALOGUE, is_here, load_named
from prer.errors import InputError

pytestmark = pytest.mark.usefixtures("data_folder")
ONE_HOST = {"svhn", "cifar10", "cifar100"}  # no mirror with the same bytes is known
FETCHED = [entry for entry in CATALOGUE.values() if entry.files]


# -- the table --------------------------------------------------------------------------------------------------------


def test_the_names():
    assert list(CATALOGUE) == ["digits", "mnist", "kmnist", "fashion_mnist", "svhn", "cifar10", "cifar100"]
    assert all(name == entry.name for name, entry in CATALOGUE.items())


@pytest.mark.parametrize("name", CATALOGUE)
def test_an_entry_says_what_it_is(name):
    entry = CATALOGUE[name]
    assert entry.title and entry.licence and entry.source
    assert entry.shape[0] in (1, 3) and entry.shape[1] == entry.shape[2] in (8, 28, 32)
    assert len(set(entry.classes)) == len(entry.classes)
    assert len(entry.classes) == {"cifar100": 100}.get(name, 0 if name in ("digits", "mnist", "svhn") else 10)
    assert entry.built_in == (name == "digits")


@pytest.mark.parametrize("entry", FETCHED, ids=lambda entry: entry.name)
def test_every_file_can_be_had_and_verified(entry):
    assert entry.folders
    for form in entry.forms:
        for file in form.files:
            assert bool(file.sha256) != bool(file.content_sha256)
            assert re.fullmatch("[0-9a-f]{64}", file.sha256 or file.content_sha256)
            assert file.size > 0 and bool(file.content_size) == bool(file.content_sha256)
    for file in entry.files:
        assert len(set(file.urls)) == (1 if entry.name in ONE_HOST else 2)
        assert all(url.startswith("http") and url.endswith("/" + file.name) for url in file.urls)
    sums = [file.sha256 or file.content_sha256 for form in entry.forms for file in form.files if form.folder != "."]
    assert len(set(sums)) == len(sums)


def test_facts_that_can_be_reckoned():
    for file in CATALOGUE["mnist"].files:
        count = CATALOGUE["mnist"].train if file.name.startswith("train") else CATALOGUE["mnist"].test
        assert file.content_size == (16 + count * 28 * 28 if "images" in file.name else 8 + count)
    (unpacked,) = CATALOGUE["cifar10"].unpacked
    assert sum(file.size for file in unpacked.files) == CATALOGUE["cifar10"].samples * (1 + 3 * 32 * 32)
    assert CATALOGUE["cifar100"].classes == tuple(sorted(CATALOGUE["cifar100"].classes))


# -- reading ----------------------------------------------------------------------------------------------------------


def test_it_is_here_when_all_its_files_are(tiny, data_folder):
    assert not is_here("mnist") and is_here("digits")
    put("mnist")
    assert is_here("mnist")


@pytest.fixture
def reads(monkeypatch):
    """What is read, and what comes of it."""
    asked = []
    y = np.array([9, 0, 1, 2, 3, 4, 5, 9])

    def read(path, label="", size=0, fit="resize", only=()):
        asked.append((path, list(only)))
        return Data(np.zeros((8, 1, 28, 28), np.uint8), asked_y[0], 2)

    asked_y = [y]
    monkeypatch.setattr(files, "read", read)
    return asked, asked_y


def test_labels_become_the_names_of_the_classes(tiny, reads):
    place = put("fashion_mnist")
    data = load_named("fashion_mnist")
    assert data.y.tolist()[:3] == ["Ankle boot", "T-shirt/top", "Trouser"]
    assert data.order == CATALOGUE["fashion_mnist"].classes and data.tests == 2
    assert reads[0] == [(place, [file.name for file in CATALOGUE["fashion_mnist"].files])]


def test_labels_that_are_numbers_stay(tiny, reads):
    put("mnist")
    data = load_named("mnist")
    assert data.y.tolist() == [9, 0, 1, 2, 3, 4, 5, 9] and data.order == ()


def test_an_archive_is_read_in_place(tiny, reads):
    place = put("cifar10")
    load_named("cifar10")
    assert reads[0] == [(place / "cifar-10-binary.tar.gz", [])]


WRONG = {
    "labels": ([9, 0, 1, 2, 3, 4, 5, 10], "contains labels outside 0 to 9"),
    "below": ([9, 0, 1, 2, 3, 4, 5, -1], "contains labels outside 0 to 9"),
    "strings": (list("abcdefgh"), "contains labels outside 0 to 9"),
    "samples": ([0, 1, 2], "contains 3 samples, 2 of them for testing"),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_is_not_the_data_set_is_refused(tiny, reads, case):
    reads[1][0], sentence = np.array(WRONG[case][0]), WRONG[case][1]
    place = put("fashion_mnist")
    with pytest.raises(InputError, match=re.escape(f"{place} {sentence}, which does not match fashion_mnist")):
        load_named("fashion_mnist")


def test_the_digits_are_built_in():
    data = load_named("digits")
    assert (data.x.shape, data.x.dtype, data.tests, data.order) == ((1797, 1, 8, 8), np.uint8, 0, ())
    assert data.x.max() == 255 and sorted(set(data.y.tolist())) == list(range(10))


def test_what_is_not_here_is_fetched_first(tiny, reads, monkeypatch):
    monkeypatch.delenv("PRER_OFFLINE")
    shown = []

    def fetch_file(file, place, progress):
        progress(1, file.size)
        (place / file.name).touch()

    monkeypatch.setattr(fetch, "fetch_file", fetch_file)
    load_named("fashion_mnist", lambda *event: shown.append(event[0]))
    assert shown == [f"fashion_mnist/{file.name}" for file in CATALOGUE["fashion_mnist"].files]
    assert len(reads[0]) == 1


def test_without_a_network_one_sentence_says_what_to_do(data_folder):
    with pytest.raises(InputError) as caught:
        load_named("kmnist")
    for part in (
        "train-labels-idx1-ubyte.gz",
        str(data_folder / "KMNIST/raw"),
        "http://codh.rois.ac.jp/kmnist/dataset/",
    ):
        assert part in str(caught.value)
    assert not data_folder.exists()


def test_only_what_is_missing_is_asked_for(tiny, data_folder):
    place = put("mnist")
    (place / "t10k-labels-idx1-ubyte.gz").unlink()
    with pytest.raises(InputError, match=f"put t10k-labels-idx1-ubyte.gz into {place}"):
        load_named("mnist")


def test_unknown_names_are_refused_with_a_guess():
    with pytest.raises(InputError, match="unknown data set 'mnits', did you mean 'mnist'"):
        load_named("mnits")
