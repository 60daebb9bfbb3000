"""Check that memory and time do not grow with the number of tasks: a thousand tasks of two classes with a tiny PRER.

python benchmarks/thousand_tasks.py [--tasks 1000] [--learner prer] [--json FILE]

Records after every hundredth task: resident memory, open files, training seconds of a task, stored floats, and the
accuracy on the newest tasks. Only the heads, one vector per class and the matrix may grow.
"""

import argparse
import gc
import json
import os
import resource
import tempfile
import time
from pathlib import Path

import numpy as np
import torch

from prer.learners import LEARNERS
from prer.runs.autosave import Autosave
from prer.runs.checkpoint import Checkpoint
from prer.runs.environment import environment
from prer.runs.learn import learn
from prer.streams.stream import arriving

TINY = {"batch": 20, "epochs": 8, "hidden": (16,), "embedding": 8, "lr": 0.02, "dropout": 0.0}
OF_PRER = {
    "epochs_autoencoder": 4,
    "density": {"epochs": 4, "blocks": 2, "levels": 1, "condition_size": 4, "lr": 0.01},
}


def tasks(count):
    """Two Gaussian blobs at random places for each task, with 50 training samples each."""
    rng = np.random.default_rng(0)
    for t in range(count):
        y = np.arange(120) % 2
        centre = rng.normal(size=(2, 6))
        yield centre[y] + 0.3 * rng.normal(size=(120, 6)), 2 * t + y


def resident():
    """Bytes of memory in use now."""
    pages = Path("/proc/self/statm").read_text().split()[1]
    return int(pages) * resource.getpagesize()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tasks", type=int, default=1000)
    parser.add_argument("--learner", default="prer", choices=LEARNERS)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    torch.set_num_threads(1)
    lines, begin = [], time.perf_counter()
    spent = {"training": 0.0}

    def observe(event):
        if event["event"] == "epoch":
            spent["training"] += event["seconds"]
        if event["event"] != "task":
            return
        done = event["task"] + 1
        if done % max(1, options.tasks // 10) == 0 or done == 1:
            gc.collect()
            line = {"task": done, "megabytes": round(resident() / 2**20, 1), "files": len(os.listdir("/proc/self/fd"))}
            line |= {"floats": event["memory_floats"], "training_seconds": round(spent["training"], 3)}
            newest = np.array(event["accuracy"])[0][-10:].mean()
            lines.append(line | {"newest": round(float(newest), 1), "seconds": round(time.perf_counter() - begin)})
            print(lines[-1], flush=True)
        spent["training"] = 0.0

    learner = LEARNERS[options.learner](**TINY | (OF_PRER if options.learner == "prer" else {}))
    with tempfile.TemporaryDirectory() as folder:
        keeper = Autosave(Checkpoint(Path(folder) / "checkpoint"), {})
        result = learn(arriving(tasks(options.tasks)), learner, seeds=1, device="cpu", observe=observe, autosave=keeper)
    final = {name: result.metrics[name]["mean"] for name in ("accuracy", "bwt", "final_accuracy")}
    print(final)
    if options.json:
        record = {"command": "python benchmarks/thousand_tasks.py", "environment": environment()}
        options.json.write_text(json.dumps(record | {"lines": lines, "result": final}, indent=1) + "\n")


if __name__ == "__main__":
    main()
