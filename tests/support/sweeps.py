"""Sweeps of quick experiments, finished points of them without training, and an engine without processes."""

import json
import os
from pathlib import Path

from prer.errors import InputError, RunError
from prer.runs.folder import RunFolder
from prer.runs.run import execute
from prer.sweeps.engines.base import Outcome, Runs, ended_before
from prer.sweeps.engines.local import Local
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


class InThisProcess(Local):
    """Runs experiments in this process, one after another, with whatever a test has patched."""

    def run(self, experiments, out):
        return _Runs(experiments, out)


class _Runs(Runs):
    running, waiting = (), ()

    def __init__(self, experiments, out):
        self.outcomes = (self._run(experiment, out) for experiment in experiments)

    def _run(self, experiment, out):
        ended, error = ended_before(experiment, out), ""
        try:
            execute(experiment, out)
        except (InputError, RunError) as raised:
            error = str(raised)
        return ended or Outcome(experiment, RunFolder(experiment.path(out)), error)

    def __next__(self):
        return next(self.outcomes)

    def close(self):
        self.outcomes.close()
