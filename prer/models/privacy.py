"""How near the memory's samples come to real ones. To store no sample is no proof that none can be recovered.

For every generated sample the nearest real one is looked for, among the training samples of its run and the test
samples, which the memory has never seen. If it is a new sample of the same kind, the nearest is as likely to be any of
them, so it is a training sample as often as these are among all. A memory that copies has its nearest among them far
more often. Distances alone would mislead: the mean of all samples is near to each.
"""

# S seeds, n samples, N training samples, P values of a sample

from __future__ import annotations

import torch
from torch import Tensor

from prer.learners.base import Learner
from prer.streams.stream import Stream
from prer.streams.task import Task

SAMPLES_COMPARED = 256  # samples that are compared at once


@torch.no_grad()
def nearest(x: Tensor, among: Tensor) -> Tensor:
    """The Euclidean distance of each sample [n, P] to the nearest of others [N, P], [n]."""
    parts = [
        torch.cdist(part, among, compute_mode="donot_use_mm_for_euclid_dist") for part in x.split(SAMPLES_COMPARED)
    ]
    return torch.cat([part.amin(1) for part in parts])


@torch.no_grad()
def check(learner: Learner, stream: Stream, count: int = 1000) -> dict[str, list]:
    """Compare generated samples with real ones, in the values the networks see.

    Returns:
        For each seed: `generated` and `test`, the smallest and the median distance of generated and of test samples to
        the nearest training sample; `nearest`, per cent of generated samples whose nearest real one is a training
        sample; `expected`, what that would be for new samples of the same kind.
    """
    address = learner.address_ / "privacy"
    ids = (address / "classes").bits(count) % learner.tasks_[-1].stop
    made = learner.generate(torch.from_numpy(ids.astype("int64")).to(address.device), address / "samples").flatten(2)
    found: dict[str, list] = {"generated": [], "test": [], "nearest": [], "expected": []}
    for i, seed in enumerate(address.seeds):
        train = torch.cat([_inputs(learner, i, task, task.train_rows([seed])) for task in stream])
        test = torch.cat([_inputs(learner, i, task, task.test_rows([seed])) for task in stream])
        generated, unseen = nearest(made[i], train), nearest(test[:: -(-len(test) // count)], train)
        for kind, distances in (("generated", generated), ("test", unseen)):
            found[kind].append([float(distances.min()), float(distances.median())])
        found["nearest"].append(100 * float((generated < nearest(made[i], test)).float().mean()))
        found["expected"].append(100 * len(train) / (len(train) + len(test)))
    return found


def _inputs(learner: Learner, seed: int, task: Task, rows: Tensor) -> Tensor:
    """Samples of one seed by their rows [1, n], as its networks see them [n, P]."""
    x = task.samples(rows)[0]
    return learner.inputs_(x.expand(len(learner.address_.seeds), *x.shape[1:]))[seed].flatten(1)
