"""A full disk, missing file handles, permissions, clocks: a run stops with a sentence and goes on later."""

import errno
import itertools
import json
import os
import re
import resource
from pathlib import Path

import pytest
from support.commands import begun, ended, outcome, without_privileges
from support.folders import RUN, assert_resumes, contents, copied, digest, only_run, save_every_epoch

from prer.runs.checkpoint import Checkpoint
from prer.runs.folder import RunFolder

FILES = ("experiment.toml", "environment.json", "events.jsonl", "checkpoint/checkpoint.json")
FILES += ("checkpoint/state.safetensors",)


def ends_well_later(capsys, folder, finished, process):
    """A process that a fault may have stopped says so in a sentence, and the run goes on without the fault."""
    code, _, err = ended(process)
    assert code in (0, 1, 2) and "Traceback" not in err, err
    if code:
        assert re.fullmatch(r"prer: [^\n]+\n", err), err
    if not any(folder.glob("runs/*/experiment.toml")):
        assert outcome(capsys, *RUN)[0] == 0
    elif code:
        assert_resumes(capsys, only_run(folder), finished)
    assert digest(only_run(folder)) == digest(finished)
    return code


@pytest.mark.parametrize("at", [1, 2, 3, 4, 5, 6, 11, 30, 40, 53, 54, 55, 56, 57])
def test_a_full_disk_stops_a_run_which_goes_on_when_there_is_room(capsys, here, finished, at):
    calls, fsync = itertools.count(1), os.fsync

    def full(handle):
        if next(calls) >= at:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        fsync(handle)

    def before():
        save_every_epoch()
        os.fsync = full

    code, _, err = ended(begun(RUN, before))
    if code == 0:
        assert at > 50 and digest(only_run(here)) == digest(finished)
        return
    assert code in (1, 2) and re.fullmatch(r"prer: cannot write [^\n]+: No space left on device[^\n]+\n", err), err
    if at > 1:
        assert_resumes(capsys, only_run(here), finished)
    else:
        assert outcome(capsys, *RUN)[0] == 0 and digest(only_run(here)) == digest(finished)


@pytest.mark.parametrize("limit", [100, 1000, 3000, 6000, 9000, 12_000])
def test_files_that_may_not_grow_stop_a_run_which_goes_on_when_they_may(capsys, here, finished, limit):
    def before():
        save_every_epoch()
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))

    assert ends_well_later(capsys, here, finished, begun(RUN, before)) in (1, 2)


def test_a_model_that_cannot_be_written_is_one_sentence(capsys, here, finished):
    def before():  # no checkpoints: the model is the first large file
        resource.setrlimit(resource.RLIMIT_FSIZE, (4500, resource.RLIM_INFINITY))

    assert (finished / "model/model.safetensors").stat().st_size > 4500 > (finished / "events.jsonl").stat().st_size
    assert ends_well_later(capsys, here, finished, begun(RUN, before)) == 2
    assert (only_run(here) / "result.json").exists()


@pytest.mark.parametrize("more", range(7))
def test_a_lack_of_file_handles_is_one_sentence(capsys, here, finished, more):
    def before():
        save_every_epoch()
        last = max(int(path.name) for path in Path("/proc/self/fd").iterdir())
        while os.open(os.devnull, os.O_RDONLY) <= last:
            pass  # fill the gaps: a handle gets the lowest number that is free
        resource.setrlimit(resource.RLIMIT_NOFILE, (last + 2 + more, last + 2 + more))

    code = ends_well_later(capsys, here, finished, begun(RUN, before))
    assert code or more > 1


@pytest.mark.parametrize("command", ["resume", "privacy"])
def test_a_folder_that_may_not_be_entered_is_skipped(run, finished, here, command):
    folder, closed = run if command == "resume" else copied(finished, here / "done"), here / "closed"
    about = json.loads((folder / "environment.json").read_text()) | {"folder": str(closed)}
    (folder / "environment.json").write_text(json.dumps(about))
    closed.mkdir()
    closed.chmod(0o000)
    try:
        code, out, err = ended(begun([command, folder], without_privileges))
    finally:
        closed.chmod(0o755)
    assert (code, err) == (0, "")  # the data lies where we are
    assert "Meaning: " in out
    assert digest(folder) == digest(finished)


