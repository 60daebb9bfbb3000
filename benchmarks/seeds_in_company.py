"""Check whether the result of a seed depends on other seeds that train together with it, and whether only by rounding.

    python benchmarks/seeds_in_company.py [--json FILE]

Trains on the built-in digits with the shipped settings, except for five epochs of every classifier, on one CPU thread. It
compares seed 0 of two runs: its weights after some steps and at the end, and the cells of its matrix.

- company: alone, and together with seeds 1 to 4.
- seed by seed: the same, but Adam updates one seed after another, so that its loops end where they end for seed 0 alone.
- float64: the same in double precision (with different initial weights and noise).
- nudged: alone, and alone with the encoder's initial weights changed by 1e-7 of their size. A control without neighbours.
"""

import argparse
import contextlib
import hashlib
import json
from pathlib import Path
from unittest.mock import patch

import numpy as np
import torch

import prer.learners.gem
import prer.training.optimisers
from prer.data.entry import silent
from prer.learners import LEARNERS
from prer.runs.environment import environment
from prer.runs.experiment import Experiment
from prer.runs.learn import learn
from prer.training.loop import Step

NAMES = ("naive", "ewc", "er", "gem", "agem", "prer")
AT = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 4000)  # steps whose weights are kept
ALONE, COMPANY = [0], [0, 1, 2, 3, 4]
NUDGE = 1e-7


class Watch:
    """Records seed 0 during a run."""

    def __init__(self):
        self.weights = {}  # of some steps, counted from 1
        self.digests = []  # of the weights after every step
        self.starts = []  # steps that are the first of a fresh optimiser
        self.projected = {}  # step -> whether GEM changed its gradient
        self.step = self.last = None

    def after(self, step):
        """Record the weights after a step."""
        weights = torch.cat([p.detach()[0].flatten() for p in step.optimiser.parameters])
        self.digests.append(hashlib.sha256(weights.numpy().tobytes()).digest())
        number, fresh = len(self.digests), step is not self.step
        if fresh and self.step:
            self.starts.append(number)
            self.weights[number - 1] = self.last
        if fresh or number in AT:
            self.weights[number] = weights
        self.step, self.last = step, weights

    def before_projection(self, g, G):
        """Record whether a constraint of GEM is violated."""
        self.projected[len(self.digests) + 1] = bool((G[0].double() @ g[0].double() < 0).any())


@contextlib.contextmanager
def watched():
    watch, plain, project = Watch(), Step.plain, prer.learners.gem.project

    def one_step(step, *batch):
        loss = plain(step, *batch)
        watch.after(step)
        return loss

    def noted(g, G, margin):
        watch.before_projection(g, G)
        return project(g, G, margin)

    with patch.object(Step, "plain", one_step), patch.object(prer.learners.gem, "project", noted):
        yield watch


@contextlib.contextmanager
def adam_seed_by_seed():
    adam = prer.training.optimisers.adam

    def each(parameters, gradients, means, squares, largest, steps, **constants):
        for seed in range(len(parameters[0])):
            tensors = ([t[seed] for t in kind] for kind in (parameters, gradients, means, squares))
            counts = [t.clone() for t in steps]
            adam(*tensors, largest, counts, **constants)
        for mine, counted in zip(steps, counts, strict=True):
            mine.copy_(counted)

    with patch.object(prer.training.optimisers, "adam", each):
        yield


@contextlib.contextmanager
def float64():
    torch.set_default_dtype(torch.float64)
    try:
        with patch.object(torch.Tensor, "float", torch.Tensor.double):
            yield
    finally:
        torch.set_default_dtype(torch.float32)


def nudge(learner):
    start = learner.start

    def nudged(*arguments):
        start(*arguments)
        signs = torch.Generator().manual_seed(0)
        for p in learner.encoder_.parameters():
            p.data *= 1 + NUDGE * (2.0 * torch.randint(2, p.shape, generator=signs) - 1)

    learner.start = nudged


def trained(name, stream, seeds, nudged=False):
    learner = LEARNERS[name].like("digits", epochs=5)
    if nudged:
        nudge(learner)
    with watched() as watch:
        matrix = learn(stream, learner, seeds=seeds, device="cpu", warned=True).matrix[0]
    networks = *learner.encoder_.parameters(), *learner.heads_.parameters()
    watch.weights["end"] = torch.cat([p.detach()[0].flatten() for p in networks])
    return watch, matrix


def compared(one, other):
    (a, matrix), (b, matrix_of_other) = one, other
    steps = [i for i, (p, q) in enumerate(zip(a.digests, b.digests, strict=True), 1) if p != q]
    apart = {step: a.weights[step] - b.weights[step] for step in a.weights}
    largest = {step: float(f"{d.abs().max():.2g}") for step, d in apart.items()}
    at = [step for step in (*AT, "end") if step in apart]
    disagreed = [step for step, there in a.projected.items() if there != b.projected[step]]
    return {
        "steps": len(a.digests),
        "first_different_step": steps[0] if steps else None,
        "largest_difference_of_a_weight": {step: largest[step] for step in at},
        "relative_difference": {step: float(f"{apart[step].norm() / a.weights[step].norm():.2g}") for step in at},
        "fresh_optimiser": [{"step": s, "before": largest[s - 1], "after": largest[s]} for s in a.starts],
        "largest_difference_of_a_cell": round(float(np.nanmax(np.abs(matrix - matrix_of_other))), 2),
        "projected_in_one_run_only": {"steps": len(disagreed), "first": min(disagreed)} if disagreed else None,
    }


def comparisons(name, stream):
    alone = trained(name, stream, ALONE)
    yield "company", compared(alone, trained(name, stream, COMPANY))
    yield "nudged", compared(alone, trained(name, stream, ALONE, nudged=True))
    with adam_seed_by_seed():
        yield "seed by seed", compared(alone, trained(name, stream, COMPANY))
    with float64():
        yield "float64", compared(trained(name, stream, ALONE), trained(name, stream, COMPANY))


def cells_of_each_seed(name, stream):
    """The largest difference of a cell between each seed alone and with the others; also with Adam seed by seed."""

    def matrices(seeds):
        return learn(stream, LEARNERS[name].like("digits", epochs=5), seeds=seeds, device="cpu", warned=True).matrix

    def differences(company):
        return [round(float(np.nanmax(np.abs(a - b))), 2) for a, b in zip(alone, company, strict=True)]

    alone = [matrices([seed])[0] for seed in COMPANY]
    plain = differences(matrices(COMPANY))
    with adam_seed_by_seed():
        return {"company": plain, "seed by seed": differences(matrices(COMPANY))}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    torch.set_num_threads(1)
    stream, found = Experiment.parse({}, []).stream.build(silent), {}
    print("weights apart after steps 1, 10, 100 and at the end; largest difference of a cell in points")
    for name in NAMES:
        found[name] = dict(comparisons(name, stream))
        for kind, about in found[name].items():
            weights, cell = about["largest_difference_of_a_weight"], about["largest_difference_of_a_cell"]
            at = "  ".join(f"{weights[step]:8.1e}" for step in (1, 10, 100, "end"))
            print(f"{name:6} {kind:13} {at}  {cell:5.2f}", flush=True)
    each = cells_of_each_seed("gem", stream)
    print(f"gem, seeds 0 to 4: {each}")
    if options.json:
        record = {"command": "python benchmarks/seeds_in_company.py", "environment": environment(), "found": found}
        record["gem_cells_of_each_seed"] = each
        options.json.write_text(json.dumps(record, indent=1) + "\n")


if __name__ == "__main__":
    main()
