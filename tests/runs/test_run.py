"""A run in its folder: it trains once, resumes, refuses what has changed, and its model is loaded."""

import json
import shutil
from contextlib import contextmanager

import pytest
import torch
from safetensors.torch import load_file
from support.experiments import parsed
from support.folders import contents, write_data
from support.models import TINY, finished_run

from prer import learn
from prer.errors import NO_MEMORY, InputError, RunError
from prer.learners import Naive
from prer.runs import run as runs
from prer.runs.experiment import Experiment
from prer.runs.folder import RunFolder
from prer.runs.observer import RunObserver
from prer.runs.run import execute, load_model, resume
from prer.streams.task import Split

DIGITS = ["seeds=2", "learner.epochs=1", "device=cpu"]
SETTINGS = ["stream.data=my.npz", "learner.name=naive", "learner.epochs=2", "learner.hidden=[4]", "seeds=[5, 3]"]


@pytest.fixture
def experiment(here):
    """A naive experiment of two tasks on the data in the current folder."""
    return parsed(*SETTINGS, "device=cpu")


class Nobody(RunObserver):
    """An observer for runs that must not train."""

    @contextmanager
    def training(self, start):
        pytest.fail("the run trains")
        yield


# -- execute -----------------------------------------------------------------------------------------------------------


def test_a_run_leaves_result_events_model_and_no_checkpoint(experiment, here):
    folder = execute(experiment, here / "runs")
    assert folder.path == here / "runs" / experiment.folder
    names = {path.name for path in folder.path.iterdir()}
    assert names >= {"experiment.toml", "environment.json", "events.jsonl", "result.json", "model"}
    assert not any(name.startswith("checkpoint") for name in names)
    assert Experiment.parse_run(folder.experiment) == experiment
    assert [event["event"] for event in folder.events()] == ["epoch", "epoch", "task"] * 2
    assert folder.environment["context"]["experiment"] == experiment.tables()
    assert len(folder.warnings) == 1 and "has only" in folder.warnings[0]


def test_a_run_learns_what_learn_learns(experiment, here):
    result = learn(experiment.stream.build(), experiment.learner, seeds=(5, 3), device="cpu")
    found = execute(experiment, here / "runs").result
    assert found["digest"] == result.digest and found["seeds"] == [5, 3]
    assert found["accuracy"]["values"] == result.metrics["accuracy"]["values"]


def test_a_finished_run_is_not_run_again_even_without_its_data(experiment, here):
    folder = execute(experiment, here / "runs")
    before = contents(folder.path)
    assert execute(experiment, here / "runs", Nobody()).path == folder.path
    assert resume(folder.path, Nobody()).path == folder.path
    (here / "my.npz").unlink()
    assert execute(experiment, here / "runs", Nobody()).result == folder.result
    assert contents(folder.path) == before


def test_a_finished_run_on_other_data_is_refused(experiment, here):
    folder = execute(experiment, here / "runs")
    write_data(here / "my.npz", seed=1)
    for run in (
        lambda: execute(experiment, here / "runs"),
        lambda: resume(folder.path),
        lambda: load_model(folder.path),
    ):
        with pytest.raises(InputError, match="the data has changed"):
            run()


def test_a_checkpoint_that_a_finished_run_left_is_deleted(experiment, here):
    folder = execute(experiment, here / "runs")
    (folder.path / "checkpoint").mkdir()
    (folder.path / "checkpoint" / "state.safetensors").touch()
    execute(experiment, here / "runs", Nobody())
    assert not (folder.path / "checkpoint").exists()


def test_the_folder_of_another_experiment_is_not_used(experiment, here):
    other = execute(parsed(*SETTINGS, "device=cpu", "learner.epochs=1"), here / "runs")
    before = contents(other.path)
    shutil.move(other.path, here / "runs" / experiment.folder)
    with pytest.raises(InputError, match="belongs to a different experiment"):
        execute(experiment, here / "runs")
    assert contents(here / "runs" / experiment.folder) == before


@pytest.mark.parametrize("validation", [0.0, 0.25])
@pytest.mark.parametrize("kind", ["permuted", "rotated"])
def test_tasks_that_differ_in_their_views_share_one_split(monkeypatch, tmp_path, kind, validation):
    """Ten thousand of them would take ten seconds to be split before a run says a word."""
    calls, split = [], Split.__call__
    monkeypatch.setattr(Split, "__call__", lambda self, seed: calls.append(seed) or split(self, seed))
    monkeypatch.setattr("prer.runs.run._train", lambda *_: None)
    overrides = [f"stream.kind={kind}", "stream.count=30", f"stream.validation={validation}", "device=cpu"]
    execute(Experiment.parse({}, [*overrides, "learner.name=naive"]), tmp_path)
    assert len(calls) <= 2  # one for all of them, and one where some of it is held out


