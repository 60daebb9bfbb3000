"""Sweeps of quick experiments, finished points of them without training, and an engine without processes."""

import json
import os
from concurrent.futures import Future
from pathlib import Path

from prer.errors import InputError, RunError
from prer.runs.run import execute
from prer.sweeps.engines.base import Engine
from prer.sweeps.sweep import Sweep

BASE = 'seeds = 1\ndevice = "cpu"\n[learner]\nname = "naive"\nepochs = 1\noptimiser = "sgd"\n'
GRID = BASE + '[axes]\n"learner.lr" = [0.01, 0.1]\n"learner.batch" = [32, 64]\n'
DRAWN = BASE + '[draws]\n"learner.lr" = {low = 1e-4, high = 1e-1, log = true}\n'


def sweep(text, *overrides):
    """A sweep, written to sweep.toml in the current folder."""
    Path("sweep.toml").write_text(text)
    return Sweep.read(Path("sweep.toml"), overrides)


def chosen(points, key):
    """A setting of the learner in each point."""
    return [getattr(point.learner, key) for point in points]


def finish(point, out=Path("runs"), accuracy=50.0, **metrics):
    """Write the folder of a finished run of a point."""
    folder = out / point.folder
    folder.mkdir(parents=True)
    (folder / "experiment.toml").write_text(point.to_toml())
    means = {"accuracy": accuracy, "bwt": 0.0} | metrics
    result = {name: {"mean": mean, "std": None, "values": [mean]} for name, mean in means.items()}
    result |= {"seeds": [0], "matrix": [[[accuracy]]], "memory_floats": [0], "memory_samples": [0]}
    result |= {"seconds": {"total": 1}, "learner": point.learner.name, "stream": "digits"}
    (folder / "result.json").write_text(json.dumps(result))


def is_alive(pid):
    """Whether a process runs."""
    try:
        os.kill(int(pid), 0)
    except ProcessLookupError:
        return False
    return True


class InThisProcess(Engine):
    """Runs experiments in this process, one after another, with whatever a test has patched."""

    def __init__(self, *about):
        pass

    def submit(self, experiment, out):
        future = Future()
        try:
            execute(experiment, out)
            future.set_result(None)
        except (InputError, RunError) as error:
            future.set_exception(error)
        return future

    def close(self):
        pass
