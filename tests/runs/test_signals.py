"""Ctrl-C, SIGTERM and SIGKILL: a run is saved or goes on, and ends like a run that was never stopped."""

import itertools
import os
import shutil
import signal
from pathlib import Path

import pytest
from support.commands import begun, ended, outcome
from support.folders import RUN, assert_resumes, at_call, digest, events, only_run, save_every_epoch, send

from prer.runs.checkpoint import Checkpoint
from prer.runs.folder import RunFolder


@pytest.mark.parametrize("pace", ["usual", "often"])
@pytest.mark.parametrize(
    ("number", "at"), [*((signal.SIGINT, n) for n in range(1, 21, 3)), *((signal.SIGTERM, n) for n in (2, 9, 20))]
)
def test_a_signal_in_training_saves_the_run_and_it_ends_the_same(capsys, here, finished, number, at, pace):
    def before():
        if pace == "often":
            save_every_epoch()
        at_call(RunFolder, "event", at, send(number))

    assert len(events(finished)) == 20
    code, out, err = ended(begun(RUN, before))
    folder = only_run(here)
    assert (code, out) == (128 + number, "")
    assert err.splitlines()[-1] == f"interrupted and saved; resume with: prer resume runs/{folder.name}"
    assert Checkpoint(folder / "checkpoint").read() is not None
    assert_resumes(capsys, folder, finished)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("at", [1, 2, 3, 8])
def test_a_signal_while_a_checkpoint_is_written_waits_until_it_is_whole(capsys, here, finished, number, at):
    import prer.runs.checkpoint

    def before():
        save_every_epoch()
        at_call(prer.runs.checkpoint, "durable", at, send(number))

    code, _, err = ended(begun(RUN, before))
    assert code == 128 + number and "resume with: prer resume" in err
    assert not (only_run(here) / "checkpoint.new").exists()
    assert Checkpoint(only_run(here) / "checkpoint").read() is not None
    assert_resumes(capsys, only_run(here), finished)


@pytest.mark.parametrize(("number", "expected"), [(signal.SIGINT, 130), (signal.SIGTERM, -signal.SIGTERM)])
def test_a_signal_while_data_is_loading_ends_before_there_is_a_run(here, finished, number, expected):
    import prer.streams.config

    code, _, err = ended(begun(RUN, lambda: at_call(prer.streams.config, "read", 1, send(number))))
    assert code == expected and "Traceback" not in err  # the exit code of a shell is 143 for SIGTERM's own end
    assert not (here / "runs").exists()
    assert ended(begun(RUN))[0] == 0
    assert digest(only_run(here)) == digest(finished)


def test_a_second_interrupt_ends_at_once_and_what_was_saved_is_whole(capsys, here, finished):
    import prer.runs.checkpoint

    def before():
        save_every_epoch()
        at_call(RunFolder, "event", 9, send(signal.SIGINT))
        at_call(
            prer.runs.checkpoint, "durable", 13, send(signal.SIGINT)
        )  # in the checkpoint that the first one asked for

    code, _, err = ended(begun(RUN, before))
    assert (code, err) == (-signal.SIGINT, "")
    assert (only_run(here) / "checkpoint.new").exists()
    assert_resumes(capsys, only_run(here), finished)


def test_a_signal_at_the_very_end_names_the_folder_and_leaves_no_checkpoint(capsys, here, finished):
    import prer.runs.run

    for owner, name in ((prer.runs.run, "save"), (RunFolder, "finish")):
        code, _, err = ended(begun(RUN, lambda owner=owner, name=name: at_call(owner, name, 1, send(signal.SIGINT))))
        assert code == 130 and err.splitlines()[-1].endswith(f"prer resume runs/{only_run(here).name}")
        assert_resumes(capsys, only_run(here), finished)
        shutil.rmtree(here / "runs")


@pytest.mark.parametrize("at", range(1, 21))
def test_a_process_killed_between_any_two_writes_leaves_a_run_that_goes_on(capsys, here, finished, at):
    calls = itertools.count(1)

    def stepped(function):
        def calling(*arguments, **named):
            result = function(*arguments, **named)
            if next(calls) == at:
                send(signal.SIGKILL)()
            return result

        return calling

    def before():
        save_every_epoch()
        for owner, name in ((os, "fsync"), (Path, "rename"), (Path, "replace"), (shutil, "rmtree")):
            setattr(owner, name, stepped(getattr(owner, name)))

    assert ended(begun(RUN, before))[0] == -signal.SIGKILL
    if at > 1:
        assert_resumes(capsys, only_run(here), finished)
    else:  # nothing but a part of its experiment was written
        assert "is not a run folder" in outcome(capsys, "resume", only_run(here))[2]
        assert outcome(capsys, *RUN)[0] == 0 and digest(only_run(here)) == digest(finished)


@pytest.mark.parametrize("at", [1, 5])
def test_a_run_killed_before_its_first_checkpoint_begins_anew(capsys, here, finished, at):
    assert ended(begun(RUN, lambda: at_call(RunFolder, "event", at, send(signal.SIGKILL))))[0] == -signal.SIGKILL
    assert not (only_run(here) / "checkpoint").exists()
    assert_resumes(capsys, only_run(here), finished)
