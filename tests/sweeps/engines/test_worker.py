"""The environment and the end of a worker's process."""

import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import prer
from prer.sweeps.engines import worker


def test_a_worker_has_one_thread_this_package_and_its_gpu(monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "7")
    monkeypatch.setenv("PYTHONPATH", "mine")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "5")
    given = worker.environment("2")
    assert given["OMP_NUM_THREADS"] == "1" and given["CUDA_VISIBLE_DEVICES"] == "2"
    assert given["PYTHONPATH"].split(os.pathsep) == [str(Path(prer.__file__).parents[1]), "mine"]
    assert worker.environment()["CUDA_VISIBLE_DEVICES"] == "5"


def test_a_process_that_ignores_sigterm_is_killed(monkeypatch):
    monkeypatch.setattr(worker, "GRACE", 0.1)
    code = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print(flush=True); time.sleep(60)"
    with subprocess.Popen([sys.executable, "-Sc", code], stdout=subprocess.PIPE) as process:
        process.stdout.readline()
        worker.end([SimpleNamespace(process=process)])
        assert process.wait(5) == -9
