"""How close generated samples are to real ones. Storing no samples does not prove that none can be recovered.

For every generated sample we find the nearest real one, among the training samples of its run and the test samples,
which the memory has never seen. For a new sample of the same distribution any of them is equally likely to be nearest,
so the share of training samples among the nearest equals their share among all. If the memory copies, it is far higher.
Distances alone would mislead: the mean of all samples is close to each of them.
"""

# S seeds, n samples, N training samples, P values of a sample

from __future__ import annotations

import torch
from torch import Tensor

from prer.learners.base import Learner
from prer.learners.interfaces import generator_of
from prer.streams.stream import Stream
from prer.streams.task import Task

SAMPLES_COMPARED = 256  # samples that are compared at once


@torch.no_grad()
def nearest(x: Tensor, among: Tensor) -> Tensor:
    """Euclidean distance [n] of each sample [n, P] to the nearest of others [N, P]."""
    parts = [
        torch.cdist(part, among, compute_mode="donot_use_mm_for_euclid_dist") for part in x.split(SAMPLES_COMPARED)
    ]
    return torch.cat([part.amin(1) for part in parts])


@torch.no_grad()
def check(learner: Learner, stream: Stream, count: int = 1000) -> dict[str, list]:
    """Compare generated samples with real ones, as inputs of the networks.

    Returns:
        For each seed: `generated` and `test`, the smallest and the median distance of generated and of test samples to
        the nearest training sample; `nearest`, per cent of generated samples whose nearest real one is a training
        sample; `expected`, the same for new samples of the same distribution.
    """
    address = learner.address_ / "privacy"
    ids = (address / "classes").bits(count) % learner.tasks_[-1].stop
    made = (
        generator_of(learner)
        .generate(torch.from_numpy(ids.astype("int64")).to(address.device), address / "samples")
        .flatten(2)
    )
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
    """Network inputs [n, P] of one seed, from rows [1, n] of a task."""
    x = task.samples(rows)[0]
    return learner.inputs_(x.expand(len(learner.address_.seeds), *x.shape[1:]))[seed].flatten(1)
