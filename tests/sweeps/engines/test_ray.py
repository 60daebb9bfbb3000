"""Runs as tasks of a small Ray cluster on this machine; benchmarks/on_ray.py tries two nodes."""

import os
import secrets
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Event
from types import SimpleNamespace

import pytest
from support.commands import COMMAND, environment
from support.sweeps import BASE, GRID, sweep

from prer.errors import InputError
from prer.runs.checkpoint import Checkpoint
from prer.runs.folder import RunFolder
from prer.runs.run import execute
from prer.sweeps.engines import engine
from prer.sweeps.engines.watched import started

exceptions = pytest.importorskip("ray.exceptions")
pytestmark = pytest.mark.usefixtures("no_terminal")
LONG = BASE + '[axes]\n"learner.epochs" = [250]\n'


@pytest.fixture(scope="module")
def cluster():
    """The environment that leads to a cluster of one node with two cores, and lets others not use it."""
    with socket.socket() as free, socket.socket() as other:
        ports = []
        for one in (free, other):
            one.bind(("127.0.0.1", 0))
            ports.append(one.getsockname()[1])
    port, outside = ports
    start = ["start", "--block", "--head", f"--port={port}", "--include-dashboard=false", "--disable-usage-stats"]
    start += ["--num-cpus=2", "--object-store-memory=80000000", f"--ray-client-server-port={outside}"]
    with TemporaryDirectory(prefix="ray-") as folder:  # a short path, as it holds sockets
        Path(folder, "token").write_text(secrets.token_hex(32))
        auth = {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN_PATH": f"{folder}/token"}
        command = [str(Path(sys.executable).with_name("ray")), *start, f"--temp-dir={folder}"]
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL, "text": True}
        with subprocess.Popen(command, env=environment(**auth), **pipes) as running:
            while "--block" not in running.stdout.readline():  # the last lines say what it means
                assert running.poll() is None
            yield auth | {"RAY_ADDRESS": f"127.0.0.1:{port}", "OUTSIDE": f"ray://127.0.0.1:{outside}"}
            running.terminate()


@pytest.fixture
def begun(cluster):
    """Starts a sweep on the cluster, without output."""
    processes = []

    def start(*options):
        command, quiet = [*COMMAND, "sweep", "sweep.toml", "--engine", "ray", *options], subprocess.DEVNULL
        processes.append(subprocess.Popen(command, env=environment(**cluster), stdout=quiet))
        return processes[-1]

    yield start
    for process in processes:
        process.kill()
        process.wait()


def task_of(folder, running, out=None):
    """Wait until a run trains; return the process of its task."""
    while not (folder / "events.jsonl").exists() or not (folder / "events.jsonl").read_text():
        time.sleep(0.05)
        assert running.poll() is None
    command = ["pgrep", "-f", f"prer.cli.worker.*{folder.name}.toml.*{folder.parent.resolve() if out is None else out}"]
    worker = int(subprocess.run(command, capture_output=True, text=True).stdout)
    return int(Path(f"/proc/{worker}/stat").read_text().rpartition(")")[2].split()[1])


def test_tasks_give_the_results_of_this_process_and_last_lines(cluster):
    points = sweep(BASE + '[axes]\n"learner.lr" = [0.01, 1e30]\n').points()
    command = [*COMMAND, "sweep", "sweep.toml", "--engine", "ray"]
    done = subprocess.run(command, env=environment(**cluster), capture_output=True, text=True)
    assert done.returncode == 1 and "lower learning rate" in done.stdout
    found = RunFolder(points[0].path(Path("runs"))).result["digest"]
    assert found == execute(points[0], Path("here")).result["digest"]


def test_the_run_of_a_worker_that_was_killed_is_resumed(begun):
    (point,) = sweep(LONG, "learner.epochs=80").points()
    folder, running = RunFolder(point.path(Path("runs"))), begun("learner.epochs=80")
    os.kill(task_of(folder.path, running), signal.SIGKILL)
    assert running.wait(120) == 0
    assert len(folder.environment["resumed"]) == 1
    assert folder.result["digest"] == execute(point, Path("here")).result["digest"]


def test_without_a_shared_folder_the_run_of_a_killed_worker_is_resumed_from_the_copy_on_the_head(begun, monkeypatch):
    monkeypatch.setenv("PRER_CHECKPOINT_SECONDS", "0")
    (point,) = sweep(LONG).points()
    folder, running = RunFolder(point.path(Path("runs"))), begun("--apart")
    while Checkpoint(folder.path / "checkpoint").read() is None:  # a copy
        time.sleep(0.05)
        assert running.poll() is None
    os.kill(task_of(folder.path, running, ""), signal.SIGKILL)
    assert running.wait(120) == 0
    assert len(folder.environment["resumed"]) == 1 and folder.environment["folder"] == str(Path.cwd())
    assert folder.result["digest"] == execute(point, Path("here")).result["digest"]
    assert not (folder.path / "checkpoint").exists() and (folder.path / "model/model.json").exists()


def test_without_a_shared_folder_ctrl_c_leaves_a_run_that_any_engine_resumes(begun):
    (point,) = sweep(LONG, "learner.epochs=1000000").points()
    folder, running = RunFolder(point.path(Path("runs"))), begun("--apart", "learner.epochs=1000000")
    while not (folder.path / "environment.json").exists():
        time.sleep(0.05)
        assert running.poll() is None
    running.send_signal(signal.SIGINT)
    assert running.wait(60) == 130
    assert Checkpoint(folder.path / "checkpoint").read() is not None


