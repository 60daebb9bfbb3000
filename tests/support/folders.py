"""Run folders for tests of faults: tiny runs, stopped ones, commands in a process of their own, forged checksums."""

import hashlib
import json
import os
import re
import shutil
import signal
import sys
import tempfile
import traceback
import warnings
from pathlib import Path

import numpy as np

from prer.cli.main import main
from prer.disk import checksum
from prer.runs.checkpoint import Checkpoint
from prer.runs.folder import RunFolder
from prer.runs.result import Result

TINY = ["learner.batch=8", "learner.epochs=2", "learner.hidden=[4]", "learner.embedding=3", "--seeds=2", "--device=cpu"]
PRER = ["learner.name=prer", "learner.epochs_autoencoder=2", "learner.epochs_flow=2", "learner.blocks=1"]
RUN = ["run", "stream.data=my.npz", *PRER, *TINY, "--quiet"]


class Crash(BaseException):
    """The process is gone."""


def data(path, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(48, 3)) + 2 * np.repeat(np.eye(4)[:, :3], 12, axis=0)
    np.savez(path, x=x, y=np.repeat(np.arange(4), 12))


def made(cwd, command=RUN):
    """A run by itself, in a folder below this one."""
    data(cwd / "my.npz")
    code, _, err = ended(begun(command, lambda: os.chdir(cwd)))
    assert code == 0, err
    (folder,) = (cwd / "runs").iterdir()
    return folder


def stopped(cwd, after, command=RUN):
    """A run whose process was gone when it had written so many checkpoints."""
    data(cwd / "my.npz")

    def crash():
        os.chdir(cwd)
        write, count = Checkpoint.write, 0

        def writing(self, saved):
            nonlocal count
            write(self, saved)
            count += 1
            if count == after:
                os.kill(os.getpid(), signal.SIGKILL)

        Checkpoint.write = writing
        often()

    code, _, err = ended(begun(command, crash))
    assert code == -signal.SIGKILL, err
    (folder,) = (cwd / "runs").iterdir()
    return folder


def often():
    """Save after each epoch."""
    os.environ["PRER_CHECKPOINT_SECONDS"] = "0"
    from prer.runs.checkpoint import Pace

    Pace.due = lambda pace: True


def begun(arguments, before=lambda: None, seconds=60):
    """Start a command in a process of its own, a copy of this one, to which `before` may do anything."""
    out, err = (tempfile.TemporaryFile("w+") for _ in range(2))  # noqa: SIM115, closed by `ended`
    with warnings.catch_warnings(action="ignore", category=DeprecationWarning):  # forks of threads; ours are idle
        child = os.fork()
    if child:
        return child, out, err
    code = 70
    try:
        signal.alarm(seconds)  # what hangs is ended by it
        signal.signal(signal.SIGINT, signal.default_int_handler)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        sys.stdout, sys.stderr = out, err
        before()
        main([str(argument) for argument in arguments])
        code = 0
    except SystemExit as end:
        code = end.code
    except BaseException:
        traceback.print_exc()
    finally:
        out.flush(), err.flush()
        os._exit(code)


def ended(process):
    """Exit code (negative where a signal ended it), output and errors, without warnings, of what was begun."""
    child, out, err = process
    _, status = os.waitpid(child, 0)
    texts = []
    for file in (out, err):
        file.seek(0)
        texts.append(file.read())
        file.close()
    err = "".join(line for line in texts[1].splitlines(keepends=True) if not line.startswith("warning: "))
    return os.waitstatus_to_exitcode(status), texts[0], err


def outcome(capsys, *arguments):
    """How a command ends in this process: exit code, output, and the one line about an error."""
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


def digest(folder):
    return json.loads((folder / "result.json").read_text("utf-8"))["digest"]


def events(folder):
    """All events but for their times."""
    lines = (folder / "events.jsonl").read_text("utf-8").splitlines()
    return [{key: value for key, value in json.loads(line).items() if key != "seconds"} for line in lines]


def contents(folder):
    return {str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*") if p.is_file() and not p.is_symlink()}


def copied(folder, to):
    """The same run at another place."""
    return Path(shutil.copytree(folder, to / folder.name))


def plain(folder):
    """What checkpoint.json holds."""
    return json.loads((folder / "checkpoint/checkpoint.json").read_text("utf-8"))["content"]


def sign(folder, content=None, state=None):
    """Write a checkpoint's content or tensors anew, and checksums that fit."""
    content = plain(folder) if content is None else content
    if state is not None:
        (folder / "checkpoint/state.safetensors").write_bytes(state)
        content |= {"bytes": len(state), "sha256": hashlib.sha256(state).hexdigest()}
    whole = {"sha256": checksum(content), "content": content}
    (folder / "checkpoint/checkpoint.json").write_text(json.dumps(whole))


def pretended(out, experiment, diagonals, bwts, health=(), **about):
    """The folder of a run that seems to have ended with these diagonals and BWTs, one of each for every seed."""
    record, tasks = RunFolder(out / experiment.folder), 5
    record.path.mkdir(parents=True)
    record.begin(experiment.to_toml())
    record.start({"data": "0" * 64})
    for event in health:
        record.event(event)
    matrix = np.stack(
        [np.tril(np.full((tasks, tasks), d + b), -1) + d * np.eye(tasks) for d, b in zip(diagonals, bwts, strict=True)]
    )
    matrix[:, *np.triu_indices(tasks, 1)] = np.nan
    kept = {"memory_floats": [100] * tasks, "memory_samples": [0] * tasks, "transient_floats": [0] * tasks}
    kept |= {"seconds": {"total": 12.5}, "digest": "f" * 64, "device": "cpu"} | about
    names = {"learner": experiment.learner.name, "stream": experiment.stream.name}
    untrained = np.full((len(matrix), tasks), np.nan)
    record.finish(Result(tuple(range(len(matrix))), matrix, untrained, **kept, **names).to_json())
    return record
