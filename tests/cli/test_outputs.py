"""Files that a user names by -o and the like: replaced whole or not at all, and only where they are files."""

import os
import resource
import stat
import threading
from pathlib import Path

import pytest
from support.commands import begun, ended, outcome
from support.folders import made
from support.sweeps import finish

from prer.bench import suite
from prer.cli.main import main
from prer.sweeps.sweep import Sweep

SWEEP = 'seeds = 1\ndevice = "cpu"\n[learner]\nname = "naive"\nepochs = 1\n[axes]\n"learner.lr" = [0.01, 0.1]\n'
NAMES = {"report": "o.html", "sample": "o.npy", "best": "o.toml", "bench": "o.json"}


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return made(tmp_path_factory.mktemp("run"))


@pytest.fixture(scope="module")
def sweep(tmp_path_factory):
    """A sweep whose points are finished."""
    folder = tmp_path_factory.mktemp("sweep")
    (folder / "s.toml").write_text(SWEEP)
    for point in Sweep.read(folder / "s.toml").points():
        finish(point, folder / "runs")
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
    }


each = pytest.mark.parametrize("command", list(NAMES))


@pytest.fixture(scope="module")
def written():
    """What each command writes into an ordinary file, once it was asked."""
    return {}


@pytest.fixture
def usual(capsys, commands, written):
    """What a command writes into an ordinary file, to be compared with."""

    def of(command):
        if command not in written:
            file = Path("usual" + NAMES[command][1:])
            assert outcome(capsys, *commands[command], file)[0] == 0
            written[command] = file.read_bytes()
        return written[command]

    return of


@each
def test_a_pipe_is_written_into_and_stays_one(capsys, commands, usual, command):
    words, pipe, read = commands[command], Path("place", NAMES[command]), []
    expected = usual(command)
    os.mkfifo(pipe)
    reader = threading.Thread(target=lambda: read.append(pipe.read_bytes()), daemon=True)
    reader.start()
    assert outcome(capsys, *words, pipe)[0] == 0
    assert stat.S_ISFIFO(pipe.lstat().st_mode)
    reader.join(20)
    assert read == [expected]


@each
@pytest.mark.parametrize("leads", ["to a file", "nowhere yet"])
def test_a_link_stays_and_what_it_leads_to_is_written(capsys, commands, usual, command, leads):
    words, link, target = commands[command], Path("place", NAMES[command]), Path("target" + NAMES[command])
    if leads == "to a file":
        target.write_bytes(b"old")
        target.chmod(0o600)
    link.symlink_to(target.absolute())
    assert outcome(capsys, *words, link)[0] == 0
    assert link.is_symlink()
    assert target.read_bytes() == usual(command)
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
    assert code == 2 and "No space left on device; use another -" in err
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
    assert code == 2 and "File too large; use another -o" in err
    assert file.read_bytes() == b"old"
    assert [path.name for path in file.parent.iterdir()] == [file.name]


@each
def test_what_is_no_file_is_refused(capsys, commands, command):
    folder = Path("place", NAMES[command])
    folder.mkdir()
    with pytest.raises(SystemExit) as ended:
        main([str(word) for word in (*commands[command], folder)])
    err = capsys.readouterr().err
    assert ended.value.code == 2 and str(folder) in err and "Traceback" not in err
    assert list(folder.iterdir()) == []
