"""Where the files of a data set may lie, and which of its forms is found first."""

from pathlib import Path

import pytest
from support.data_sets import put

from prer.data.catalogue import CATALOGUE
from prer.data.entry import Entry, File, Form, data_folder, decoded, idx_files, served
from prer.errors import InputError

pytestmark = pytest.mark.usefixtures("data_folder")


def test_the_data_folder(monkeypatch, tmp_path):
    assert data_folder() == tmp_path / "data"
    monkeypatch.setenv("PRER_DATA", "~/x")
    monkeypatch.setenv("HOME", "/home/me")
    assert data_folder() == Path("/home/me/x")
    monkeypatch.setenv("PRER_DATA", "")
    assert data_folder() == Path("/home/me/.cache/prer")
    monkeypatch.setenv("XDG_CACHE_HOME", "/cache")
    assert data_folder() == Path("/cache/prer")
    monkeypatch.setenv("PRER_DATA", "~nobody-has-this-name/x")
    with pytest.raises(InputError, match="set PRER_DATA"):
        data_folder()


def located(entry):
    form = entry.local_form()
    return form.path if form else None


def test_a_form_is_here_when_all_its_files_are(tiny, data_folder):
    assert located(CATALOGUE["mnist"]) is None
    put("mnist")
    assert located(CATALOGUE["mnist"]) == data_folder / "MNIST/raw"
    (data_folder / "MNIST/raw/t10k-labels-idx1-ubyte.gz").unlink()
    assert located(CATALOGUE["mnist"]) is None


def test_a_folder_that_cannot_be_looked_into_holds_nothing(monkeypatch):
    monkeypatch.setenv("PRER_DATA", "a" * 300)
    assert located(CATALOGUE["mnist"]) is None


def test_an_archive_is_a_form_and_goes_before_its_files(tiny, data_folder):
    put("cifar10", "cifar-10-batches-bin")
    assert located(CATALOGUE["cifar10"]) == data_folder / "cifar-10-batches-bin"
    put("cifar10", ".")
    assert located(CATALOGUE["cifar10"]) == data_folder / "cifar-10-binary.tar.gz"
    put("cifar10")
    assert located(CATALOGUE["cifar10"]) == data_folder / "CIFAR10/cifar-10-binary.tar.gz"


def test_a_file_elsewhere_is_found(data_folder):
    data_folder.mkdir()
    for name in ("train_32x32.mat", "test_32x32.mat", "something else"):
        (data_folder / name).touch()
    assert located(CATALOGUE["svhn"]) == data_folder


# -- what an entry says -----------------------------------------------------------------------------------------------


def test_a_file_that_is_compressed_anew_may_be_twice_as_large():
    assert File("a", (), 10, "sum").limit == 10
    assert File("a", (), 10, content_sha256="sum", content_size=99).limit == 20


def test_the_four_files_of_a_data_set_like_mnist():
    files = idx_files(("http://a/", "http://b/"), (1, 2, 3, 4), ("p", "q", "r", "s"))
    names = [f"{part}-{kind}-ubyte.gz" for part in ("train", "t10k") for kind in ("images-idx3", "labels-idx1")]
    assert files[1] == File(names[1], (f"http://a/{names[1]}", f"http://b/{names[1]}"), 2, "q")
    assert [file.name for file in files] == names
    by_content = decoded(files, (10, 20, 30, 40))
    assert by_content[3] == File(names[3], files[3].urls, 4, content_sha256="s", content_size=40)


def test_an_entry_adds_up_its_parts_and_files(data_folder):
    about = {"name": "n", "title": "t", "licence": "l", "source": "s", "shape": (1, 8, 8), "train": 5, "test": 2}
    files = (served("http://a/", "x.tar.gz", 7, "sum"), served("http://a/", "y", 4, "sum"))
    entry = Entry(**about, folders=("N", "."), files=files, unpacked=(Form("loose", files[1:]),))
    assert (entry.samples, entry.size, entry.built_in) == (7, 11, False)
    assert [form.folder for form in entry.forms] == ["N", ".", "loose"]
    assert [form.path for form in entry.forms] == [data_folder / name for name in ("N/x.tar.gz", "x.tar.gz", "loose")]
    assert Entry(**about).built_in and Entry(**about).local_form() is None
