"""What the memory of a run holds, as a page shows it."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.numpy import save
from support.fake_runs import fake_run
from support.pages import page

from prer.report import memory
from prer.report.run import Run


def test_the_memory_of_a_real_run(real):
    view = memory.remembered(Run.read(real))
    assert [c.label for c in view.classes] == [str(c) for c in range(10)] and view.generates
    for number, c in enumerate(view.classes):
        after = [f"task {task}" for task in range(number // 2 + 1, 6)]  # the run wrote these down
        assert {name: x.shape for name, x in c.rows.items()} == dict.fromkeys(("real", "rebuilt", *after), (8, 1, 8, 8))
        assert c.real.shape[1] == c.sampled.shape[1] == 2
    assert view.notes == []
    result = json.loads((real / "result.json").read_text())
    # All classes have about as many test samples, so the mean over them is about the final accuracy.
    mean = np.mean([c.accuracy for c in view.classes], axis=0)
    np.testing.assert_allclose(mean, result["final_accuracy"]["values"], atol=0.5)
    html = page(real)
    assert html.count("real and 60 sampled embeddings") == 10 and "What the flow remembers" in html


def test_a_model_is_evaluated_with_one_thread_and_the_process_is_left_as_it_was(monkeypatch, real, tmp_path):
    seen = []

    def look(learner, stream):
        seen.append(torch.get_num_threads())
        raise ValueError

    monkeypatch.setattr(memory, "look", look)
    before = torch.get_num_threads()
    torch.set_num_threads(3)
    try:
        memory.remembered(Run.read(Path(shutil.copytree(real, tmp_path / real.name))))
        assert (seen, torch.get_num_threads()) == ([1], 3)
    finally:
        torch.set_num_threads(before)


def with_samples(folder, tasks=2, shape=(1, 8, 8), dtype=np.uint8):
    (folder / "memory").mkdir()
    for task in range(1, tasks + 1):
        samples = np.full((2 * task, 8, *shape), task, dtype)
        (folder / f"memory/task-{task}.safetensors").write_bytes(save({"samples": samples}))
    return folder


@pytest.mark.parametrize(("shape", "dtype"), [((1, 8, 8), np.uint8), ((3, 8, 9), np.uint8), ((5,), np.float32)])
def test_samples_after_each_task_are_shown(tmp_path, shape, dtype):
    run = Run.read(with_samples(fake_run(tmp_path / "a"), shape=shape, dtype=dtype))
    view = memory.remembered(run)
    assert [list(c.rows) for c in view.classes] == [["task 1", "task 2"]] * 2 + [["task 2"]] * 2
    assert [c.label for c in view.classes] == ["0", "1", "2", "3"]
    assert "are not shown: the run has no model" in view.notes[0]
    assert page(tmp_path / "a").count("<image") == 2 + 2 + 1 + 1


def test_saved_samples_replace_samples_of_the_final_model(real, tmp_path):
    folder = Path(shutil.copytree(real, tmp_path / real.name))
    shutil.rmtree(folder / "memory")
    view = memory.remembered(Run.read(folder))
    assert list(view.classes[0].rows) == ["real", "rebuilt", "samples"] and "come from the final model" in view.notes[0]
    view = memory.remembered(Run.read(with_samples(folder)))
    assert list(view.classes[0].rows) == ["real", "rebuilt", "task 1", "task 2"] and view.notes == []


@pytest.mark.parametrize("what", [b"", b"\x80\x04]\x94.", save({"samples": np.zeros((2, 8, 7, 8, 8), np.uint8)})])
def test_strange_samples_are_ignored(tmp_path, what, without_figures):
    folder = with_samples(fake_run(tmp_path / "a"))
    (folder / "memory/task-1.safetensors").write_bytes(what)
    assert memory.samples_after(folder) == {}
    assert page(folder)


def test_data_is_shown_only_if_the_run_knows_its_checksum(real, tmp_path):
    folder = Path(shutil.copytree(real, tmp_path / real.name))
    noted = json.loads((folder / "environment.json").read_text())
    for forged_sum, why in ((None, "has no checksum of its data"), ("0" * 64, "the data has changed")):
        (folder / "environment.json").write_text(json.dumps(noted | {"data_sha256": forged_sum}))
        memory._loaded.cache_clear()
        view = memory.remembered(Run.read(folder))
        assert why in view.notes[0]
        assert not any({"real", "rebuilt"} & c.rows.keys() for c in view.classes)
        assert str(tmp_path) not in view.notes[0]


def test_no_data_is_fetched(monkeypatch, real, tmp_path):
    folder = Path(shutil.copytree(real, tmp_path / real.name))
    monkeypatch.setenv("PRER_DATA", str(tmp_path / "none"))
    toml = (folder / "experiment.toml").read_text().replace('data = "digits"', 'data = "mnist"')
    (folder / "experiment.toml").write_text(toml)
    view = memory.remembered(Run.read(folder))
    assert "the data is not on this machine, and a report downloads nothing" in view.notes[0]
    assert not (tmp_path / "none").exists()


def test_a_model_that_is_too_large_is_not_loaded(real, tmp_path):
    folder = Path(shutil.copytree(real, tmp_path / real.name))
    toml = (folder / "experiment.toml").read_text().replace("hidden = [128, 64]", "hidden = [65536, 65536]")
    (folder / "experiment.toml").write_text(toml)
    assert "too large to load for a page" in memory.remembered(Run.read(folder)).notes[0]
