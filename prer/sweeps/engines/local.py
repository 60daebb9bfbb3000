"""Runs as processes on this machine."""

from __future__ import annotations

import os
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from queue import SimpleQueue
from tempfile import TemporaryDirectory
from threading import Lock

import torch

from prer.errors import RunError
from prer.runs.experiment import Experiment
from prer.sweeps.engines.base import Engine
from prer.sweeps.engines.worker import Worker, end


class Local(Engine):
    """Runs experiments as processes on this machine.

    Runs that may use a GPU have a worker for each GPU; runs with device=cpu have one for each core.

    Args:
        workers: the number of parallel runs, if not one for each GPU or core; GPUs take turns.
        options: options of `prer run` for every worker.
        per_gpu: the number of workers that share a GPU.
    """

    def __init__(self, workers: int | None = None, options: Sequence[str] = (), per_gpu: int = 1) -> None:
        self.workers, self.options, self.per_gpu = workers, tuple(options), per_gpu
        self.gpus = gpus()
        self._pools: dict[bool, Pool] = {}
        self._workers: set[Worker] = set()
        self._lock, self._closed = Lock(), False

    def submit(self, experiment: Experiment, out: Path) -> Future[None]:
        """Run an experiment in a process of its own as soon as a worker is free."""
        on_gpu = bool(self.gpus) and experiment.device != "cpu"
        if on_gpu not in self._pools:
            self._pools[on_gpu] = Pool(self.places(on_gpu))
        pool = self._pools[on_gpu]
        return pool.submit(self._work, pool.free, experiment, out)

    def places(self, on_gpu: bool) -> list[str | None]:
        """The GPU of each worker; None for a core."""
        if not on_gpu:
            return [None] * (self.workers or cores())
        return [self.gpus[i % len(self.gpus)] for i in range(self.workers or len(self.gpus) * self.per_gpu)]

    def _work(self, free: SimpleQueue[str | None], experiment: Experiment, out: Path) -> None:
        place = free.get()
        try:
            with TemporaryDirectory(prefix="prer-run-") as folder:
                file = Path(folder, f"{experiment.folder}.toml")
                file.write_text(experiment.to_toml(), "utf-8")
                with self._lock:  # `close` ends every worker that has started
                    if self._closed:
                        raise RunError("it was stopped")
                    worker = Worker(file, out, self.options, place)
                    self._workers.add(worker)
                try:
                    worker.wait()
                finally:
                    self._workers.discard(worker)
                    worker.process.communicate()
        finally:
            free.put(place)

    def close(self) -> None:
        """End the processes."""
        with self._lock:
            self._closed = True
        for pool in self._pools.values():
            pool.shutdown(wait=False, cancel_futures=True)
        end(list(self._workers))
        for pool in self._pools.values():
            pool.shutdown()


class Pool(ThreadPoolExecutor):
    """One thread for each place, which waits for the process there."""

    def __init__(self, places: Sequence[str | None]) -> None:
        super().__init__(len(places))
        self.free: SimpleQueue[str | None] = SimpleQueue()
        for place in places:
            self.free.put(place)


def cores() -> int:
    """The number of cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def gpus() -> list[str]:
    """The GPUs this process may use, as CUDA_VISIBLE_DEVICES names them."""
    count, named = torch.cuda.device_count(), os.environ.get("CUDA_VISIBLE_DEVICES")
    return (named.split(",") if named else [str(i) for i in range(count)])[:count]
