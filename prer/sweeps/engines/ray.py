"""Runs as tasks of a Ray cluster. Ray starts a lost task again, on another node if need be, and its run resumes."""

from __future__ import annotations

import hashlib
import os
import socket
import time
import tomllib
import warnings
from collections import deque
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Event, Lock, Thread
from typing import Any

import ray
from ray.exceptions import RayError

from prer.errors import InputError, RunError
from prer.runs.experiment import Experiment
from prer.runs.folder import RunFolder
from prer.sweeps.engines.base import PAUSE, Engine
from prer.sweeps.engines.keeper import LAST, Keeper, packed, unpack
from prer.sweeps.engines.watched import Watched
from prer.sweeps.engines.worker import GRACE, Worker, end

RETRIES = 10  # times that a task is started again after its worker or node was lost
LOOK = 1.0  # seconds between two looks at the run folders
KEEP = 2.0  # seconds between two looks for a new checkpoint
PATIENCE = 90.0  # seconds; Ray takes a minute to end the tasks of a command outside the cluster that was killed
TRIES, AGAIN = 5, 1.0  # to connect, and seconds between two tries
LOST = (RayError, ConnectionError)  # the cluster does not answer; the latter outside the cluster


class Ray(Engine):
    """Runs experiments on a Ray cluster.

    Args:
        workers: the most runs at a time; None: as many as the cluster has room for.
        options: options of each `prer run`.
        per_gpu: the number of runs that share a GPU.
        address: of a running cluster; by default RAY_ADDRESS, or a new cluster on this machine.
        resources: what each run needs besides a GPU, such as {"CPU": 2, "big_memory": 1}.
        apart: the nodes do not share the folder of runs; an actor on the head node keeps copies of run folders.
    """

    def __init__(
        self,
        workers: int | None = None,
        options: Sequence[str] = (),
        per_gpu: int = 1,
        address: str | None = None,
        resources: Mapping[str, float] | None = None,
        apart: bool = False,
    ) -> None:
        self.workers, self.options, self.per_gpu = workers, tuple(options), per_gpu
        self.resources = {"CPU": 1.0} | dict(resources or {})
        connect(address)
        self.apart, self._keeper, self._versions = apart, None, dict[str, int]()
        self._task: Any = ray.remote(compute_apart if apart else compute)  # once, or Ray sends the code with each run
        warn_of_missing(self.resources)
        self.has_gpus = ray.cluster_resources().get("GPU", 0) > 0
        self._out = Path()
        self._waiting: deque[Watched] = deque()
        self._active: dict[Any, Watched] = {}  # by the reference of their tasks
        self._lost: Exception | None = None
        self._lock, self._closed = Lock(), Event()
        self._thread = Thread(target=self._watch, daemon=True)
        self._thread.start()

    def submit(self, experiment: Experiment, out: Path) -> Future[None]:
        """Run an experiment as a task as soon as the cluster has room."""
        watched = Watched(experiment, RunFolder(experiment.path(out)))
        self._out = out.resolve()
        try:
            self._submit(watched)
        except LOST as error:
            self._lose(error, watched)
        return watched.future

    def _submit(self, watched: Watched) -> None:
        if self._lost:  # otherwise Ray would start a cluster of its own
            raise self._lost
        if self.apart:
            self._keeper = self._keeper or keeper_of(self._out)
            self._keeper.keep.remote(watched.run.path.name, packed(watched.run.path), over=False)
        with self._lock:
            self._waiting.append(watched)
        self._fill()

    def close(self) -> None:
        """Cancel the tasks, wait until their runs are saved, and leave the cluster."""
        self._closed.set()
        self._thread.join()
        with suppress(*LOST):
            tasks = list(self._active)
            for task in tasks:
                ray.cancel(task)
            if tasks:
                ray.wait(tasks, num_returns=len(tasks), timeout=2 * GRACE)
            if self._keeper:
                self._collect()
                ray.kill(self._keeper)
        ray.shutdown()

    def needs(self, experiment: Experiment) -> dict[str, Any]:
        """The resources of a run, as Ray names them."""
        needs = dict(self.resources)
        on_gpu = self.has_gpus and experiment.device != "cpu"
        gpus = needs.pop("GPU", 1 / self.per_gpu if on_gpu else 0)
        return {"num_cpus": needs.pop("CPU"), "num_gpus": gpus, "resources": needs}

    def _fill(self) -> None:
        """Start tasks while there may be more."""
        with self._lock:
            while self._waiting and (self.workers is None or len(self._active) < self.workers):
                watched = self._waiting[0]
                about = {"name": watched.experiment.folder, "max_retries": RETRIES} | self.needs(watched.experiment)
                known = (watched.experiment.to_toml(), self._keeper or str(self._out), self.options, str(Path.cwd()))
                self._active[self._task.options(**about).remote(*known)] = watched
                self._waiting.popleft()

    def _watch(self) -> None:
        try:
            self._serve()
        except LOST as error:
            self._lose(error)

    def _lose(self, error: Exception, *submitted: Watched) -> None:
        """Fail all runs that have not ended, and use the cluster no more."""
        with self._lock:
            self._lost = error
            left = [*submitted, *self._active.values(), *self._waiting]
            self._active.clear()
            self._waiting.clear()
            self._keeper = None
        for watched in left:
            if not watched.future.done():
                watched.future.set_exception(RunError(f"the Ray cluster is lost: {error}"))

    def _serve(self) -> None:
        looked = time.monotonic()
        while not self._closed.is_set():
            tasks = list(self._active)
            ended = (
                ray.wait(tasks, num_returns=len(tasks), timeout=PAUSE)[0] if tasks else []
            )  # in one call, however many
            if ended or time.monotonic() > looked + LOOK:
                self._collect()
            for task in ended:
                watched = self._active.get(task)
                if watched and not watched.future.done():  # otherwise `submit` has found the cluster lost meanwhile
                    settle(watched, task)
                with self._lock:
                    self._active.pop(task, None)
            if ended:
                self._fill()
            elif not tasks:
                time.sleep(PAUSE)
            if time.monotonic() > looked + LOOK:
                for watched in list(self._active.values()):
                    watched.notice()
                looked = time.monotonic()

    def _collect(self) -> None:
        """Update the run folders from the copies that the actor keeps."""
        if self._keeper:
            newer: Any = ray.get(self._keeper.newer.remote(self._versions))
            for name, (version, copy) in newer.items():
                unpack(self._out / name, copy)
                self._versions[name] = version
                if LAST in copy:
                    self._keeper.forget.remote(name)