@pytest.mark.parametrize("more", [(), pytest.param(("--apart",), marks=pytest.mark.slow)])
def test_from_outside_the_cluster_a_command_that_was_killed_goes_on(begun, cluster, monkeypatch, more):
    monkeypatch.setenv("PRER_CHECKPOINT_SECONDS", "1")
    (point,) = sweep(LONG).points()
    folder, options = RunFolder(point.path(Path("runs"))), ("--address", cluster["OUTSIDE"], *more)
    running = begun(*options)
    while Checkpoint(folder.path / "checkpoint").read() is None:  # or a copy
        time.sleep(0.05)
        assert running.poll() is None
    first = started(folder)
    running.kill()  # Ray lets its task go on for a minute
    assert begun(*options).wait(120) == 0
    assert more or started(folder) == first
    assert folder.result["digest"] == execute(point, Path("here")).result["digest"]
    assert not (folder.path / "checkpoint").exists() and (folder.path / "model/model.json").exists()


def test_ctrl_c_ends_tasks_and_their_runs_are_saved(begun):
    (point,) = sweep(LONG, "learner.epochs=1000000").points()
    folder, running = RunFolder(point.path(Path("runs"))), begun("learner.epochs=1000000")
    task_of(folder.path, running)
    running.send_signal(signal.SIGINT)
    assert running.wait(60) == 130
    assert not folder.running() and Checkpoint(folder.path / "checkpoint").read() is not None


@pytest.fixture
def no_cluster(monkeypatch):
    """Nothing is started; the cluster seems to have GPUs."""
    from prer.sweeps.engines import ray

    stand_in = SimpleNamespace(
        remote=lambda kind: None,
        cluster_resources=lambda: {"GPU": 2.0},
        nodes=lambda: [
            {"Alive": True, "Resources": {"CPU": 2.0, "special": 1.0}},
            {"Alive": True, "Resources": {"CPU": 1.0, "GPU": 2.0}},
            {"Alive": False, "Resources": {"CPU": 9.0}},
        ],
        wait=lambda *_, **__: ([], []),
        shutdown=lambda: 0,
    )
    monkeypatch.setattr(ray, "connect", lambda address: None)
    monkeypatch.setattr(ray, "ray", stand_in)
    return ray.Ray


def test_runs_need_a_core_a_share_of_a_gpu_and_what_is_asked_for(no_cluster):
    (point, *_), (on_gpu, *_) = sweep(GRID).points(), sweep(GRID, "device=auto").points()
    there = no_cluster(per_gpu=4, resources={"CPU": 2, "special": 1})
    assert there.needs(on_gpu) == {"num_cpus": 2, "num_gpus": 0.25, "resources": {"special": 1}}
    assert there.needs(point)["num_gpus"] == 0
    there.close()
    there = no_cluster(resources={"GPU": 1})
    assert there.needs(point) == {"num_cpus": 1, "num_gpus": 1, "resources": {}}
    there.close()


def test_a_resource_that_no_node_has_is_a_warning(no_cluster):
    with pytest.warns(UserWarning, match="no node of the Ray cluster has CPU=2, GPU=1; the runs wait until one joins"):
        no_cluster(resources={"CPU": 2, "GPU": 1}).close()


@pytest.mark.parametrize("kind", [exceptions.RayError, ConnectionError])
def test_no_more_runs_than_workers_are_tasks_and_a_lost_cluster_fails_them_all(no_cluster, monkeypatch, kind):
    from prer.sweeps.engines import ray

    started, lost = [], Event()

    def wait(tasks, **about):
        if lost.wait(0.01):
            raise kind("it is gone")
        return [], tasks

    task = SimpleNamespace(remote=lambda *about: started.append(about) or len(started))
    monkeypatch.setattr(ray.ray, "wait", wait)
    monkeypatch.setattr(ray.ray, "remote", lambda kind: SimpleNamespace(options=lambda **about: task))
    there = no_cluster(2)
    futures = [there.submit(point, Path("runs")) for point in sweep(GRID).points()]
    assert len(futures) == 4 and len(started) == 2 and not any(future.done() for future in futures)
    lost.set()
    assert {str(future.exception(timeout=10)) for future in futures} == {"the Ray cluster is lost: it is gone"}
    (late, *_) = sweep(GRID).points()
    assert str(there.submit(late, Path("runs")).exception()) == "the Ray cluster is lost: it is gone"
    there.close()  # asks the cluster for nothing
    assert len(started) == 2


def test_no_cluster_at_an_address_is_a_sentence(monkeypatch):
    def init(*about, **more):
        raise ConnectionError("nobody\nthere")

    monkeypatch.setattr("ray.init", init)
    with pytest.raises(InputError, match=r"no Ray cluster answers at 127\.0\.0\.1:1: nobody .*RAY_AUTH_MODE=token"):
        engine("ray", address="127.0.0.1:1")


@pytest.mark.parametrize(("failures", "tries"), [(2, 3), (9, 5)])
def test_a_connection_that_the_head_node_aborts_is_tried_again(monkeypatch, failures, tries):
    from prer.sweeps.engines import ray

    tried = []

    def init(*about, **more):
        tried.append(about)
        if len(tried) <= failures:
            raise ConnectionAbortedError("Initialization failure from server:")

    monkeypatch.setattr("ray.init", init)
    monkeypatch.setattr(ray, "AGAIN", 0)
    if failures < tries:
        ray.connect("ray://head:1")
    else:
        with pytest.raises(InputError, match="no Ray cluster answers at ray://head:1: Initialization failure"):
            ray.connect("ray://head:1")
    assert len(tried) == tries


def test_without_the_extra_the_command_to_install_it_is_named(monkeypatch):
    monkeypatch.setattr("prer.sweeps.engines.find_spec", lambda name: None)
    with pytest.raises(InputError, match=r"pip install 'prer\[ray\]'"):
        engine("ray")