def test_a_folder_that_may_not_be_written_is_refused_and_a_finished_run_is_shown_from_it(capsys, run, finished):
    before = contents(run)
    for folder in (run, run / "checkpoint"):
        folder.chmod(0o555)
    for file in contents(run):
        (run / file).chmod(0o444)
    try:
        code, _, err = ended(begun(["resume", run], without_privileges))
    finally:
        for folder in (run, run / "checkpoint"):
            folder.chmod(0o755)
    assert code == 2 and re.fullmatch(rf"prer: cannot write the run folder {run}: [^\n]+\n", err), err
    assert contents(run) == before
    done = copied(finished, run.parent / "done")
    done.chmod(0o555)
    try:
        for command in ("show", "resume"):
            code, out, err = ended(begun([command, done], without_privileges))
            assert (code, err) == (0, "") and digest(finished)[:16] in out
    finally:
        done.chmod(0o755)


def test_an_unreadable_file_of_a_run_is_one_sentence(run):
    for file in FILES:
        (run / file).chmod(0)
        code, _, err = ended(begun(["resume", run], without_privileges))
        (run / file).chmod(0o644)
        assert code in (0, 2) and "Traceback" not in err, err
        if file.startswith(("experiment", "checkpoint")):
            assert code == 2 and re.fullmatch(r"prer: [^\n]+\n", err)
            assert not (run / "result.json").exists()


def test_a_clock_that_goes_backwards_does_no_harm(capsys, monkeypatch, here, finished):
    now, written = itertools.count(2e9, -1e5), []
    monkeypatch.setattr("time.time", lambda: next(now))
    monkeypatch.setenv("PRER_CHECKPOINT_SECONDS", "0")
    write = Checkpoint.write
    monkeypatch.setattr(Checkpoint, "write", lambda self, saved: (write(self, saved), written.append(saved)))
    assert outcome(capsys, *RUN)[0] == 0
    assert digest(only_run(here)) == digest(finished) and written
    assert all(seconds >= 0 for seconds in json.loads((only_run(here) / "result.json").read_text())["seconds"].values())


@pytest.mark.parametrize("seconds", ["soon", "nan", "-1", ""])
def test_invalid_seconds_between_checkpoints_are_refused(capsys, monkeypatch, here, seconds):
    monkeypatch.setenv("PRER_CHECKPOINT_SECONDS", seconds)
    code, _, err = outcome(capsys, *RUN)
    assert code == 2 and f"PRER_CHECKPOINT_SECONDS is {seconds!r}; set it to a number of seconds" in err


def test_a_loss_that_is_no_number_ends_the_run_and_leaves_the_checkpoint_whole(capsys, here, finished):
    import prer.learners.prer

    def before():
        save_every_epoch()
        loss, calls = prer.learners.prer.mean_cross_entropy, itertools.count(1)
        prer.learners.prer.mean_cross_entropy = lambda *of: loss(*of) * (1 if next(calls) < 4 else float("nan"))

    code, _, err = ended(begun(RUN, before))
    assert code == 1
    assert re.fullmatch(
        r"prer: the loss of seed 0 became nan in task 1, phase 'head', epoch 2; try a lower learning rate\n", err
    ), err
    assert f"prer: {RunFolder(only_run(here)).failure}\n" == err
    saved = Checkpoint(only_run(here) / "checkpoint").read()
    assert saved is not None and saved.phases["head"].epochs == 1
    assert all(tensor.isfinite().all() for trained in saved.phases.values() for tensor in trained.tensors.values())
    assert_resumes(capsys, only_run(here), finished)  # with the events of a run that never failed
    assert RunFolder(only_run(here)).failure == ""