def keeper_of(out: Path) -> Any:
    """The actor that keeps copies of the runs in a folder; it outlives a command that is killed."""
    name = f"prer-{hashlib.sha256(f'{socket.gethostname()}:{out}'.encode()).hexdigest()[:16]}"
    about = {"name": name, "namespace": "prer", "lifetime": "detached", "get_if_exists": True}
    return ray.remote(Keeper).options(**about, num_cpus=0, resources={"node:__internal_head__": 0.001}).remote()


def connect(address: str | None) -> None:
    """Connect to a cluster, or start one on this machine."""
    where = address or os.environ.get("RAY_ADDRESS")
    about: dict[str, Any] = {"log_to_driver": False, "logging_level": "error"}
    about |= {} if where else {"include_dashboard": False}
    try:
        patient_init(where or "local", **about)  # not the cluster that was last started here
    except (ConnectionError, RuntimeError, ValueError) as error:
        first = (str(error).splitlines() or [repr(error)])[0]
        if not where:
            raise InputError(f"Ray cannot start a cluster on this machine: {first}") from None
        # Ray does not say so here.
        hint = "" if "RAY_AUTH_MODE" in os.environ else " (if it requires a token, set RAY_AUTH_MODE=token)"
        raise InputError(f"no Ray cluster answers at {where}: {first}{hint}") from None


def patient_init(address: str, **about: Any) -> None:
    """Call `ray.init`, again if the head node could not start the process that serves a client outside the cluster."""
    for _ in range(TRIES - 1):
        try:
            ray.init(address, **about)
        except ConnectionAbortedError:  # seen on a busy head node
            time.sleep(AGAIN)
        else:
            return
    ray.init(address, **about)


def warn_of_missing(resources: Mapping[str, float]) -> None:
    """Warn if no node has what a run needs; Ray would wait without a word, as a node that has it may join."""
    nodes: list[dict[str, Any]] = [node["Resources"] for node in ray.nodes() if node["Alive"]]
    if not any(all(node.get(name, 0) >= amount for name, amount in resources.items()) for node in nodes):
        needs = ", ".join(f"{name}={amount:g}" for name, amount in resources.items())
        warnings.warn(f"no node of the Ray cluster has {needs}; the runs wait until one joins", stacklevel=2)


def settle(watched: Watched, task: Any) -> None:
    """Settle the future of a run whose task has ended."""
    try:
        failure = ray.get(task)
        if not failure and watched.run.result is None:
            failure = f"it has ended, but {watched.run.path} has no result; do all nodes share the folder of runs?"
    except (RayError, InputError) as error:
        failure = str(error)
    if failure:
        watched.future.set_exception(RunError(failure))
    else:
        watched.future.set_result(None)


def compute_apart(toml: str, keeper: Any, options: Sequence[str], cwd: str) -> str:
    """Run an experiment in a folder of this node, from the copy that the actor keeps, and keep newer copies there."""
    with TemporaryDirectory(prefix="prer-runs-") as out:
        run = Path(out, Experiment.parse_run(tomllib.loads(toml)).folder)
        copy, finished = ray.get([keeper.kept.remote(run.name), keeper.ended.remote(run.name)])
        if finished:  # by a task of a command that was killed
            return ""
        unpack(run, copy)
        ended = Event()

        def keep() -> None:
            last = None
            while not ended.wait(KEEP):
                now = (run / "checkpoint").stat().st_ino if (run / "checkpoint").exists() else run.exists()
                if now != last:
                    ray.get(keeper.keep.remote(run.name, packed(run)))
                last = now

        thread = Thread(target=keep)
        thread.start()
        try:
            return compute(toml, out, options, cwd)
        finally:  # also of a run that was cancelled, and saved itself
            ended.set()
            thread.join()
            ray.get(keeper.keep.remote(run.name, packed(run)))


def compute(toml: str, out: str, options: Sequence[str], cwd: str) -> str:
    """Run an experiment on a node of the cluster; the last lines if it failed, otherwise an empty string.

    The run is a process of its own, as with every other engine. It saves itself and ends if this one is killed.
    """
    with suppress(OSError):  # relative paths of data mean what they mean where the sweep was started
        os.chdir(cwd)
    experiment = Experiment.parse_run(tomllib.loads(toml))
    run = RunFolder(experiment.path(Path(out)))
    patience = time.monotonic() + PATIENCE
    while run.path.exists() and run.running() and time.monotonic() < patience:
        time.sleep(PAUSE)  # the process of a task that was lost goes on, or is saving the run
    with TemporaryDirectory(prefix="prer-run-") as folder:
        file = Path(folder, f"{experiment.folder}.toml")
        file.write_text(toml, "utf-8")
        worker = Worker(file, Path(out), options)
        try:
            while worker.process.poll() is None:  # not a blocking wait, which a cancellation would not interrupt
                time.sleep(PAUSE)
            worker.wait()
        except RunError as error:
            return str(error)
        finally:
            end([worker])
            worker.process.communicate()
    return ""
