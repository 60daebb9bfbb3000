"""Measure the cost of checkpoints: the time to copy and write them, as a share of the whole run.

python benchmarks/checkpoint_cost.py [key=value ...] [--json FILE]

By default the built-in experiment of each learner, on a CPU with one thread.
"""

import argparse
import json
import tempfile
import time
from pathlib import Path

import torch

from prer.learners import LEARNERS
from prer.runs.autosave import Autosave
from prer.runs.checkpoint import Checkpoint
from prer.runs.environment import environment
from prer.runs.experiment import Experiment
from prer.runs.learn import learn


class Clocked(Autosave):
    """An autosave that measures its own time."""

    spent, writes, megabytes = 0.0, 0, 0.0

    def follow(self, *about):
        """Time the copies before a task."""
        begin = time.perf_counter()
        super().follow(*about)
        self.spent += time.perf_counter() - begin

    def after_epoch(self, *about):
        """Time the copies of a phase, and writing."""
        begin = time.perf_counter()
        super().after_epoch(*about)
        self.spent += time.perf_counter() - begin

    def save(self):
        """Count the checkpoints and their bytes."""
        super().save()
        self.writes += 1
        self.megabytes = (self.checkpoint.path / "state.safetensors").stat().st_size / 2**20


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("settings", nargs="*")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    torch.set_num_threads(1)
    lines = []
    for name in LEARNERS:
        experiment = Experiment.parse({}, [f"learner.name={name}", *options.settings])
        with tempfile.TemporaryDirectory() as folder:
            keeper = Clocked(Checkpoint(Path(folder) / "checkpoint"), {})
            stream = experiment.stream.build()
            result = learn(stream, experiment.learner, seeds=experiment.seeds, device="cpu", autosave=keeper)
        total, size = result.seconds["total"], round(keeper.megabytes, 2)
        line = {"learner": name, "seconds": round(total, 2), "checkpoints": keeper.writes, "megabytes": size}
        lines.append(line | {"per_cent": round(100 * keeper.spent / total, 2)})
        print(lines[-1], flush=True)
    if options.json:
        record = {"command": "python benchmarks/checkpoint_cost.py", "environment": environment(), "lines": lines}
        options.json.write_text(json.dumps(record, indent=1) + "\n")


if __name__ == "__main__":
    main()
