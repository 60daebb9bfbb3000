"""What scripts share that run experiments on this machine and record them, one line a run (see `paper_records.py`).

Each run also has its folder in the folder RUNS, so a script that was stopped goes on where it was.
"""

import argparse
import json
import time
from pathlib import Path

import numpy as np
from paper_records import packed, result_of

from prer.data.arrays import as_samples
from prer.disk import replace_file
from prer.settings import merged
from prer.streams.config import StreamConfig
from prer.sweeps.engines.local import Local

QUICK = 40  # images of each class with --quick


def options_of(description, seeds, settings=False, **own):
    """The options of a script and its `own`; `--quick` tries it in a few minutes on a CPU. Some take settings of all runs."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", type=Path)
    if settings:
        parser.add_argument("settings", nargs="*", metavar="key=value")
    for name, how in own.items():
        parser.add_argument(f"--{name}", **how)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--seeds", type=int, default=seeds)
    parser.add_argument("--only", default="", help="methods or data sets, separated by commas")
    parser.add_argument("--record", type=Path, help="by default RUNS/record.jsonl")
    parser.add_argument("--quick", action="store_true", help="few images, one epoch, two seeds, on the CPU")
    options = parser.parse_intermixed_args()
    options.seeds = 2 if options.quick else options.seeds
    options.record = options.record or options.runs / "record.jsonl"
    options.runs.mkdir(parents=True, exist_ok=True)
    return options


def chosen(options, names):
    """Those of these names that `--only` asks for, or all."""
    only = options.only.split(",") if options.only else []
    return [name for name in names if name in only] if set(only) & set(names) else list(names)


def quickened(tables, quick):
    """The tables of an experiment, or with `quick` the same with one epoch for each phase, on the CPU."""
    if not quick:
        return tables
    learner, given = {"epochs": 1}, tables["learner"]
    if given["name"] == "prer":
        trained = given.get("density", {}).get("name", "flow") == "flow"
        learner |= {"epochs_autoencoder": 1} | ({"density": {"epochs": 1}} if trained else {})
    return merged(tables, {"device": "cpu", "learner": learner}, {})


def images(data, count=None, seed=0, part="all"):
    """Images [N, C, H, W] of a data set and the indices of their classes; `count` of each class, chosen at random."""
    read = StreamConfig(data=str(data)).read()
    first = len(read.y) - read.tests if part == "test" else 0
    x, y = as_samples(read.x[first:]), np.unique(read.y[first:], return_inverse=True)[1]
    if count is None:
        return x, y
    rng = np.random.default_rng(seed)
    rows = np.concatenate([np.sort(rng.permutation(np.flatnonzero(y == c))[:count]) for c in range(y.max() + 1)])
    return x[rows], y[rows]


def written(path, x, y):
    """The path of a file with these images [N, C, H, W] and labels."""
    np.savez(path, x=np.moveaxis(np.asarray(x), 1, -1), y=y)
    return path


def recorded(experiments, options, part):
    """Run experiments, print each as it ends, append a line for each to the record, and return lines by name."""
    begin, outcomes = time.perf_counter(), []
    for outcome in Local(options.workers).run(experiments, options.runs):
        outcomes.append(outcome)
        said = outcome.error or summary(line_of(outcome))
        print(f"{outcome.experiment.name}: {said}, after {time.perf_counter() - begin:.0f} s", flush=True)
    clock = {"part": part, "workers": options.workers, "seconds": round(time.perf_counter() - begin, 1)}
    lines = {outcome.experiment.name: line_of(outcome, clock) for outcome in outcomes}
    before = map(json.loads, options.record.read_text("utf-8").splitlines() if options.record.exists() else ())
    new = {key_of(line): line for _, line in sorted(lines.items())}
    every = {key_of(line): line for line in before} | new  # a run that is made again replaces its line
    replace_file(options.record, "".join(f"{json.dumps(line)}\n" for line in every.values()).encode())
    return lines


def key_of(line):
    """What tells the runs of a record apart."""
    return line["name"], tuple(line.get("seeds", ())), json.dumps(line.get("settings"), sort_keys=True)


def line_of(outcome, clock=None):
    """A run as a line of the record; of the path of its data it has only the name."""
    stream, line = outcome.experiment.stream, {"name": outcome.experiment.name, "failure": outcome.error}
    if (outcome.folder.path / "experiment.toml").exists():
        line = packed(outcome.folder, clock)
        line["settings"]["stream"]["data"] = stream.name
    if "failure" in line:
        line["failure"] = line["failure"].replace(stream.data, stream.name)
    return line


def figures(line):
    """Figures of a finished run by name; metrics are means over seeds."""
    result = result_of(line)
    found = {name: result[name]["mean"] for name in ("accuracy", "bwt", "final_accuracy")}
    found |= {"floats": result["memory_floats"][-1], "kB": result["memory_bytes"][-1] / 1000}
    if "agreement" in line:
        found["samples of their class, %"] = 100 * float(np.mean([share for _, share in line["agreement"]]))
    return found


def summary(line):
    """The figures of a line as one line of text."""
    return ", ".join(f"{name} {value:,.{0 if name == 'floats' else 2}f}" for name, value in figures(line).items())
