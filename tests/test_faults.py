"""Faults: whatever happens to a run, it ends with the result of the undisturbed one, or in a sentence that says why."""

import ctypes
import errno
import itertools
import json
import os
import re
import resource
import shutil
import signal
import tomllib
from pathlib import Path

import numpy as np
import pytest
from support.folders import (
    RUN,
    begun,
    contents,
    copied,
    data,
    digest,
    ended,
    events,
    made,
    often,
    outcome,
    plain,
    sign,
    stopped,
)

from prer.runs.checkpoint import Checkpoint
from prer.runs.folder import RunFolder

FILES = ("experiment.toml", "environment.json", "events.jsonl", "checkpoint/checkpoint.json")
FILES += ("checkpoint/state.safetensors",)
EPOCHS = 12  # two tasks, three phases, two epochs


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """The run that nothing happened to."""
    return made(tmp_path_factory.mktemp("whole"))


@pytest.fixture(scope="module")
def broken_off(tmp_path_factory):
    """A run that was gone after most of its epochs."""
    return stopped(tmp_path_factory.mktemp("stopped"), EPOCHS - 2)


@pytest.fixture
def run(broken_off, tmp_path):
    """The same, to be damaged."""
    return copied(broken_off, tmp_path)


@pytest.fixture
def here(tmp_path, monkeypatch):
    """An empty folder with the data."""
    monkeypatch.chdir(tmp_path)
    data(tmp_path / "my.npz")
    return tmp_path


def resumed(capsys, folder, whole):
    """Let a run go on, and see that it ends as the undisturbed one."""
    code, _, err = outcome(capsys, "resume", folder, "--quiet")
    assert code == 0, err
    assert digest(folder) == digest(whole)
    assert events(folder) == events(whole)
    assert not (folder / "checkpoint").exists()


def the_run(folder):
    (found,) = (folder / "runs").iterdir()
    return found


def at_call(owner, name, number, happens):
    """Let something happen right after one of the calls of a function; returns the function's place."""
    function, calls = getattr(owner, name), itertools.count(1)

    def calling(*arguments, **named):
        result = function(*arguments, **named)
        if next(calls) == number:
            happens()
        return result

    setattr(owner, name, calling)


def send(number):
    return lambda: os.kill(os.getpid(), number)


# -- signals ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("pace", ["usual", "often"])
@pytest.mark.parametrize(
    ("number", "at"), [*((signal.SIGINT, n) for n in range(1, 21, 3)), *((signal.SIGTERM, n) for n in (2, 9, 20))]
)
def test_a_signal_in_training_saves_the_run_and_it_ends_the_same(capsys, here, whole, number, at, pace):
    from prer.runs.folder import RunFolder

    def before():
        if pace == "often":
            often()
        at_call(RunFolder, "event", at, send(number))

    assert len(events(whole)) == 20
    code, out, err = ended(begun(RUN, before))
    folder = the_run(here)
    assert (code, out) == (128 + number, "")
    assert err.splitlines()[-1] == f"interrupted and saved; go on with: prer resume runs/{folder.name}"
    assert Checkpoint(folder / "checkpoint").read() is not None
    resumed(capsys, folder, whole)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("at", [1, 2, 3, 8])
def test_a_signal_while_a_checkpoint_is_written_waits_until_it_is_whole(capsys, here, whole, number, at):
    import prer.runs.checkpoint

    def before():
        often()
        at_call(prer.runs.checkpoint, "durable", at, send(number))

    code, _, err = ended(begun(RUN, before))
    assert code == 128 + number and "go on with: prer resume" in err
    assert not (the_run(here) / "checkpoint.new").exists()
    assert Checkpoint(the_run(here) / "checkpoint").read() is not None
    resumed(capsys, the_run(here), whole)


