"""Run folders for tests of faults: finished and stopped runs, copies of them, forged checksums."""

import hashlib
import itertools
import json
import os
import shutil
import signal
from pathlib import Path

import numpy as np
from support.commands import begun, ended, outcome

from prer.disk import checksum
from prer.runs.checkpoint import Checkpoint

TINY = ["learner.batch=8", "learner.epochs=2", "learner.hidden=[4]", "learner.embedding=3", "--seeds=2", "--device=cpu"]
PRER = ["learner.name=prer", "learner.epochs_autoencoder=2", "learner.density.epochs=2", "learner.density.blocks=1"]
RUN = ["run", "stream.data=my.npz", *PRER, *TINY, "--quiet"]
EPOCHS = 12  # of RUN: two tasks, three phases, two epochs


# -- runs --------------------------------------------------------------------------------------------------------------


def write_data(path, seed=0):
    """Write four classes of vectors to an .npz."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(48, 3)) + 2 * np.repeat(np.eye(4)[:, :3], 12, axis=0)
    np.savez(path, x=x, y=np.repeat(np.arange(4), 12))


def made(cwd, command=RUN):
    """The folder of a finished run, made by a process in `cwd`."""
    write_data(cwd / "my.npz")
    code, _, err = ended(begun(command, lambda: os.chdir(cwd)))
    assert code == 0, err
    return only_run(cwd)


def killed_run(cwd, after, command=RUN):
    """The folder of a run whose process was killed after so many checkpoints."""
    write_data(cwd / "my.npz")

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
        save_every_epoch()

    code, _, err = ended(begun(command, crash))
    assert code == -signal.SIGKILL, err
    return only_run(cwd)


def save_every_epoch():
    """Let runs of this process write a checkpoint after each epoch."""
    os.environ["PRER_CHECKPOINT_SECONDS"] = "0"
    from prer.runs.checkpoint import Pace

    Pace.due = lambda pace: True


def only_run(cwd):
    """The one run folder in ./runs."""
    (folder,) = (cwd / "runs").iterdir()
    return folder


def copied(folder, to):
    """A copy of a run folder, below `to`."""
    return Path(shutil.copytree(folder, to / folder.name))


# -- what a folder holds -----------------------------------------------------------------------------------------------


def digest(folder):
    """The digest in result.json."""
    return json.loads((folder / "result.json").read_text("utf-8"))["digest"]


def events(folder):
    """All events without their times."""
    lines = (folder / "events.jsonl").read_text("utf-8").splitlines()
    return [{key: value for key, value in json.loads(line).items() if key != "seconds"} for line in lines]


def contents(folder):
    """The bytes of every file, by its path in the folder."""
    return {str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*") if p.is_file() and not p.is_symlink()}


# -- forgeries ---------------------------------------------------------------------------------------------------------


def checkpoint_content(folder):
    """The content of checkpoint.json, without its checksum."""
    return json.loads((folder / "checkpoint/checkpoint.json").read_text("utf-8"))["content"]


def sign_checkpoint(folder, content=None, state=None):
    """Replace a checkpoint's content or tensors, with checksums that fit."""
    content = checkpoint_content(folder) if content is None else content
    if state is not None:
        (folder / "checkpoint/state.safetensors").write_bytes(state)
        content |= {"bytes": len(state), "sha256": hashlib.sha256(state).hexdigest()}
    whole = {"sha256": checksum(content), "content": content}
    (folder / "checkpoint/checkpoint.json").write_text(json.dumps(whole))


def sign_result(folder, **changes):
    """Change keys of result.json, with a checksum that fits."""
    result = json.loads((folder / "result.json").read_text()) | changes
    del result["sha256"]
    (folder / "result.json").write_text(json.dumps(result | {"sha256": checksum(result)}))


# -- faults ------------------------------------------------------------------------------------------------------------


def at_call(owner, name, number, happens):
    """Let something happen right after call `number` of a function."""
    function, calls = getattr(owner, name), itertools.count(1)

    def calling(*arguments, **named):
        result = function(*arguments, **named)
        if next(calls) == number:
            happens()
        return result

    setattr(owner, name, calling)


def send(number):
    """A function that sends a signal to its own process."""
    return lambda: os.kill(os.getpid(), number)


def assert_resumes(capsys, folder, finished):
    """Resume a run; it ends like the run that was never stopped."""
    code, _, err = outcome(capsys, "resume", folder, "--quiet")
    assert code == 0, err
    assert digest(folder) == digest(finished)
    assert events(folder) == events(finished)
    assert not (folder / "checkpoint").exists()
