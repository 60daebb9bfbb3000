"""Standard output and standard error of commands: full, closed, or without some characters."""

import io
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from support.commands import COMMAND, begun, ended, environment
from support.folders import RUN, digest, made

from prer.errors import RunError
from prer.terminal.streams import Output

C_LOCALE = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
NO_ROOM = "No space left on device"
LOUD = [word for word in RUN if word != "--quiet"]
needs_full = pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A finished run in ./runs, and what predict is to be asked in x.npy."""
    folder = made(tmp_path_factory.mktemp("run"))
    np.save(folder.parents[1] / "x.npy", np.zeros((3, 3), np.float32))
    return folder


def process(words, cwd, encoding=None, **streams):
    """Start a command in a new Python, with the given variables for its encoding."""
    known = {key: value for key, value in environment().items() if key not in ("PYTHONIOENCODING", "FORCE_COLOR")}
    streams = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE} | streams
    return subprocess.Popen([*COMMAND, *map(str, words)], cwd=cwd, env=known | (encoding or {}), **streams)


def finished(process):
    """Exit code, output as bytes and errors as text."""
    out, err = process.communicate(timeout=120)
    return process.returncode, out, (err or b"").decode()


# -- full ------------------------------------------------------------------------------------------------------------


@needs_full
@pytest.mark.parametrize(
    "words",
    [["show", "RUN"], ["show", "runs"], ["predict", "RUN", "x.npy", "--task", "1"], ["data", "list"], ["--help"]],
    ids=" ".join,
)
def test_a_full_standard_output_is_named(run, words):
    words = [run if word == "RUN" else word for word in words]
    with Path("/dev/full").open("wb") as full:
        code, _, err = finished(process(words, run.parents[1], stdout=full))
    assert (code, err) == (1, f"prer: cannot write to standard output: {NO_ROOM}\n")


@needs_full
def test_a_run_with_full_output_names_the_stream_and_goes_on_later(run, tmp_path):
    np.savez(tmp_path / "my.npz", **np.load(run.parents[1] / "my.npz"))
    with Path("/dev/full").open("wb") as full:
        code, _, err = finished(process(LOUD, tmp_path, stdout=full))
    assert (code, err) == (1, f"prer: cannot write to standard output: {NO_ROOM}\n")
    (folder,) = (tmp_path / "runs").iterdir()
    with Path("/dev/full").open("wb") as full:
        code, _, err = finished(process(["resume", folder], tmp_path, stdout=full))
    assert (code, err) == (1, f"prer: cannot write to standard output: {NO_ROOM}\n")
    assert finished(process(["resume", folder], tmp_path))[0] == 0
    assert digest(folder) == digest(run)


@needs_full
def test_a_full_standard_error_changes_no_exit_code(run):
    with Path("/dev/full").open("wb") as full:
        assert finished(process(["show", "nowhere"], run.parent, stderr=full))[:2] == (2, b"")
        assert finished(process(["show"], run.parent, stderr=full))[:2] == (2, b"")
        assert finished(process(["show", run], run.parent, stderr=full))[0] == 0


# -- closed ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "words", [["show", "RUN"], ["--help"], ["data", "list"], LOUD], ids=["show", "help", "list", "run"]
)
def test_a_closed_pipe_ends_a_command_silently(run, tmp_path, words):
    np.savez(tmp_path / "my.npz", **np.load(run.parents[1] / "my.npz"))
    begun = process([run if word == "RUN" else word for word in words], tmp_path)
    begun.stdout.close()
    assert begun.stderr.read() == b""
    begun.stderr.close()
    assert begun.wait(120) == 141  # as a shell says it of a program that SIGPIPE has ended


@pytest.mark.parametrize("words", [["show", "RUN"], ["data", "list"]], ids=" ".join)
def test_commands_run_without_standard_output(run, words):
    words = [*COMMAND, *(str(run) if word == "RUN" else word for word in words)]
    code = f"import os, sys; os.close(1); os.execv(sys.executable, {words!r})"
    done = subprocess.run([sys.executable, "-c", code], env=environment(), capture_output=True)
    assert (done.returncode, done.stderr) == (0, b"")


def test_predictions_are_written_without_standard_error(run):
    words = [*COMMAND, "predict", str(run), str(run.parents[1] / "x.npy"), "--task", "1"]
    code = f"import os, sys; os.close(2); os.execv(sys.executable, {words!r})"
    done = subprocess.run([sys.executable, "-c", code], env=environment(), capture_output=True)
    assert (done.returncode, len(done.stdout.splitlines())) == (0, 4)
    wrong = code.replace("x.npy", "nothing.npy")
    assert subprocess.run([sys.executable, "-c", wrong], env=environment()).returncode == 2


# -- encodings -------------------------------------------------------------------------------------------------------


ENCODINGS = {  # as Python is told, and what it makes of that
    "ascii": ({"PYTHONIOENCODING": "ascii"}, ("ascii", "strict")),
    "cp437": ({"PYTHONIOENCODING": "cp437"}, ("cp437", "strict")),
    "C": (C_LOCALE, ("ascii", "surrogateescape")),
}


def written(words, cwd, name):
    """Exit code, output as bytes and errors of a command in an encoding; in a new Python where that is quick."""
    told, (encoding, errors) = ENCODINGS[name]
    if words[0] == "show" or name == "C":
        return finished(process(words, cwd, told))

    def before():  # a fork has imported torch already
        os.chdir(cwd)
        sys.stdout = io.TextIOWrapper((cwd / "out").open("wb", buffering=0), encoding, errors)

    code, _, err = ended(begun(words, before))
    return code, (cwd / "out").read_bytes(), err


@pytest.mark.parametrize("name", ENCODINGS)
@pytest.mark.parametrize("command", ["show", "run"])
def test_characters_that_an_encoding_lacks_are_written_in_ascii(run, tmp_path, name, command):
    np.savez(tmp_path / "my.npz", **np.load(run.parents[1] / "my.npz"))
    code, out, err = written(["show", run] if command == "show" else LOUD, tmp_path, name)
    assert (code, err) == (0, "")
    lines = out.decode(ENCODINGS[name][1][0]).splitlines()
    assert any("Digest of the final state" in line for line in lines)
    (accuracy,) = [line for line in lines if line.startswith("| Accuracy ")]
    assert (" ± " in accuracy) if name == "cp437" else (" +-" in accuracy)
    table = lines[lines.index(accuracy) - 3 :][:8]
    assert len({len(line) for line in table}) == 1  # what stands in place of ± is as wide


def test_names_that_cannot_be_encoded_are_escaped(tmp_path):
    code, out, err = finished(process(["show", "n\u00e4\u2713"], tmp_path, {"PYTHONIOENCODING": "ascii"}))
    assert (code, out) == (2, b"") and err.startswith(r"prer: n\xe4\u2713 is not a run folder")


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "cp1252", "utf-8", "utf-16"])
def test_every_text_can_be_written(encoding):
    file = io.TextIOWrapper(io.BytesIO(), encoding=encoding)
    text = "a ± b \u2713 \U0001f600 \udcff é\n"
    assert Output(file, "standard output").write(text) > 0
    file.flush()
    written = file.buffer.getvalue().decode(encoding)
    assert written.startswith(("a ± b", "a +-b")) and written.endswith("\n") and "\\udcff" in written


def test_an_error_that_click_swallows_is_raised_by_the_next_write():
    class Full(io.StringIO):
        def write(self, text):
            raise OSError(28, NO_ROOM)

    stream = Output(Full(), "standard output")
    assert stream.write("") == 0
    with pytest.raises(RunError, match="standard output"):
        stream.write("x")