@pytest.mark.parametrize(("number", "expected"), [(signal.SIGINT, 130), (signal.SIGTERM, -signal.SIGTERM)])
def test_a_signal_while_data_is_loading_ends_before_there_is_a_run(here, whole, number, expected):
    import prer.streams.config

    code, _, err = ended(begun(RUN, lambda: at_call(prer.streams.config, "read", 1, send(number))))
    assert code == expected and "Traceback" not in err  # the exit code of a shell is 143 for SIGTERM's own end
    assert not (here / "runs").exists()
    assert ended(begun(RUN))[0] == 0
    assert digest(the_run(here)) == digest(whole)


def test_a_second_interrupt_ends_at_once_and_what_was_saved_is_whole(capsys, here, whole):
    import prer.runs.checkpoint
    from prer.runs.folder import RunFolder

    def before():
        often()
        at_call(RunFolder, "event", 9, send(signal.SIGINT))
        at_call(
            prer.runs.checkpoint, "durable", 13, send(signal.SIGINT)
        )  # in the checkpoint that the first one asked for

    code, _, err = ended(begun(RUN, before))
    assert (code, err) == (-signal.SIGINT, "")
    assert (the_run(here) / "checkpoint.new").exists()
    resumed(capsys, the_run(here), whole)


@pytest.mark.parametrize("at", range(1, 21))
def test_a_process_killed_between_any_two_writes_leaves_a_run_that_goes_on(capsys, here, whole, at):
    calls = itertools.count(1)

    def stepped(function):
        def calling(*arguments, **named):
            result = function(*arguments, **named)
            if next(calls) == at:
                send(signal.SIGKILL)()
            return result

        return calling

    def before():
        often()
        for owner, name in ((os, "fsync"), (Path, "rename"), (Path, "replace"), (shutil, "rmtree")):
            setattr(owner, name, stepped(getattr(owner, name)))

    assert ended(begun(RUN, before))[0] == -signal.SIGKILL
    if at > 1:
        resumed(capsys, the_run(here), whole)
    else:  # nothing but a part of its experiment was written
        assert "is not a run's folder" in outcome(capsys, "resume", the_run(here))[2]
        assert outcome(capsys, *RUN)[0] == 0 and digest(the_run(here)) == digest(whole)


# -- again -----------------------------------------------------------------------------------------------------------


def test_a_finished_run_that_is_resumed_stays_as_it_is(capsys, whole):
    before = contents(whole)
    code, out, _ = outcome(capsys, "resume", whole)
    assert code == 0 and digest(whole)[:16] in out
    assert contents(whole) == before


@pytest.mark.parametrize("at", [1, 5])
def test_a_run_killed_before_its_first_checkpoint_begins_anew(capsys, here, whole, at):
    from prer.runs.folder import RunFolder

    assert ended(begun(RUN, lambda: at_call(RunFolder, "event", at, send(signal.SIGKILL))))[0] == -signal.SIGKILL
    assert not (the_run(here) / "checkpoint").exists()
    resumed(capsys, the_run(here), whole)


def test_the_command_of_the_run_goes_on_as_resume_does(capsys, here, whole, broken_off):
    copied(broken_off, here / "runs")
    code, out, _ = outcome(capsys, *RUN)
    assert (code, out.strip()) == (0, f"runs/{whole.name}")
    assert digest(the_run(here)) == digest(whole)
    assert json.loads((the_run(here) / "environment.json").read_text())["resumed"][0]["forced"] == []


def test_two_cannot_go_on_with_one_run_at_the_same_time(capsys, run, whole):
    from prer.runs.folder import RunFolder

    reader, writer = os.pipe()
    at_event, go_on = os.pipe()

    def wait():
        os.write(writer, b"!")
        os.read(at_event, 1)

    first = begun(["resume", run, "--quiet"], lambda: at_call(RunFolder, "event", 1, wait))
    os.close(writer)  # so that reading ends, should the process
    assert os.read(reader, 1) == b"!"
    code, _, err = outcome(capsys, "resume", run)
    assert code == 2 and f"another process is running {run}; wait until it has ended, or stop it" in err
    os.write(go_on, b"!")
    assert ended(first)[0] == 0
    assert (digest(run), events(run)) == (digest(whole), events(whole))
    for handle in (reader, at_event, go_on):
        os.close(handle)


