"""Commands in this process, in a fork of it, and in a new Python."""

import ctypes
import json
import os
import re
import resource
import signal
import subprocess
import sys
import tempfile
import time
import traceback
import warnings
from pathlib import Path

import pytest

import prer
from prer.cli.main import main

COMMAND = [sys.executable, "-m", "prer"]
NAIVE = ("learner.name=naive", "learner.epochs=1")
NAIVE_RUN = ("run", *NAIVE, "--seeds", "2", "--device", "cpu")  # on the digits
TINY_PRER = ("learner.epochs=1", "learner.epochs_autoencoder=1", "learner.density.epochs=1", "learner.density.blocks=1")
ROOT = str(Path(prer.__file__).parents[1])


# -- in this process ---------------------------------------------------------------------------------------------------


def outcome(capsys, *arguments):
    """Exit code, output and errors of a command; where it fails, its error is one printable line."""
    code = 0
    try:
        main([str(argument) for argument in arguments])
    except SystemExit as end:
        code = end.code
    out, err = capsys.readouterr()
    if code:
        assert code in (1, 2) and re.fullmatch(r"prer: [^\n]+\n", err), err
        assert err.strip().isprintable()
    return code, out, err


def said(capsys, *arguments):
    """What a command prints that succeeds; it may only warn on standard error."""
    main([str(argument) for argument in arguments])
    out, err = capsys.readouterr()
    assert all(line.startswith("warning: ") for line in err.splitlines())
    return out


def refused(capsys, *arguments):
    """The one line with which a command refuses wrong input."""
    with pytest.raises(SystemExit) as caught:
        main([str(argument) for argument in arguments])
    out, err = capsys.readouterr()
    assert (caught.value.code, out) == (2, "")
    assert re.fullmatch(r"prer: [^\n]+\n", err), err
    return err


def reproduced(capsys, *arguments, code=0):
    """What `prer reproduce` prints, and its sentence where it does not end well."""
    try:
        main(["reproduce", *map(str, arguments)])
        assert code == 0
    except SystemExit as end:
        assert end.code == code
    out, err = capsys.readouterr()
    assert not err if code == 0 else re.fullmatch(r"prer: [^\n]+\n", err), err
    return out, err


def strict(text):
    """JSON as the standard has it, without NaN and Infinity."""

    def refuse(constant):
        raise AssertionError(constant)

    return json.loads(text, parse_constant=refuse)


def strict_events(run):
    """All events of a run folder, with their times."""
    return [strict(line) for line in (run / "events.jsonl").read_text("utf-8").splitlines()]


# -- in a fork of this process -----------------------------------------------------------------------------------------


def begun(arguments, before=lambda: None, seconds=60):
    """Start a command in a fork of this process, in which `before` may change anything first."""

    def work():
        before()
        main([str(argument) for argument in arguments])

    return forked(work, seconds)


def forked(work, seconds=60):
    """Call a function in a fork of this process."""
    out, err = (tempfile.TemporaryFile("w+") for _ in range(2))  # noqa: SIM115, closed by `ended`
    with warnings.catch_warnings(action="ignore", category=DeprecationWarning):  # forks of threads; ours are idle
        child = os.fork()
    if child:
        return child, out, err
    code = 70
    try:
        signal.alarm(seconds)  # ends what hangs
        signal.signal(signal.SIGINT, signal.default_int_handler)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        sys.stdout, sys.stderr = out, err
        work()
        code = 0
    except SystemExit as end:
        code = end.code
    except BaseException:
        traceback.print_exc()
    finally:
        out.flush(), err.flush()
        os._exit(code)


def ended(process):
    """Exit code (negative: a signal), output, and errors without warnings, of what `begun` or `forked` has started."""
    child, out, err = process
    _, status = os.waitpid(child, 0)
    texts = []
    for file in (out, err):
        file.seek(0)
        texts.append(file.read())
        file.close()
    err = "".join(line for line in texts[1].splitlines(keepends=True) if not line.startswith("warning: "))
    return os.waitstatus_to_exitcode(status), texts[0], err


def bounded(*arguments, gigabytes=2, seconds=20):
    """Exit code and error of a command with limited memory and time; it ends in a sentence or well."""

    begin = time.monotonic()
    code, _, err = ended(begun(arguments, lambda: limit_memory(gigabytes), seconds))
    assert code in (0, 1, 2) and "Traceback" not in err, (code, err)
    assert code == 0 or re.fullmatch(r"prer: [^\n]+\n", err), err
    assert "out of memory" not in err
    assert time.monotonic() - begin < seconds
    return code, err


def limit_memory(gigabytes):
    """Let this process allocate so much more than it has."""
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + int(gigabytes * 2**30),) * 2)


def without_privileges():
    """Be bound by permissions as others are, even as root."""

    class Header(ctypes.Structure):
        _fields_ = (("version", ctypes.c_uint32), ("process", ctypes.c_int))

    nothing = (ctypes.c_uint32 * 6)()
    assert ctypes.CDLL(None).capset(ctypes.byref(Header(0x20080522, 0)), nothing) == 0


# -- in a new Python ---------------------------------------------------------------------------------------------------


def environment(**more):
    """The environment of a new Python that finds this package and computes with one thread."""
    path = os.pathsep.join([ROOT, *filter(None, [os.environ.get("PYTHONPATH")])])
    return os.environ | {"OMP_NUM_THREADS": "1", "PYTHONPATH": path} | more


def python(*arguments, cwd=".", **more):
    """A finished new Python."""
    command = [sys.executable, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, cwd=cwd, env=environment(**more))


def printed(*arguments, **more):
    """What a new Python prints that succeeds without errors."""
    done = python(*arguments, **more)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def killed(script, folder, *options):
    """What a script of benchmarks/ that kills processes has measured; it found no fault."""
    file = folder / "measured.json"
    path = Path(__file__).parents[2] / "benchmarks" / script
    command = [sys.executable, str(path), "--json", str(file), *options]
    done = subprocess.run(command, env=environment(), capture_output=True, text=True)
    assert file.exists(), done.stdout + done.stderr
    measured = json.loads(file.read_text())
    assert measured["faults"] == []
    assert done.returncode == 0
    return measured
