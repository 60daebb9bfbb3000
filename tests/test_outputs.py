"""Files that a user names by -o and the like: replaced whole or not at all, and only where they are files."""

import os
import resource
import stat
import threading
from pathlib import Path

import numpy as np
import pytest
import torch
from support.folders import begun, ended, made, outcome

from prer.bench import suite
from prer.cli.main import main
from prer.disk import write_output
from prer.errors import InputError
from prer.models.samples import write

SWEEP = 'seeds = 1\ndevice = "cpu"\n[learner]\nname = "naive"\nepochs = 1\n[axes]\n"learner.lr" = [0.01, 0.1]\n'
NAMES = {"report": "o.html", "sample": "o.npy", "best": "o.toml", "bench": "o.json", "reproduce": "o.md"}


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return made(tmp_path_factory.mktemp("run"))


@pytest.fixture(scope="module")
def sweep(tmp_path_factory):
    """A sweep of two points that is finished."""
    folder = tmp_path_factory.mktemp("sweep")
    (folder / "s.toml").write_text(SWEEP)
    code, _, err = ended(begun(["sweep", "s.toml", "--workers", "1"], lambda: os.chdir(folder)))
    assert code == 0, err
    return folder


@pytest.fixture
def commands(run, sweep, tmp_path, monkeypatch):
    """For each command that writes a file the words before its name."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(suite, "measure", lambda *_: {})
    monkeypatch.setattr("prer.bench.table.show", lambda *_: None)
    (tmp_path / "place").mkdir()
    of_sweep = [sweep / "s.toml", "--out", sweep / "runs"]
    return {
        "report": ["report", run, "-o"],
        "sample": ["sample", run, "--class", "1", "-o"],
        "best": ["sweep", "best", *of_sweep, "-o"],
        "bench": ["bench", "--quick", "--json"],
        "reproduce": ["reproduce", "table1", "--fast", "--finished", "--out", tmp_path / "tables", "--write"],
    }


each = pytest.mark.parametrize("command", list(NAMES))


def usual(capsys, words, name):
    """What the command writes into an ordinary file, to be compared with."""
    assert outcome(capsys, *words, Path("usual" + Path(name).suffix))[0] == 0
    return Path("usual" + Path(name).suffix).read_bytes()


@each
def test_a_pipe_is_written_into_and_stays_one(capsys, commands, command):
    words, pipe, read = commands[command], Path("place", NAMES[command]), []
    expected = usual(capsys, words, pipe.name)
    os.mkfifo(pipe)
    reader = threading.Thread(target=lambda: read.append(pipe.read_bytes()), daemon=True)
    reader.start()
    assert outcome(capsys, *words, pipe)[0] == 0
    assert stat.S_ISFIFO(pipe.lstat().st_mode)
    reader.join(20)
    assert read == [expected]


@each
@pytest.mark.parametrize("leads", ["to a file", "nowhere yet"])
def test_a_link_stays_and_what_it_leads_to_is_written(capsys, commands, command, leads):
    words, link, target = commands[command], Path("place", NAMES[command]), Path("target" + NAMES[command])
    if leads == "to a file":
        target.write_bytes(b"old")
        target.chmod(0o600)
    link.symlink_to(target.absolute())
    assert outcome(capsys, *words, link)[0] == 0
    assert link.is_symlink()
    assert target.read_bytes() == usual(capsys, words, link.name)
    assert leads == "nowhere yet" or stat.S_IMODE(target.stat().st_mode) == 0o600
    assert [path.name for path in link.parent.iterdir()] == [link.name]


@each
def test_a_device_stays_one_and_that_it_is_full_is_said(capsys, commands, command):
    device = Path("place", NAMES[command])
    try:
        os.mknod(device, stat.S_IFCHR | 0o666, os.makedev(1, 7))  # as /dev/full is
        with device.open("rb"):
            pass
    except OSError:
        pytest.skip("no devices can be made here")
    code, _, err = outcome(capsys, *commands[command], device)
    assert code == 2 and "No space left on device; give another -" in err
    assert stat.S_ISCHR(device.lstat().st_mode)
    assert [path.name for path in device.parent.iterdir()] == [device.name]


@pytest.mark.parametrize("command", ["report", "sample"])
def test_a_file_that_cannot_be_written_whole_leaves_the_old_one(commands, command):
    file, words = Path("place", NAMES[command]).absolute(), commands[command]
    file.write_bytes(b"old")
    many = ["-n", "1000"] if command == "sample" else []

    def before():  # as on a disk that has room for little more
        resource.setrlimit(resource.RLIMIT_FSIZE, (5000, 5000))

    code, _, err = ended(begun([*words, file, *many], before))
    assert code == 2 and "File too large; give another -o" in err
    assert file.read_bytes() == b"old"
    assert [path.name for path in file.parent.iterdir()] == [file.name]


@each
def test_what_is_no_file_is_refused(capsys, commands, command):
    folder = Path("place", NAMES[command])
    folder.mkdir()
    with pytest.raises(SystemExit) as ended:
        main([str(word) for word in (*commands[command], folder)])
    assert ended.value.code == 2 and "Traceback" not in capsys.readouterr().err
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize("suffix", [".npy", ".NPY"])
def test_samples_are_where_the_command_says(tmp_path, suffix):
    file = tmp_path / f"x{suffix}"
    assert write(torch.ones(2, 3), "a", file) == file
    assert np.load(file).shape == (2, 3)
    assert [path.name for path in tmp_path.iterdir()] == [file.name]


def test_images_are_one_picture(tmp_path):
    from PIL import Image

    with Image.open(write(torch.zeros(4, 1, 8, 8, dtype=torch.uint8), "a", tmp_path / "x.PNG")) as picture:
        assert (picture.format, picture.size) == ("PNG", (17, 17))


def test_a_file_in_a_folder_of_others_is_written_in_place_and_nothing_is_left(tmp_path, monkeypatch):
    file = tmp_path / "mine.json"
    file.write_text("old")

    def refused(self, target):
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(Path, "replace", refused)  # as in a folder with the sticky bit
    write_output(file, b"new", "-o")
    assert [path.name for path in tmp_path.iterdir()] == ["mine.json"] and file.read_text() == "new"
    with pytest.raises(InputError, match=r"cannot write .*; give another -o"):
        write_output(tmp_path / "other.json", b"new", "-o")
    assert [path.name for path in tmp_path.iterdir()] == ["mine.json"]