# -- changes ---------------------------------------------------------------------------------------------------------


def test_a_changed_experiment_is_refused_and_forced_only_with_a_note(capsys, run, whole):
    toml = run / "experiment.toml"
    toml.write_text(re.sub(r"(?m)^lr = 0.001", "lr = 0.002", toml.read_text()))
    before = contents(run)
    code, _, err = outcome(capsys, "resume", run)
    assert code == 2 and "learner.lr was 0.001 and is 0.002" in err and "--force" in err
    assert contents(run) == before
    assert outcome(capsys, "resume", run, "--force", "--quiet")[0] == 0
    noted = json.loads((run / "environment.json").read_text())["resumed"]
    assert [entry["forced"] for entry in noted] == [["experiment.learner.lr was 0.001 and is 0.002"]]
    assert digest(run) != digest(whole)


def test_an_experiment_that_does_not_fit_the_name_of_its_folder_is_refused(capsys, run, whole):
    for name in ("environment.json", "events.jsonl"):
        (run / name).unlink()
    shutil.rmtree(run / "checkpoint")
    toml = run / "experiment.toml"
    toml.write_text(re.sub(r"(?m)^lr = 0.001", "lr = 0.003", toml.read_text()))
    code, _, err = outcome(capsys, "resume", run)
    assert code == 2 and f"its hash was {whole.name[-8:]} and is" in err


@pytest.mark.parametrize("text", ["", "\n", "# nothing"])
def test_an_empty_experiment_is_no_run(capsys, here, text):
    """Also in a folder whose name has no hash: it would be the built-in experiment."""
    folder = here / "digits-foo-1234"
    folder.mkdir()
    (folder / "experiment.toml").write_text(text)
    for command in ("show", "resume"):
        code, out, err = outcome(capsys, command, folder)
        assert (code, out) == (2, "") and "is not a run's folder, its experiment.toml is empty" in err
    assert contents(folder) == {"experiment.toml": text.encode()}


def test_changed_data_is_refused_and_forced_only_with_a_note(capsys, monkeypatch, here, run, broken_off):
    about = json.loads((run / "environment.json").read_text())
    (run / "environment.json").write_text(json.dumps(about | {"folder": str(here)}))
    data(here / "my.npz", seed=1)
    code, _, err = outcome(capsys, "resume", run)
    assert code == 2 and re.search(r"data was '[0-9a-f]+' and is '[0-9a-f]+'", err)
    assert outcome(capsys, "resume", run, "--force", "--quiet")[0] == 0
    (noted,) = json.loads((run / "environment.json").read_text())["resumed"]
    assert noted["forced"][0].startswith("data was ")


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("torch", "1.0"),
        ("threads", 7),
        ("processor", "AVX1024"),
        ("device", "cuda"),
        ("prer", "0.0"),
        ("kernels", "C, avx1024, GCC 1.0"),
    ],
)
def test_another_machine_or_version_is_refused_and_forced_only_with_a_note(capsys, run, whole, key, value):
    content = plain(run)
    content["about"]["context"][key] = value
    sign(run, content)
    code, _, err = outcome(capsys, "resume", run)
    assert code == 2 and f"{key} was {value!r} and is " in err and "resume with --force" in err
    code, _, err = outcome(capsys, "resume", run, "--force", "--quiet")
    assert code == 0
    (noted,) = json.loads((run / "environment.json").read_text())["resumed"]
    assert len(noted["forced"]) == 1 and noted["forced"][0].startswith(f"{key} was {value!r}")
    assert digest(run) == digest(whole)  # here it was only said to be another


