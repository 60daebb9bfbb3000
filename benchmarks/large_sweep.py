"""Estimate a sweep of 10,000 runs on 100 GPUs with Ray: measure what each run costs the command, then simulate.

python benchmarks/large_sweep.py [--points 10000] [--gpus 100] [--seconds 60 600] [--json FILE]

Measured here: what a point costs the command before, at and after its run, what Ray needs for an empty task, and how long
a worker takes to start. Simulated: GPUs that take the next run as soon as they are free, and one command that collects outcomes
one after another. The durations of runs are exponential around a mean, which is the least favourable case that is likely.
"""

import argparse
import heapq
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import ray

from prer.runs.environment import environment
from prer.runs.folder import RunFolder
from prer.runs.run import execute
from prer.sweeps.engines.base import ended_before
from prer.sweeps.engines.ray import Ray
from prer.sweeps.engines.worker import environment as of_worker
from prer.sweeps.sweep import Sweep

SWEEP = 'seeds = 5\ndevice = "cpu"\n[learner]\nname = "{name}"\nepochs = 1\n[axes]\n"learner.lr" = {rates}\n'
TASKS = 2000


def timed(work, times=1):
    """Seconds of each call, and the last result."""
    begin = time.perf_counter()
    for _ in range(times):
        result = work()
    return (time.perf_counter() - begin) / times, result


def measured(points):
    """The costs in seconds."""
    costs = {}
    with tempfile.TemporaryDirectory(prefix="prer-large-") as name:
        folder = Path(name)
        file = folder / "sweep.toml"
        file.write_text(SWEEP.format(name="naive", rates=[round(1e-6 * (i + 1), 6) for i in range(points)]))
        seconds, found = timed(lambda: Sweep.read(file).points())
        costs["a point is made"] = seconds / points
        seconds, _ = timed(lambda: [ended_before(point, folder) for point in found])
        costs["a point is checked"] = seconds / points
        run = execute(found[0], folder).path
        costs["a result is read"], _ = timed(lambda: RunFolder(run).result, 50)
        code = "import prer.cli.run, prer.runs.run, prer.learners"
        command = [sys.executable, "-P", "-c", code]
        costs["a worker starts"], _ = timed(lambda: subprocess.run(command, env=of_worker(), check=True), 3)
        module = sys.modules["prer.sweeps.engines.ray"]
        module.settle = lambda watched, task: watched.future.set_result(ray.get(task))
        module.compute = empty
        engine = Ray()
        for point in found[:4]:  # starts the processes of Ray
            engine.submit(point, folder).result()
        begin = time.perf_counter()
        futures = [engine.submit(point, folder) for point in found[:TASKS]]
        costs["a task is submitted"] = (time.perf_counter() - begin) / TASKS
        for future in futures:
            future.result()
        costs["an empty task, from submission to outcome"] = (time.perf_counter() - begin) / TASKS
        engine.close()
    return costs


def empty(toml, out, options, cwd):
    """A task that does nothing."""
    return ""


def simulated(points, gpus, mean, costs, scheduling):
    """The duration of the sweep, and how busy GPUs and the command are."""
    random.seed(0)
    start = points * (costs["a point is made"] + costs["a point is checked"] + costs["a task is submitted"])
    collect = costs["a result is read"] + scheduling
    free, ends, dispatched = [0.0] * gpus, [], 0.0
    worked = 0.0
    for _ in range(points):
        gpu = heapq.heappop(free)
        dispatched = max(dispatched + scheduling, gpu)  # Ray starts one task after another
        length = random.expovariate(1 / mean)
        end = dispatched + costs["a worker starts"] + length
        worked += length
        heapq.heappush(free, end)
        heapq.heappush(ends, end)
    now = 0.0
    while ends:
        now = max(now, heapq.heappop(ends)) + collect
    total = start + now
    return {
        "mean seconds of a run": mean,
        "hours": round(total / 3600, 2),
        "hours if nothing but training took time": round(worked / gpus / 3600, 2),
        "GPUs train, percent": round(100 * worked / gpus / total, 1),
        "workers start, percent of the GPUs' time": round(100 * points * costs["a worker starts"] / gpus / total, 1),
        "the command works, percent": round(100 * (start + points * collect) / total, 1),
    }


def main():
    """Measure, simulate, and write the record."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--points", type=int, default=10_000)
    parser.add_argument("--gpus", type=int, default=100)
    parser.add_argument("--seconds", type=float, nargs="*", default=[10, 60, 600])
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    record = {"command": "python benchmarks/large_sweep.py", "environment": environment()}
    record |= {"points": options.points, "GPUs": options.gpus, "load of the machine": round(os.getloadavg()[0], 1)}
    costs = measured(options.points)
    scheduling = costs["an empty task, from submission to outcome"] - costs["a task is submitted"]
    record["milliseconds"] = {what: round(1000 * cost, 3) for what, cost in costs.items()}
    record["simulated"] = [
        simulated(options.points, options.gpus, mean, costs, max(scheduling, 0.0)) for mean in options.seconds
    ]
    # So many GPUs keep one command busy with collecting.
    each = 1 / (costs["a result is read"] + max(scheduling, 0.0))
    record["outcomes that the command collects in a second"] = round(each, 1)
    print(json.dumps(record, indent=1))
    if options.json:
        options.json.write_text(json.dumps(record, indent=1) + "\n")


if __name__ == "__main__":
    main()
