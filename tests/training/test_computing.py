"""Settings of the process: a library call restores them, a command may keep them."""

import ctypes
import subprocess
import sys

import numpy as np
import pytest
import torch

from prer import Naive, Stream, learn
from prer.cli.main import main
from prer.errors import InputError
from prer.runs.experiment import Experiment
from prer.runs.run import execute
from prer.training.computing import computing

TINY = ["learner.name=naive", "learner.epochs=1", "seeds=1", "device=cpu"]


@pytest.fixture
def unset(monkeypatch):
    """No number of threads from the user, and torch with settings that are not ours."""
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    before = state()
    torch.set_num_threads(2)
    torch.backends.cudnn.deterministic = False
    torch.set_float32_matmul_precision("medium")
    yield
    torch.set_num_threads(before[0])
    torch.backends.cudnn.deterministic = before[1]
    torch.set_float32_matmul_precision(before[2])


def state():
    return torch.get_num_threads(), torch.backends.cudnn.deterministic, torch.get_float32_matmul_precision()


def stream():
    rng = np.random.default_rng(0)
    return Stream.split(rng.normal(size=(40, 3)), np.repeat([0, 1], 20))


def test_learn_uses_one_thread_and_restores_all_settings(unset):
    inside = []
    learn(stream(), Naive(epochs=200), seeds=1, device="cpu", observe=lambda event: inside.append(state()))
    assert {threads for threads, _, _ in inside} == {1} and {fixed for _, fixed, _ in inside} == {True}
    assert state() == (2, False, "medium")


def test_a_run_in_a_folder_restores_them_too(unset, tmp_path):
    folder = execute(Experiment.parse({}, TINY), tmp_path)
    assert folder.threads == 1
    assert state() == (2, False, "medium")


def test_settings_are_restored_when_learning_fails(unset):
    def stop(event):
        raise InputError("stop")

    with pytest.raises(InputError, match="stop"):
        learn(stream(), Naive(epochs=200), seeds=1, device="cpu", observe=stop)
    assert state() == (2, False, "medium")


def test_the_number_of_threads_of_the_user_is_kept(unset, monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "2")
    with computing("cpu"):
        assert torch.get_num_threads() == 2
    with computing("cpu", threads=1):  # those of a resumed run
        assert torch.get_num_threads() == 1
    assert torch.get_num_threads() == 2


def test_only_a_gpu_computes_products_in_tf32(unset):
    with computing("cpu"):
        assert torch.get_float32_matmul_precision() == "medium"
    with computing("cuda"):
        assert torch.get_float32_matmul_precision() == "high"
    assert state() == (2, False, "medium")


def test_a_process_that_uses_torchs_newer_precision_settings_can_learn():
    script = """
import numpy as np, torch
from prer import Naive, Stream, learn
from prer.training.computing import computing
torch.backends.cuda.matmul.fp32_precision = "tf32"
learn(Stream.split(np.eye(40), np.repeat([0, 1], 20)), Naive(epochs=200), seeds=1, device="cpu")
with computing("cuda"):
    pass
assert torch.backends.cuda.matmul.fp32_precision == "tf32"
"""
    subprocess.run([sys.executable, "-c", script], check=True, timeout=100)


def test_only_the_command_line_changes_the_allocator(monkeypatch, tmp_path):
    opened = []
    monkeypatch.setattr(ctypes, "CDLL", lambda *given, **more: opened.append(given) or fail())
    learn(stream(), Naive(epochs=200), seeds=1, device="cpu")
    execute(Experiment.parse({}, TINY), tmp_path / "library")
    assert (None,) not in opened
    main(["run", *TINY, "--quiet", "--out", str(tmp_path / "command")])
    assert (None,) in opened


def fail():
    raise OSError