def test_a_run_goes_on_at_another_place_and_from_another_folder(capsys, monkeypatch, run, whole, tmp_path):
    moved = run.rename(tmp_path / "renamed")
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    assert tomllib.loads((moved / "experiment.toml").read_text())["stream"]["data"] == "my.npz"
    resumed(capsys, Path("../renamed"), whole)
    assert list((tmp_path / "elsewhere").iterdir()) == []


# -- the system ------------------------------------------------------------------------------------------------------


def ends_well_later(capsys, folder, whole, process):
    """A process that a fault may have stopped says so in a sentence, and the run goes on without the fault."""
    code, _, err = ended(process)
    assert code in (0, 1, 2) and "Traceback" not in err, err
    if code:
        assert re.fullmatch(r"prer: [^\n]+\n", err), err
    if not any(folder.glob("runs/*/experiment.toml")):
        assert outcome(capsys, *RUN)[0] == 0
    elif code:
        resumed(capsys, the_run(folder), whole)
    assert digest(the_run(folder)) == digest(whole)
    return code


@pytest.mark.parametrize("at", [1, 2, 3, 4, 5, 6, 11, 30, 40, 53, 54, 55, 56, 57])
def test_a_full_disk_stops_a_run_which_goes_on_when_there_is_room(capsys, here, whole, at):
    calls, fsync = itertools.count(1), os.fsync

    def full(handle):
        if next(calls) >= at:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        fsync(handle)

    def before():
        often()
        os.fsync = full

    code, _, err = ended(begun(RUN, before))
    if code == 0:
        assert at > 50 and digest(the_run(here)) == digest(whole)
        return
    assert code in (1, 2) and re.fullmatch(r"prer: cannot write [^\n]+: No space left on device[^\n]+\n", err), err
    if at > 1:
        resumed(capsys, the_run(here), whole)
    else:
        assert outcome(capsys, *RUN)[0] == 0 and digest(the_run(here)) == digest(whole)


@pytest.mark.parametrize("limit", [100, 1000, 3000, 6000, 9000, 12_000])
def test_files_that_may_not_grow_stop_a_run_which_goes_on_when_they_may(capsys, here, whole, limit):
    def before():
        often()
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))

    assert ends_well_later(capsys, here, whole, begun(RUN, before)) in (1, 2)


def test_a_model_that_cannot_be_written_is_said_in_a_sentence(capsys, here, whole):
    def before():  # no checkpoints: the model is the first large file
        resource.setrlimit(resource.RLIMIT_FSIZE, (4500, resource.RLIM_INFINITY))

    assert (whole / "model/model.safetensors").stat().st_size > 4500 > (whole / "events.jsonl").stat().st_size
    assert ends_well_later(capsys, here, whole, begun(RUN, before)) == 2
    assert (the_run(here) / "result.json").exists()


@pytest.mark.parametrize("more", range(7))
def test_a_lack_of_file_handles_is_said_in_a_sentence(capsys, here, whole, more):
    def before():
        often()
        last = max(int(path.name) for path in Path("/proc/self/fd").iterdir())
        while os.open(os.devnull, os.O_RDONLY) <= last:
            pass  # fill the gaps: a handle gets the lowest number that is free
        resource.setrlimit(resource.RLIMIT_NOFILE, (last + 2 + more, last + 2 + more))

    code = ends_well_later(capsys, here, whole, begun(RUN, before))
    assert code or more > 1


def without_privileges():
    """Be bound by permissions as others are, even as root."""

    class Header(ctypes.Structure):
        _fields_ = (("version", ctypes.c_uint32), ("process", ctypes.c_int))

    nothing = (ctypes.c_uint32 * 6)()
    assert ctypes.CDLL(None).capset(ctypes.byref(Header(0x20080522, 0)), nothing) == 0


