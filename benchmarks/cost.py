"""What a step costs, and what is kept, as tasks come: every learner on a stream of 50 tasks.

python benchmarks/cost.py [--tasks 50] [--learners naive ewc ...] [--json FILE]

Time is the median over a task's epochs (all phases together) of seconds per step, one seed, one thread; the classifier's
own phases without evaluation. Methods whose definition asks for work on every past task may grow: gem (one gradient for
each) and classic lwf (the predictions of every old head).
"""

import argparse
import json
import statistics
from collections import defaultdict

import numpy as np
import torch

from prer import Stream, learn
from prer.learners import LEARNERS
from prer.record import environment

SHOWN = (1, 2, 5, 10, 20, 30, 40, 50)
SETTINGS = {"batch": 32, "epochs": 6}
OWN = {
    "prer": {"epochs_autoencoder": 6, "epochs_flow": 6, "blocks": 4, "embedding": 32},
    "dgr": {"epochs_generator": 6},
    "replay": {"size": 200},
    "der": {"size": 200},
} | {name: {"size": 16} for name in ("gem", "agem", "er", "lwf")}


def stream(tasks):
    """Pictures of 8x8 in which every class has bright pixels of its own."""
    rng, per_class = np.random.default_rng(0), 160
    patterns = rng.integers(0, 2, (2 * tasks, 8, 8)) * 180
    y = np.repeat(np.arange(2 * tasks), per_class)
    return Stream.split((patterns[y] + rng.integers(0, 75, (len(y), 8, 8))).astype(np.uint8), y)


def measure(name, settings, tasks):
    epochs, kept = defaultdict(lambda: defaultdict(list)), {}

    def observe(event):
        if event["event"] == "epoch":
            epochs[event["task"]][event["phase"]].append(event["seconds"])
        elif event["event"] == "task":
            kept[event["task"]] = event["memory_floats"]

    learner = LEARNERS[name](**SETTINGS | OWN.get(name, {}) | settings)
    result = learn(stream(tasks), learner, seeds=1, device="cpu", observe=observe)
    steps = 256 // SETTINGS["batch"]
    times = [1e3 * sum(map(statistics.median, epochs[t].values())) / steps for t in range(tasks)]
    return {
        "milliseconds per step": {t: round(times[t - 1], 3) for t in SHOWN if t <= tasks},
        "floats kept": {t: kept[t - 1] for t in SHOWN if t <= tasks},
        "grows by": round(statistics.median(times[-10:]) / statistics.median(times[1:11]), 2),
        "accuracy on the last task": float(result.matrix[0, -1, -1]),
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tasks", type=int, default=50)
    parser.add_argument("--learners", nargs="+", default=[name for name in LEARNERS if name != "joint"])
    parser.add_argument("--json")
    options = parser.parse_args()
    torch.set_num_threads(1)
    found = {}
    variants = [(name, {}) for name in options.learners]
    variants += [("lwf", {"form": "classic"})] if "lwf" in options.learners else []
    for name, settings in variants:
        label = " ".join([name, *map(str, settings.values())])
        found[label] = measure(name, settings, options.tasks)
        times = list(found[label]["milliseconds per step"].values())
        floats = list(found[label]["floats kept"].values())
        print(
            f"{label:<12} {times[1]:8.2f} ms at task 2, {times[-1]:8.2f} at {options.tasks}, x {found[label]['grows by']}; {floats[0]:>8,} to {floats[-1]:>8,} floats",
            flush=True,
        )
    if options.json:
        record = {
            "command": f"python benchmarks/cost.py --tasks {options.tasks}",
            "environment": environment(),
            "learners": found,
        }
        with open(options.json, "w") as file:
            json.dump(record, file, indent=1)
            file.write("\n")


if __name__ == "__main__":
    main()