# -- errors ------------------------------------------------------------------------------------------------------------


def test_a_failed_run_notes_the_reason(experiment, here, monkeypatch):
    def fail(learner, batch):
        raise RunError("the loss is strange")

    monkeypatch.setattr(Naive, "loss", fail)
    with pytest.raises(RunError, match="the loss is strange"):
        execute(experiment, here / "runs")
    (folder,) = (here / "runs").iterdir()
    assert list(RunFolder(folder).events()) == [{"event": "failed", "reason": "the loss is strange"}]
    assert not (folder / "result.json").exists()


@pytest.mark.parametrize("error", [MemoryError(), torch.OutOfMemoryError("CUDA out of memory")], ids=repr)
def test_memory_that_runs_out_is_a_sentence(experiment, here, monkeypatch, error):
    def fail(*arguments, **options):
        raise error

    monkeypatch.setattr(runs, "learn_tasks", fail)
    with pytest.raises(RunError) as caught:
        execute(experiment, here / "runs")
    assert str(caught.value) == NO_MEMORY


def test_an_unknown_error_is_a_sentence_only_where_a_checkpoint_may_be_the_reason(experiment, here, run, monkeypatch):
    def fail(*arguments, **options):
        raise ZeroDivisionError("by zero")

    monkeypatch.setattr(runs, "learn_tasks", fail)
    with pytest.raises(ZeroDivisionError):
        execute(experiment, here / "runs")
    with pytest.raises(RunError, match=r"the run in .* could not be resumed: by zero"):
        resume(run)


# -- resume ------------------------------------------------------------------------------------------------------------


def test_a_stopped_run_ends_as_one_that_was_not_stopped(run, finished):
    found = resume(run)
    assert found.result["digest"] == RunFolder(finished).result["digest"]
    assert [entry["forced"] for entry in found.environment["resumed"]] == [[]]
    assert not (run / "checkpoint").exists()


def test_a_changed_experiment_is_refused_unless_it_is_forced(run, finished):
    file = run / "experiment.toml"
    file.write_text(file.read_text().replace("\nlr = 0.001", "\nlr = 0.002", 1))
    with pytest.raises(InputError, match=r"has changed: learner.lr was 0.001 and is 0.002; undo that, or pass --force"):
        resume(run)
    assert resume(run, force=True).result["digest"] != RunFolder(finished).result["digest"]


def test_a_run_without_a_context_is_known_by_either_hash(tmp_path):
    experiment = Experiment.parse({}, ["learner.name=naive", *DIGITS])
    for number in experiment.hashes:
        folder = tmp_path / f"digits-naive-{number}"
        folder.mkdir()
        (folder / "experiment.toml").write_text(experiment.to_toml())
        assert resume(folder).result is not None
    other = shutil.copytree(folder, tmp_path / "digits-naive-00000000")
    (other / "environment.json").unlink()
    with pytest.raises(InputError, match="its hash was 00000000 and is"):
        resume(other)


# -- load_model --------------------------------------------------------------------------------------------------------


def test_a_model_is_loaded_as_it_was(tmp_path):
    finished = finished_run(tmp_path, *TINY)
    learner, stream = load_model(finished)
    saved = load_file(finished / "model" / "model.safetensors")
    state = learner.state()
    assert state.keys() == saved.keys()
    assert all(torch.equal(state[name], saved[name]) for name in saved)
    assert len(stream) == 5


def test_a_run_without_a_model_says_how_to_finish_it(run):
    with pytest.raises(InputError, match=r"contains no model; finish the run first: prer resume "):
        load_model(run)


@pytest.mark.parametrize("damage", [b"", b"{}", b"\x08" + bytes(7) + b"{}      "])
def test_a_damaged_model_is_refused(done, damage):
    (done / "model" / "model.safetensors").write_bytes(damage)
    with pytest.raises(InputError, match=r"the model of .* cannot be read: .*; run it again"):
        load_model(done)


def test_a_model_with_a_tensor_of_another_shape_is_refused(done):
    from safetensors.torch import save_file

    file = done / "model" / "model.safetensors"
    tensors = load_file(file)
    name = min(tensors)
    save_file(tensors | {name: torch.cat([tensors[name]] * 2)}, file)
    with pytest.raises(InputError, match=r"the model of .* cannot be read: .*; run it again"):
        load_model(done)
    assert json.loads((done / "result.json").read_text())["digest"]