@pytest.mark.parametrize("command", ["resume", "privacy"])
def test_a_folder_that_may_not_be_entered_is_not(run, whole, here, command):
    folder, closed = run if command == "resume" else copied(whole, here / "done"), here / "closed"
    about = json.loads((folder / "environment.json").read_text()) | {"folder": str(closed)}
    (folder / "environment.json").write_text(json.dumps(about))
    closed.mkdir()
    closed.chmod(0o000)
    try:
        code, out, err = ended(begun([command, folder], without_privileges))
    finally:
        closed.chmod(0o755)
    assert (code, err) == (0, "")  # the data lies where we are
    assert "It means" in out
    assert digest(folder) == digest(whole)


def test_a_folder_that_may_not_be_written_is_refused_and_a_finished_run_is_shown_from_it(capsys, run, whole):
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
    assert code == 2 and re.fullmatch(rf"prer: cannot write the run's folder {run}: [^\n]+\n", err), err
    assert contents(run) == before
    done = copied(whole, run.parent / "done")
    done.chmod(0o555)
    try:
        for command in ("show", "resume"):
            code, out, err = ended(begun([command, done], without_privileges))
            assert (code, err) == (0, "") and digest(whole)[:16] in out
    finally:
        done.chmod(0o755)


def test_an_unreadable_file_of_a_run_is_said_in_a_sentence(run):
    for file in FILES:
        (run / file).chmod(0)
        code, _, err = ended(begun(["resume", run], without_privileges))
        (run / file).chmod(0o644)
        assert code in (0, 2) and "Traceback" not in err, err
        if file.startswith(("experiment", "checkpoint")):
            assert code == 2 and re.fullmatch(r"prer: [^\n]+\n", err)
            assert not (run / "result.json").exists()


def test_a_clock_that_goes_backwards_does_no_harm(capsys, monkeypatch, here, whole):
    now, written = itertools.count(2e9, -1e5), []
    monkeypatch.setattr("time.time", lambda: next(now))
    monkeypatch.setenv("PRER_CHECKPOINT_SECONDS", "0")
    write = Checkpoint.write
    monkeypatch.setattr(Checkpoint, "write", lambda self, saved: (write(self, saved), written.append(saved)))
    assert outcome(capsys, *RUN)[0] == 0
    assert digest(the_run(here)) == digest(whole) and written
    assert all(seconds >= 0 for seconds in json.loads((the_run(here) / "result.json").read_text())["seconds"].values())


@pytest.mark.parametrize("seconds", ["soon", "nan", "-1", ""])
def test_seconds_between_checkpoints_that_are_none_are_refused(capsys, monkeypatch, here, seconds):
    monkeypatch.setenv("PRER_CHECKPOINT_SECONDS", seconds)
    code, _, err = outcome(capsys, *RUN)
    assert code == 2 and f"PRER_CHECKPOINT_SECONDS is {seconds!r}; give a number of seconds" in err


# -- the files -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("file", [*FILES, "run.lock", "checkpoint"])
def test_a_file_that_is_missing_is_named_or_not_needed(capsys, monkeypatch, run, broken_off, whole, file):
    monkeypatch.chdir(broken_off.parents[1])  # where its data lies
    shutil.rmtree(run / file) if file == "checkpoint" else (run / file).unlink(missing_ok=True)
    code, _, err = outcome(capsys, "resume", run, "--quiet")
    needed = {"experiment.toml": "is not a run's folder", "checkpoint/checkpoint.json": "damaged"}
    needed |= {"checkpoint/state.safetensors": "damaged"}
    if file in needed:
        assert code == 2 and needed[file] in err
        assert not (run / "result.json").exists()
    else:
        assert code == 0 and digest(run) == digest(whole)


@pytest.mark.parametrize("file", FILES)
def test_flipped_bits_never_give_another_result(capsys, broken_off, whole, tmp_path, file):
    rng, codes = np.random.default_rng(FILES.index(file)), []
    for number in range(25):
        run = copied(broken_off, tmp_path / str(number))
        damaged = bytearray((run / file).read_bytes())
        damaged[rng.integers(len(damaged))] ^= 1 << int(rng.integers(8))
        (run / file).write_bytes(damaged)
        code, _, _ = outcome(capsys, "resume", run, "--quiet")
        assert digest(run) == digest(whole) if code == 0 else not (run / "result.json").exists()
        codes.append(code)
        shutil.rmtree(run)
    assert 2 in codes or file == "events.jsonl"


