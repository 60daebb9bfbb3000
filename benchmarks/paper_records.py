"""Pack the run folders of the paper's tables into one file with a line for each run, and unpack it again.

    python benchmarks/paper_records.py pack RUNS FILE.jsonl
    python benchmarks/paper_records.py unpack FILE.jsonl DIR

`prer reproduce all --finished --out DIR` and `prer show` read the unpacked folders. The current code names the folders, so
they stay valid if the hash of an experiment changes. A line omits values that can be computed (metrics, checksum), paths,
and all events except the agreement after the last task and the reason of a failure.
"""

import argparse
import json
from pathlib import Path

import numpy as np

from prer.disk import checksum
from prer.paper.reproduce import CLOCKS, clocks
from prer.runs.discovery import discover
from prer.runs.experiment import Experiment
from prer.runs.folder import RunFolder
from prer.runs.metrics import share_right, spread, summary

NOT_PACKED = ("folder", "context")  # keys of the environment that are left out: a path, and a copy of the settings


def pack(runs):
    """The lines of all runs in a folder, sorted."""
    clock_of = {
        folder: {"part": part, "workers": clock.workers, "seconds": clock.seconds}
        for part, clock in clocks(runs).items()
        for folder in clock.folders
    }
    return sorted(json.dumps(packed(RunFolder(path), clock_of.get(path.name))) for path in discover([runs])[0])


def packed(run, clock):
    """A run as plain values; `clock` describes the command that made it, if known."""
    tables, about, result = run.experiment, run.environment, run.result
    line = {"name": tables.pop("name"), "seeds": tables.pop("seeds"), "settings": tables}
    line["environment"] = {key: value for key, value in about.items() if key not in NOT_PACKED}
    line |= {"clock": clock} if clock else {}
    if result is None:
        return line | ({"failure": run.failure} if run.failure else {})
    computed = {"seeds", *metrics(result)}
    line["result"] = {key: value for key, value in result.items() if key not in computed}
    if checksum(result_of(line)) != checksum(result):
        raise SystemExit(f"{run.path}: metrics or seeds of the result do not follow from its matrix and experiment")
    health = [event for event in run.events() if event.get("event") == "health"]
    last = [[event["class"], event["agreement"]] for event in health if event["task"] == health[-1]["task"]]
    return line | ({"agreement": last} if last else {})


def metrics(result):
    """The metrics of a result, computed from its matrix and, if the task was not given, its confusion matrix."""
    found = summary(np.array(result["matrix"], float), np.array(result["untrained"], float))
    if result.get("confusion"):
        found["final_accuracy"] = spread([share_right(C) for C in np.array(result["confusion"])])
    return found


def result_of(line):
    """The whole result of a line."""
    return {"seeds": line["seeds"]} | line["result"] | metrics(line["result"])


def experiment_of(line):
    """The experiment of a line."""
    return Experiment.parse_run({"name": line["name"], "seeds": line["seeds"]} | line["settings"])


def unpack(lines, out):
    """Write a run folder for each line, and the durations of the commands that made them."""
    found = {}
    for line in map(json.loads, lines):
        experiment = experiment_of(line)
        run = RunFolder(out / experiment.folder)
        run.path.mkdir(parents=True)
        run.begin(experiment.to_toml())
        (run.path / "environment.json").write_text(json.dumps(line["environment"], indent=1) + "\n", "utf-8")
        for label, agreement in line.get("agreement", []):
            task = len(line["result"]["memory_floats"]) - 1
            run.event({"event": "health", "task": task, "class": label, "agreement": agreement})
        if "result" in line:
            run.finish(result_of(line))
        if "failure" in line:
            run.event({"event": "failed", "reason": line["failure"]})
        if "clock" in line:
            clock = dict(line["clock"])
            found.setdefault(clock.pop("part"), {"folders": []} | clock)["folders"].append(experiment.folder)
    (out / CLOCKS).write_text(json.dumps(found, indent=1) + "\n", "utf-8")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", choices=("pack", "unpack"))
    parser.add_argument("source", type=Path)
    parser.add_argument("target", type=Path)
    options = parser.parse_args()
    if options.command == "pack":
        options.target.write_text("\n".join(pack(options.source)) + "\n", "utf-8")
    else:
        unpack(options.source.read_text("utf-8").splitlines(), options.target)


if __name__ == "__main__":
    main()
