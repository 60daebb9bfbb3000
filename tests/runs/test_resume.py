"""`resume`: a run goes on where it was stopped, and refuses what has changed since."""

import json
import os
import re
import shutil
import tomllib
from pathlib import Path

import pytest
from support.commands import begun, ended, outcome
from support.folders import (
    RUN,
    assert_resumes,
    at_call,
    checkpoint_content,
    contents,
    copied,
    digest,
    events,
    only_run,
    sign_checkpoint,
    write_data,
)

from prer.runs.folder import RunFolder


def test_a_finished_run_that_is_resumed_stays_as_it_is(capsys, finished):
    before = contents(finished)
    code, out, _ = outcome(capsys, "resume", finished)
    assert code == 0 and digest(finished)[:16] in out
    assert contents(finished) == before


def test_the_command_of_the_run_goes_on_as_resume_does(capsys, here, finished, stopped):
    copied(stopped, here / "runs")
    code, out, _ = outcome(capsys, *RUN)
    assert (code, out.strip()) == (0, f"runs/{finished.name}")
    assert digest(only_run(here)) == digest(finished)
    assert json.loads((only_run(here) / "environment.json").read_text())["resumed"][0]["forced"] == []


def test_two_cannot_go_on_with_one_run_at_the_same_time(capsys, run, finished):
    reader, writer = os.pipe()
    at_event, go_on = os.pipe()

    def wait():
        os.write(writer, b"!")
        os.read(at_event, 1)

    first = begun(["resume", run, "--quiet"], lambda: at_call(RunFolder, "event", 1, wait))
    os.close(writer)  # so that reading ends, should the process
    assert os.read(reader, 1) == b"!"
    code, _, err = outcome(capsys, "resume", run)
    assert code == 2 and f"another process is writing {run}; wait until it ends, or stop it" in err
    os.write(go_on, b"!")
    assert ended(first)[0] == 0
    assert (digest(run), events(run)) == (digest(finished), events(finished))
    for handle in (reader, at_event, go_on):
        os.close(handle)


def test_a_run_that_another_process_finishes_meanwhile_is_not_trained_again(capsys, here, finished, monkeypatch):
    from prer.streams.config import StreamConfig

    build, first = StreamConfig.build, []

    def building(config, *about):
        if not first:
            first.append(b"")
            assert ended(begun(RUN))[0] == 0  # the copy finds that it is the second
            first[0] = (only_run(here) / "result.json").read_bytes()
        return build(config, *about)

    monkeypatch.setattr(StreamConfig, "build", building)
    assert outcome(capsys, *RUN)[0] == 0
    assert (only_run(here) / "result.json").read_bytes() == first[0]  # its times would be others
    assert events(only_run(here)) == events(finished)


def test_a_run_goes_on_at_another_place_and_from_another_folder(capsys, monkeypatch, run, finished, tmp_path):
    moved = run.rename(tmp_path / "renamed")
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    assert tomllib.loads((moved / "experiment.toml").read_text())["stream"]["data"] == "my.npz"
    assert_resumes(capsys, Path("../renamed"), finished)
    assert list((tmp_path / "elsewhere").iterdir()) == []


# -- what has changed -------------------------------------------------------------------------------------------------


def test_a_changed_experiment_is_refused_and_forced_only_with_a_note(capsys, run, finished):
    toml = run / "experiment.toml"
    toml.write_text(re.sub(r"(?m)^lr = 0.001", "lr = 0.002", toml.read_text(), count=1))
    before = contents(run)
    code, _, err = outcome(capsys, "resume", run)
    assert code == 2 and "learner.lr was 0.001 and is 0.002" in err and "--force" in err
    assert contents(run) == before
    assert outcome(capsys, "resume", run, "--force", "--quiet")[0] == 0
    noted = json.loads((run / "environment.json").read_text())["resumed"]
    assert [entry["forced"] for entry in noted] == [["experiment.learner.lr was 0.001 and is 0.002"]]
    assert digest(run) != digest(finished)


def test_an_experiment_that_does_not_fit_the_name_of_its_folder_is_refused(capsys, run, finished):
    for name in ("environment.json", "events.jsonl"):
        (run / name).unlink()
    shutil.rmtree(run / "checkpoint")
    toml = run / "experiment.toml"
    toml.write_text(re.sub(r"(?m)^lr = 0.001", "lr = 0.003", toml.read_text()))
    code, _, err = outcome(capsys, "resume", run)
    assert code == 2 and f"its hash was {finished.name[-8:]} and is" in err


@pytest.mark.parametrize("text", ["", "\n", "# nothing"])
def test_an_empty_experiment_is_no_run(capsys, here, text):
    """Also in a folder whose name has no hash: it would be the built-in experiment."""
    folder = here / "digits-foo-1234"
    folder.mkdir()
    (folder / "experiment.toml").write_text(text)
    for command in ("show", "resume"):
        code, out, err = outcome(capsys, command, folder)
        assert (code, out) == (2, "") and "is not a run folder: its experiment.toml cannot be read" in err
    assert contents(folder) == {"experiment.toml": text.encode()}


def test_changed_data_is_refused_and_forced_only_with_a_note(capsys, monkeypatch, here, run, stopped):
    about = json.loads((run / "environment.json").read_text())
    (run / "environment.json").write_text(json.dumps(about | {"folder": str(here)}))
    write_data(here / "my.npz", seed=1)
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
def test_another_machine_or_version_is_refused_and_forced_only_with_a_note(capsys, run, finished, key, value):
    content = checkpoint_content(run)
    content["about"]["context"][key] = value
    sign_checkpoint(run, content)
    code, _, err = outcome(capsys, "resume", run)
    assert code == 2 and f"{key} was {value!r} and is " in err and "resume with --force" in err
    code, _, err = outcome(capsys, "resume", run, "--force", "--quiet")
    assert code == 0
    (noted,) = json.loads((run / "environment.json").read_text())["resumed"]
    assert len(noted["forced"]) == 1 and noted["forced"][0].startswith(f"{key} was {value!r}")
    assert digest(run) == digest(finished)  # here it was only said to be another