def test_flipped_bits_in_a_result_are_noticed(capsys, whole, tmp_path):
    rng, right = np.random.default_rng(0), outcome(capsys, "show", whole)[1].splitlines()[:-1]
    for number in range(60):
        run = copied(whole, tmp_path / str(number))
        damaged = bytearray((run / "result.json").read_bytes())
        damaged[rng.integers(len(damaged))] ^= 1 << int(rng.integers(8))
        (run / "result.json").write_bytes(damaged)
        for command in ("show", "resume"):
            code, out, err = outcome(capsys, command, run)
            if code == 0:
                assert out.splitlines()[:-1] == right
            else:
                assert code == 2 and "result.json" in err and "delete it and run again" in err


def test_a_last_event_that_was_torn_is_written_anew(capsys, run, whole):
    file = run / "events.jsonl"
    file.write_bytes(file.read_bytes() + b'{"event": "epoch", "task": 1, "pha')
    resumed(capsys, run, whole)


def test_events_after_the_checkpoint_come_once(capsys, run, whole):
    file = run / "events.jsonl"
    file.write_bytes(file.read_bytes() + file.read_bytes())
    resumed(capsys, run, whole)


def test_a_loss_that_is_no_number_ends_the_run_and_leaves_the_checkpoint_whole(capsys, here, whole):
    import prer.learners.prer

    def before():
        often()
        loss, calls = prer.learners.prer.mean_cross_entropy, itertools.count(1)
        prer.learners.prer.mean_cross_entropy = lambda *of: loss(*of) * (1 if next(calls) < 4 else float("nan"))

    code, _, err = ended(begun(RUN, before))
    assert code == 1
    assert re.fullmatch(
        r"prer: the loss of seed 0 became nan in task 1, phase 'head', epoch 2; try a lower learning rate\n", err
    ), err
    assert f"prer: {RunFolder(the_run(here)).failure}\n" == err
    saved = Checkpoint(the_run(here) / "checkpoint").read()
    assert saved is not None and saved.phases["head"].epochs == 1
    assert all(tensor.isfinite().all() for trained in saved.phases.values() for tensor in trained.tensors.values())
    resumed(capsys, the_run(here), whole)  # with the events of a run that never failed
    assert RunFolder(the_run(here)).failure == ""


# -- what a review found -----------------------------------------------------------------------------------------------


def test_a_run_that_another_process_finishes_meanwhile_is_not_trained_again(capsys, here, whole, monkeypatch):
    from prer.streams.config import StreamConfig

    build, first = StreamConfig.build, []

    def building(source, *about):
        if not first:
            first.append(b"")
            assert ended(begun(RUN))[0] == 0  # the copy finds that it is the second
            first[0] = (the_run(here) / "result.json").read_bytes()
        return build(source, *about)

    monkeypatch.setattr(StreamConfig, "build", building)
    assert outcome(capsys, *RUN)[0] == 0
    assert (the_run(here) / "result.json").read_bytes() == first[0]  # its times would be others
    assert events(the_run(here)) == events(whole)


def test_a_signal_at_the_very_end_names_the_folder_and_leaves_no_checkpoint(capsys, here, whole):
    import prer.runs.run
    from prer.runs.folder import RunFolder

    for owner, name in ((prer.runs.run, "save_model"), (RunFolder, "finish")):
        code, _, err = ended(begun(RUN, lambda owner=owner, name=name: at_call(owner, name, 1, send(signal.SIGINT))))
        assert code == 130 and err.splitlines()[-1].endswith(f"prer resume runs/{the_run(here).name}")
        resumed(capsys, the_run(here), whole)
        shutil.rmtree(here / "runs")
