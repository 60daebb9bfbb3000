"""The catalogue: every entry complete, found where it lies, read with its names, listed, fetched and checked."""

import gzip
import hashlib
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import prer
from prer.cli.main import main
from prer.data import catalogue, checksums, fetch, files
from prer.data.arrays import Data
from prer.data.catalogue import CATALOGUE, is_here, load_named
from prer.data.entry import File, data_folder
from prer.errors import InputError, RunError
from prer.paper import DATA, METHODS
from prer.presets import recommended
from prer.streams.config import StreamConfig

ROOT = str(Path(prer.__file__).parents[1])
ONE_HOST = {"svhn", "cifar10", "cifar100"}  # no mirror with the same bytes is known
FETCHED = [entry for entry in CATALOGUE.values() if entry.files]


@pytest.fixture(autouse=True)
def folder(monkeypatch, tmp_path):
    """An empty data folder, and no network."""
    for name in ("FORCE_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE", "COLUMNS", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PRER_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("PRER_OFFLINE", "1")
    return tmp_path / "data"


@pytest.fixture
def tiny(monkeypatch):
    """MNIST and Fashion-MNIST as if their files held a few bytes, and a CIFAR-10 to match."""
    for name in ("mnist", "fashion_mnist", "cifar10"):
        entry = CATALOGUE[name]
        unpacked = tuple(replace(form, files=tuple(map(small, form.files))) for form in entry.unpacked)
        made = replace(entry, files=tuple(map(small, entry.files)), unpacked=unpacked, train=6, test=2)
        monkeypatch.setitem(CATALOGUE, name, made)


def small(file):
    content = file.name.encode()
    sha, urls = hashlib.sha256(content).hexdigest(), tuple(url.replace("://", "://nowhere.") for url in file.urls)
    if file.content_sha256:
        return File(file.name, urls, 1, content_sha256=sha, content_size=len(content))
    return File(file.name, urls, len(content), sha)


def put(name, where=None):
    """Write the small files of a data set, in its first form or in a folder."""
    entry = CATALOGUE[name]
    form = entry.forms[0] if where is None else next(f for f in entry.forms if f.folder == where)
    form.place.mkdir(parents=True, exist_ok=True)
    for file in form.files:
        content = file.name.encode()
        (form.place / file.name).write_bytes(gzip.compress(content) if file.content_sha256 else content)
    return form.place


def said(capsys, *arguments, code=0):
    """What a command prints, on both sides."""
    if code:
        with pytest.raises(SystemExit) as caught:
            main(list(arguments))
        assert caught.value.code == code
    else:
        main(list(arguments))
    out, err = capsys.readouterr()
    assert re.fullmatch(r"prer: [^\n]+\n", err) if code else err == ""
    return out, err


# -- the table -------------------------------------------------------------------------------------------------------


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


def test_the_recommended_settings_of_each():
    pairs, wide = {"classes_per_task": 2, "resplit": 0.2}, {"channels": (24, 48, 96)}
    ten = {"batch": 64, "epochs": 10}
    for name in ("mnist", "kmnist", "fashion_mnist"):
        assert recommended(name, "si") == {"stream": pairs, "learner": ten}
    phases = {"epochs_autoencoder": 10, "epochs_flow": 10}
    assert recommended("fashion_mnist", "prer") == {"stream": pairs, "learner": ten | phases}
    assert recommended("svhn", "si") == {"stream": pairs, "learner": ten | wide | {"embedding": 100}}
    cifar = ten | wide | {"embedding": 200, "batch": 128}
    assert recommended("cifar10", "si") == {"stream": pairs, "learner": cifar}
    own = {"epochs_autoencoder": 20, "epochs_flow": 20, "epochs": 20, "temperature": 0.8}
    assert recommended("cifar100", "prer") == {"stream": pairs | {"classes_per_task": 10}, "learner": cifar | own}
    assert recommended("digits", "naive") == {"stream": pairs, "learner": {"batch": 32, "epochs": 20, "lr": 0.00058}}
    assert recommended("my.npz", "prer") == {"stream": {}, "learner": {}}
    recommended("cifar10", "si")["stream"]["resplit"] = 0.9
    assert recommended("svhn", "si")["stream"] == pairs


@pytest.mark.parametrize("data", DATA)
def test_all_learners_have_the_papers_networks(data):
    built_in = recommended(data, "si")["learner"]
    for method in METHODS:
        found = recommended(data, method)
        assert found["stream"]["classes_per_task"] == 2 and found["stream"]["resplit"] == 0.2
        same = [key for key in ("channels", "embedding", "batch") if key in built_in]
        assert all(found["learner"][key] == recommended_value(built_in[key]) for key in same)


def recommended_value(value):
    return list(value) if isinstance(value, tuple) else value


# -- where it lies ---------------------------------------------------------------------------------------------------


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


def test_it_is_here_when_all_its_files_are(tiny, folder):
    assert located(CATALOGUE["mnist"]) is None and not is_here("mnist") and is_here("digits")
    put("mnist")
    assert located(CATALOGUE["mnist"]) == folder / "MNIST/raw" and is_here("mnist")
    (folder / "MNIST/raw/t10k-labels-idx1-ubyte.gz").unlink()
    assert located(CATALOGUE["mnist"]) is None


def test_a_finished_run_does_not_fetch_its_data_to_be_shown(tiny):
    assert StreamConfig(data="digits").is_there() and not StreamConfig(data="mnist").is_there()
    put("mnist")
    assert StreamConfig(data="mnist").is_there()


def test_a_folder_that_cannot_be_looked_into_holds_nothing(monkeypatch):
    monkeypatch.setenv("PRER_DATA", "a" * 300)
    assert located(CATALOGUE["mnist"]) is None


def test_an_archive_is_a_form_and_goes_before_its_files(tiny, folder):
    put("cifar10", "cifar-10-batches-bin")
    assert located(CATALOGUE["cifar10"]) == folder / "cifar-10-batches-bin"
    put("cifar10", ".")
    assert located(CATALOGUE["cifar10"]) == folder / "cifar-10-binary.tar.gz"
    put("cifar10")
    assert located(CATALOGUE["cifar10"]) == folder / "CIFAR10/cifar-10-binary.tar.gz"


def test_a_file_elsewhere_is_found(folder):
    folder.mkdir()
    for name in ("train_32x32.mat", "test_32x32.mat", "something else"):
        (folder / name).touch()
    assert located(CATALOGUE["svhn"]) == folder


# -- reading ---------------------------------------------------------------------------------------------------------


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
    "labels": ([9, 0, 1, 2, 3, 4, 5, 10], "holds labels that are not 0 to 9"),
    "below": ([9, 0, 1, 2, 3, 4, 5, -1], "holds labels that are not 0 to 9"),
    "strings": (list("abcdefgh"), "holds labels that are not 0 to 9"),
    "samples": ([0, 1, 2], "holds 3 samples, 2 of them to test on"),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_is_not_the_data_set_is_refused(tiny, reads, case):
    reads[1][0], sentence = np.array(WRONG[case][0]), WRONG[case][1]
    place = put("fashion_mnist")
    with pytest.raises(InputError, match=re.escape(f"{place} {sentence}, which is not fashion_mnist")):
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


def test_without_a_network_one_sentence_says_what_to_do(folder):
    with pytest.raises(InputError) as caught:
        load_named("kmnist")
    for part in ("train-labels-idx1-ubyte.gz", str(folder / "KMNIST/raw"), "http://codh.rois.ac.jp/kmnist/dataset/"):
        assert part in str(caught.value)
    assert not folder.exists()


def test_only_what_is_missing_is_asked_for(tiny, folder):
    place = put("mnist")
    (place / "t10k-labels-idx1-ubyte.gz").unlink()
    with pytest.raises(InputError, match=f"put t10k-labels-idx1-ubyte.gz into {place}"):
        load_named("mnist")


def test_unknown_names_are_refused_with_a_guess():
    with pytest.raises(InputError, match="unknown data set 'mnits', did you mean 'mnist'"):
        load_named("mnits")


# -- the commands ----------------------------------------------------------------------------------------------------


def test_the_list(tiny, capsys, folder):
    put("mnist")
    out, _ = said(capsys, "data", "list")
    rows = {cells[0]: cells for line in out.splitlines() if len(cells := re.split(r"\s*[│]\s*", line)[1:-1]) == 7}
    assert list(rows) == list(CATALOGUE)
    assert [rows[name][-1] for name in ("digits", "mnist", "svhn")] == ["built in", "here", "246.3 MB to fetch"]
    assert rows["svhn"][2:6] == ["99,289", "3x32x32", "10", "non-commercial use only"]
    assert rows["cifar100"][4] == "100"
    assert f"Data folder: {folder}" in out


def test_data_commands_import_nothing_heavy():
    code = (
        "import sys; from prer.cli.main import main\n"
        "for words in (['list'], ['check'], ['fetch', 'digits']): main(['data', *words])\n"
        "print(sorted({'torch', 'sklearn', 'scipy'} & set(sys.modules)))"
    )
    environment = {"PYTHONPATH": ROOT, "PRER_DATA": "nowhere", "PRER_OFFLINE": "1"}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines()[-1] == "[]"


def test_fetch_says_where_it_is(tiny, capsys, folder):
    put("mnist")
    out, _ = said(capsys, "data", "fetch", "digits", "mnist", "mnist")
    assert out == f"digits: built in\nmnist: here, {folder / 'MNIST/raw'}\n"


def test_all_are_fetched(capsys, monkeypatch):
    asked = []
    monkeypatch.setattr(fetch, "fetch", lambda entry, progress: asked.append(entry.name) or entry.forms[0])
    said(capsys, "data", "fetch", "all")
    assert asked == [entry.name for entry in FETCHED]


def test_fetch_fails_in_one_sentence(tiny, capsys, monkeypatch):
    assert "PRER_OFFLINE is set" in said(capsys, "data", "fetch", "mnist", code=2)[1]

    def fail(entry, progress):
        raise RunError("no network")

    monkeypatch.setattr(fetch, "fetch", fail)
    assert "no network" in said(capsys, "data", "fetch", "mnist", code=1)[1]


@pytest.mark.parametrize("command", ["fetch", "check"])
@pytest.mark.parametrize("names", [["digits", "mnits"], ["all", "mnits"]])
def test_a_wrong_name_is_refused_before_anything_is_done(capsys, command, names):
    out, err = said(capsys, "data", command, *names, code=2)
    assert (out, err) == ("", "prer: unknown data set 'mnits', did you mean 'mnist'?\n")


def test_check_of_what_is_whole(tiny, capsys, folder):
    place = put("mnist")
    out, _ = said(capsys, "data", "check")
    assert "digits: built in\n" in out and "kmnist: not here\n" in out
    for file in CATALOGUE["mnist"].files:
        assert f"mnist: ok       {place / file.name}\n" in out
    said(capsys, "data", "check", "mnist", "digits")


@pytest.mark.parametrize("names", [[], ["mnist"], ["svhn", "mnist"]])
def test_check_names_the_first_damaged_file(tiny, capsys, names):
    place = put("mnist")
    for name in ("train-labels-idx1-ubyte.gz", "t10k-labels-idx1-ubyte.gz"):
        (place / name).write_bytes(b"damaged")
    (place / "t10k-images-idx3-ubyte.gz").write_bytes(gzip.compress(b"other"))
    out, err = said(capsys, "data", "check", *names, code=2)
    assert err == f"prer: {place / 'train-labels-idx1-ubyte.gz'} is damaged; `prer data fetch mnist` gets it anew\n"
    assert (out.count("damaged"), out.count("mnist: ok")) == (3, 1)


def test_check_of_a_form_of_loose_files(tiny, capsys):
    place = put("cifar10", "cifar-10-batches-bin")
    said(capsys, "data", "check", "cifar10")
    (place / "test_batch.bin").write_bytes(b"test_batch.bim")
    assert f"{place / 'test_batch.bin'} is damaged" in said(capsys, "data", "check", code=2)[1]


def test_what_is_missing_is_an_error_only_when_it_is_named(tiny, capsys):
    place = put("mnist")
    (place / "train-labels-idx1-ubyte.gz").unlink()
    out, _ = said(capsys, "data", "check")
    assert f"mnist: missing  {place / 'train-labels-idx1-ubyte.gz'}\n" in out
    assert "labels-idx1-ubyte.gz is missing; `prer data fetch" in said(capsys, "data", "check", "mnist", code=2)[1]
    assert "train_32x32.mat is missing" in said(capsys, "data", "check", "svhn", code=2)[1]


def test_a_file_that_cannot_be_read_is_damaged(tmp_path):
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    assert checksums.state(CATALOGUE["svhn"].files[0], tmp_path / "loop") == "missing"
    assert checksums.state(CATALOGUE["svhn"].files[0], tmp_path / ("a" * 300)) == "damaged"
    assert catalogue.known("svhn").size == 182040794 + 64275384
