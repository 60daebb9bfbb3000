"""Compare three answers of PRER if the task is not given: its head, the likelihood, and the recentred likelihood.

python benchmarks/recentring.py [NAME=PATH ...] [--only mnist,digits] [--seeds N] [--json RECORD]

The recentred likelihood is log p(z | c) minus its mean over samples of p(z | c): it removes the entropy of each class. All
three answer for the same networks, trained with the recommended settings, on a fifth of the training part: the test part is
not used. NAME=PATH reads a data set from a folder.
"""

import argparse
import json
import sys
from pathlib import Path

import torch

from prer.data.entry import silent
from prer.densities.likelihood import likelihoods
from prer.learners.labelling import outputs_of
from prer.runs.environment import environment
from prer.runs.experiment import Experiment
from prer.runs.learn import learn
from prer.training.computing import computing, rows_at_once

DATA = ("digits", "mnist", "kmnist", "svhn", "cifar10")
SAMPLES = 2000  # of each class, to estimate the mean of its log-likelihood


def answers(data, path, seeds, device):
    """Accuracy in per cent of each answer, for each seed."""
    tables = {"like": data, "stream": {"data": path, "scenario": "class", "validation": 0.2}, "seeds": seeds}
    experiment = Experiment.parse(tables | {"learner": {"name": "prer"}}, [f"device={device}"] if device else [])
    learner, stream = experiment.learner, experiment.stream.build(silent)
    learn(stream, learner, seeds=experiment.seeds, device=experiment.device)
    with computing(learner.address_.device), torch.no_grad():
        right = [right_on(learner, task) for task in stream.to(learner.address_.device)]
    shares = 100 * torch.cat(right, dim=2).float().mean(2)
    of_answer = dict(zip(("head", "likelihood", "recentred"), shares.tolist(), strict=True))
    return {"chosen": learner.answer} | of_answer


def right_on(learner, task):
    """Which test samples of a task each answer gets right [answers, S, m]."""
    density, outputs = learner.density_, outputs_of(learner, task.head)
    ids = (
        torch.tensor([*outputs], device=task.y.device)
        .repeat_interleave(SAMPLES)
        .expand(len(learner.address_.seeds), -1)
    )
    typical = density.log_prob(density.sample(ids, learner.address_ / "recentring"), ids)
    typical = typical.unflatten(1, (len(outputs), SAMPLES)).mean(2)  # [S, C], in the order of the classes' ids
    right = []
    for rows in task.test_rows(learner.address_.seeds).split(rows_at_once(learner.address_), 1):
        x, y = task.samples(rows)
        z = learner.encoder_(learner.inputs_(x))
        by_likelihood = likelihoods(density, z, outputs)
        of_output = typical[:, torch.tensor([*outputs.values()], device=z.device).argsort()]
        found = (learner.heads_[task.head](z), by_likelihood, by_likelihood - of_output.unsqueeze(1))
        right.append(torch.stack([scores.argmax(-1) == task.targets[y] for scores in found]))
    return torch.cat(right, dim=2)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("paths", nargs="*", metavar="NAME=PATH")
    parser.add_argument("--only", default=",".join(DATA))
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--device")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    paths, found = dict(word.split("=", 1) for word in options.paths), {}
    for data in options.only.split(","):
        found[data] = answers(data, paths.get(data, data), options.seeds, options.device)
        print(data, found[data], flush=True)
        if options.json:
            about = {"command": " ".join(["python", "benchmarks/recentring.py", *sys.argv[1:]])}
            about |= {"environment": environment(), "accuracies": found}
            options.json.write_text(json.dumps(about, indent=1) + "\n")


if __name__ == "__main__":
    main()
