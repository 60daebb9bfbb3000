"""Validation of PRER's default over features: shrinkage, and how much the likelihood counts in the answer.

    python benchmarks/features_default.py RUNS FILE [NAME=PATH ...] [--workers N]

For each shrinkage of the mixture, PRER runs over the features of each data set with two seeds, tested on a fifth of the training
part. Its head and its likelihood are then combined with each certainty. The test parts are not used. NAME=PATH is a CSV
(clinc150, banking77) or a folder (cifar100).
"""

import argparse
import json
import sys
import time
from pathlib import Path

import torch

from prer.address import as_device
from prer.densities.likelihood import likelihoods
from prer.learners.labelling import outputs_of
from prer.models.folder import load
from prer.paper.features import SOURCES, TEXT
from prer.runs.environment import environment
from prer.runs.experiment import Experiment
from prer.sweeps.engines.local import Local

SHRINKAGE = (0.3, 1.0, 2.0)
CERTAINTY = (5, 10, 20, 40, 80, 160)
AT_ONCE = 500  # samples


def experiment(data, path, shrinkage):
    source = SOURCES[data]
    stream = {"data": path, "features": source.features, "classes_per_task": source.classes_per_task}
    stream |= {"scenario": "class", "validation": 0.2} | (TEXT if source.features == "minilm" else {})
    learner = {"name": "prer", "density": {"shrinkage": shrinkage}}
    return Experiment.parse({"name": f"{data}-{shrinkage}", "seeds": [0, 1], "stream": stream, "learner": learner})


@torch.no_grad()
def answers(outcome):
    """Accuracy of the head, of the likelihood, and of both with each certainty, mean over seeds."""
    learner, seeds = load(outcome.folder.path, as_device("auto")).learner, outcome.experiment.seeds
    right = dict.fromkeys(("head", "likelihood", *CERTAINTY), 0.0)
    for task in outcome.experiment.stream.build():
        rows = task.to(learner.address_.device).test_rows(seeds)
        for part in rows.split(AT_ONCE, 1):
            x, y = task.to(learner.address_.device).samples(part)
            z, y = learner.encoder_(learner.inputs_(x)), task.targets.to(y.device)[y]
            head = learner.heads_[0](z).log_softmax(-1)
            found = likelihoods(learner.density_, z, outputs_of(learner, 0))
            scores = {"head": head, "likelihood": found}
            scores |= {c: head + c / learner.dimension_ * found for c in CERTAINTY}
            for name, each in scores.items():
                right[name] += float((each.argmax(-1) == y).sum())
        right["samples"] = right.get("samples", 0) + rows.numel()
    count = right.pop("samples")
    return {str(name): round(100 * n / count, 2) for name, n in right.items()}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", type=Path)
    parser.add_argument("file", type=Path)
    parser.add_argument("paths", nargs="*", metavar="NAME=PATH")
    parser.add_argument("--workers", type=int, default=1)
    options = parser.parse_args()
    paths, begin = dict(word.split("=", 1) for word in options.paths), time.perf_counter()
    datas = [data for data in SOURCES if data in paths or data == "cifar10"]
    asked = {(data, s): experiment(data, paths.get(data, data), s) for data in datas for s in SHRINKAGE}
    for data in datas:  # so that runs share the features
        asked[data, SHRINKAGE[0]].stream.build()
    owners, found = {e.hash: key for key, e in asked.items()}, {}
    for outcome in Local(options.workers).run(list(asked.values()), options.runs):
        data, shrinkage = owners[outcome.experiment.hash]
        found.setdefault(data, {})[str(shrinkage)] = outcome.error or answers(outcome)
        print(data, shrinkage, found[data][str(shrinkage)], f"{time.perf_counter() - begin:.0f} s", flush=True)
    record = {"command": " ".join(["python", *sys.argv]), "environment": environment(), "seeds": [0, 1]}
    record |= {"seconds": round(time.perf_counter() - begin), "certainty in use": 40, "accuracy": found}
    options.file.write_text(json.dumps(record, indent=1) + "\n")


if __name__ == "__main__":
    main()
