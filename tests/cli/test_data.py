"""`prer data`: list, fetch and check."""

import gzip
import re
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from rich.filesize import decimal
from support.data_sets import put

import prer
from prer.cli.main import main
from prer.data import fetch
from prer.data.catalogue import CATALOGUE
from prer.errors import RunError
from prer.features import cache

pytestmark = pytest.mark.usefixtures("data_folder")
ROOT = str(Path(prer.__file__).parents[1])
FETCHED = [entry for entry in CATALOGUE.values() if entry.files]


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


def test_the_list(tiny, capsys, data_folder):
    put("mnist")
    out, _ = said(capsys, "data", "list")
    rows = {cells[0]: cells for line in out.splitlines() if len(cells := re.split(r"\s*[│]\s*", line)[1:-1]) == 7}
    assert list(rows) == list(CATALOGUE)
    assert [rows[name][-1] for name in ("digits", "mnist", "svhn")] == ["built in", "available", "246.3 MB to download"]
    assert rows["svhn"][2:6] == ["99,289", "3x32x32", "10", "non-commercial use only"]
    assert rows["cifar100"][4] == "100"
    assert f"Data folder: {data_folder}" in out


def test_the_list_counts_the_features_on_disk(capsys):
    line = "Features, in its folder features: {} (delete them whenever you like)\n"
    assert line.format("0 bytes, 0 files") in said(capsys, "data", "list")[0]
    for number, key in enumerate("ab", 1):
        with cache.locked(key):
            cache.write(key, torch.zeros(number, 300))
        size = sum(file.stat().st_size for file in cache.folder().glob("*.features"))
        files = f"{decimal(size)}, {number} file{'s' * (number > 1)}"
        assert size > 1200 and line.format(files) in said(capsys, "data", "list")[0]


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


def test_fetch_says_where_it_is(tiny, capsys, data_folder):
    put("mnist")
    out, _ = said(capsys, "data", "fetch", "digits", "mnist", "mnist")
    assert out == f"digits: built in\nmnist: available at {data_folder / 'MNIST/raw'}\n"


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


def test_check_of_what_is_whole(tiny, capsys, data_folder):
    place = put("mnist")
    out, _ = said(capsys, "data", "check")
    assert "digits: built in\n" in out and "kmnist: not downloaded\n" in out
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
    assert (
        err
        == f"prer: {place / 'train-labels-idx1-ubyte.gz'} is damaged; download it again with: prer data fetch mnist\n"
    )
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
    assert (
        "labels-idx1-ubyte.gz is missing; download it with: prer data fetch"
        in said(capsys, "data", "check", "mnist", code=2)[1]
    )
    assert "train_32x32.mat is missing" in said(capsys, "data", "check", "svhn", code=2)[1]
