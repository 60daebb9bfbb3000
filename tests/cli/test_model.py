"""prer predict, sample and privacy."""

import contextlib
import csv
import io
import os
import pty
import re
import subprocess
import sys

import numpy as np
import pytest
import torch
from PIL import Image
from support.commands import begun, ended
from support.models import TINY, finished_run, random_images

from prer.cli.main import main
from prer.models.folder import load


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """The folder of a finished run on digits."""
    return finished_run(tmp_path_factory.mktemp("runs"), *TINY)


def test_predictions_are_printed_as_csv(run_on_vectors, tmp_path, capsys):
    folder, x, y = run_on_vectors
    np.savez(tmp_path / "new.npz", x=x[:6], y=y[:6])
    main(["predict", str(folder), str(tmp_path / "new.npz"), "--task", "1"])
    out, err = capsys.readouterr()
    lines = out.splitlines()
    assert lines[0] == "sample,label,seeds" and len(lines) == 7
    assert all(line.split(",", 1)[1].startswith(('"a,b",', "<d>,")) for line in lines[1:])
    assert re.search(
        r"correct by the labels of the file: \d of 3 samples of known classes", err
    )  # 3 of the 6 are of the other task
    main(["predict", str(folder), str(tmp_path / "new.npz")])
    assert "the flow predicts the class" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["x.npy", "x.npz", "x.png", "x.csv", "missing.npy"])
def test_damaged_samples_are_refused_with_a_sentence(finished, tmp_path, name, capsys):
    if name != "missing.npy":
        (tmp_path / name).write_bytes(b"\x00\x01 nothing")
    with pytest.raises(SystemExit) as ended:
        main(["predict", str(finished), str(tmp_path / name), "--task", "1"])
    assert ended.value.code == 2 and "Traceback" not in capsys.readouterr().err


def test_samples_are_written_as_a_picture_or_an_array(finished, run_on_vectors, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    main(["sample", str(finished), "--class", "3", "-n", "5"])
    page = np.asarray(Image.open(tmp_path / "3.png"))
    expected = load(finished).sample(3, 5)
    assert page.shape == (17, 26) and np.array_equal(page[9:17, 0:8], expected[3, 0].numpy())
    main(["sample", str(run_on_vectors[0]), "--class", "a,b", "-n", "4"])
    assert np.load(tmp_path / "a-b.npy").shape == (4, 3)
    assert "Written: a-b.npy" in capsys.readouterr().out
    for wrong in ("x.gif", "no/such/folder/x.png"):
        with pytest.raises(SystemExit) as ended:
            main(["sample", str(finished), "--class", "3", "-o", wrong])
        assert ended.value.code == 2


def test_permuted_and_rotated_tasks_are_refused(tmp_path, capsys):
    folder = finished_run(tmp_path, "stream.kind=rotated", "stream.count=2", *TINY)
    np.save(tmp_path / "x.npy", random_images())
    with pytest.raises(SystemExit) as ended:
        main(["predict", str(folder), str(tmp_path / "x.npy"), "--task", "2"])
    assert ended.value.code == 2 and "permuted or rotated" in capsys.readouterr().err
    model = load(folder)
    assert not torch.equal(model.sample(3, 4, task=1), model.sample(3, 4))  # each task has its own class 3
    assert torch.equal(model.sample(3, 4, task=2), model.sample(3, 4))


def test_privacy_says_what_the_distances_mean(finished, capsys):
    main(["privacy", str(finished), "-n", "40"])
    text = capsys.readouterr().out
    assert "test samples (unseen)" in text and "does not prove" in text


def on_a_terminal(*arguments):
    """What a command prints where its output is a terminal."""
    ours, theirs = pty.openpty()

    def attach():
        sys.stdout = sys.stderr = os.fdopen(theirs, "w", encoding="utf-8")

    process = begun(arguments, attach)
    os.close(theirs)
    printed = b""
    with contextlib.suppress(OSError):  # raised on Linux when the other end is closed
        while some := os.read(ours, 4096):
            printed += some
    os.close(ours)
    code, _, err = ended(process)
    assert code == 0, err
    return printed


def test_names_cannot_control_a_terminal_and_reach_a_pipe_as_they_are(tmp_path):
    x, y = np.random.default_rng(0).normal(size=(40, 3)), np.array(["\x1b[31mred", "blue\r\n\x9b"])[np.arange(40) % 2]
    np.savez(tmp_path / "data.npz", x=x, y=y)
    folder = finished_run(tmp_path / "\x1b[2J", f"stream.data={tmp_path / 'data.npz'}", "like=digits", *TINY)
    np.savez(tmp_path / "both.npz", x=x, y=y)
    printed = on_a_terminal("predict", folder, tmp_path / "both.npz")
    assert b"sample,label,seeds" in printed and not re.search(rb"[\x1b\x9b]|\xc2\x9b", printed)
    assert rb"\x1b[31mred" in printed or rb"blue\r\n\x9b" in printed
    printed = on_a_terminal("sample", folder, "--class", "\x1b[31mred", "-o", tmp_path / "\x1b[31m.npy")
    assert rb"\x1b[31m.npy" in printed and b"\x1b" not in printed
    command = [sys.executable, "-m", "prer", "predict", folder, tmp_path / "both.npz"]
    piped = subprocess.run(command, capture_output=True, check=True).stdout.decode()
    assert {row["label"] for row in csv.DictReader(io.StringIO(piped, newline=""))} <= set(y)
