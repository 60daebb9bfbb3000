"""Compare our learners with published results on MNIST, in the published settings.

    python benchmarks/published.py [--rows split permuted gem agem class pixels] [--device auto] [--heads ours] [--fast] [--json FILE]

The metric is the mean accuracy on all tasks after the last one, on the official test part, mean ± standard error of five
seeds. The strength of EWC, SI and LwF is the best of a small grid, selected with seed 0 on a tenth of the training part; the
test part is not used. Pixels are in [0, 1] and not standardised, and the network is the published one: an encoder that
ends with its last hidden layer, and a linear layer as head. `--heads ours` uses our network instead (an embedding of size
100 and heads of three layers).

In the row "class" nobody tells the task: the metric is the accuracy over all classes, and one head grows. In the row "pixels",
too; CIFAR10's channels are standardised, as published. The shrinkage of SLDA is the published one.

Remaining differences. All: whole epochs, rounded to the published number of iterations; Adam is reset with every task,
while theirs continues; all seeds have the same permutations; old and new losses are not weighted by the number of tasks.
EWC: 500 samples for the Fisher information. SI: damping 0.1, as in their code. DGR: the prior is a Gaussian for each class,
so labels are known instead of predicted, and pixels are Gaussian with standard deviation 0.3 instead of Bernoulli. Joint:
fewer epochs over all tasks so far, for the same total number of steps. Replay: 1,000 samples from the first task on instead
of 100 of each class. GEM: a random memory instead of the newest samples. GEM and A-GEM: torch's initial weights instead of
Xavier's. Do not use `--heads ours` with these two: one pass of SGD hardly trains so deep a network.
"""

import argparse
import functools
import json
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch
from torch import nn

from prer.address import as_device
from prer.learners import AGEM, DGR, EWC, GEM, LWF, SI, SLDA, Joint, Naive, Replay, base
from prer.learners.closed_form import ClosedForm
from prer.nn.heads import Head, Heads
from prer.nn.networks import Encoder, Inputs
from prer.nn.stacked import Linear
from prer.runs.environment import environment
from prer.runs.learn import learn
from prer.streams.config import load
from prer.streams.stream import Stream

SOURCES = {
    "V18": "van de Ven & Tolias 2018, Generative replay with feedback connections as a general strategy for continual "
    "learning (arXiv 1809.10635, as submitted to ICLR 2019), tables 3 and 4: mean ± SEM of 20 runs",
    "V19": "van de Ven & Tolias 2019, Three scenarios for continual learning (arXiv 1904.07734), table 4: ± SEM",
    "V22": "van de Ven, Tuytelaars & Tolias 2022, Three types of incremental learning (Nature MI 4), table 2: ± SEM",
    "V21": "van de Ven, Li & Tolias 2021, Class-incremental learning with generative classifiers (CVPR workshops), table 2",
    "R19": "Riemer et al. 2019, Learning to learn without forgetting (ICLR), MNIST permutations: the setting of "
    "Lopez-Paz & Ranzato 2017, Gradient episodic memory, who have only a figure (GEM at some 83 there)",
    "C19": "Chaudhry et al. 2019, Efficient lifelong learning with A-GEM (ICLR), table 4: 5 runs",
}
ADAM, SGD = {"batch": 128, "dropout": 0.0}, {"batch": 10, "dropout": 0.0, "epochs": 1, "optimiser": "sgd", "lr": 0.1}
SETTINGS = {  # tasks, tasks the grid is judged on, and what all learners share
    "split": (5, 5, ADAM | {"hidden": (400, 400), "epochs": 21, "lr": 1e-3}),  # 21 x 94 steps, published 2,000
    "class": (5, 5, ADAM | {"hidden": (400, 400), "epochs": 21, "lr": 1e-3}),
    "pixels": (5, 5, {}),
    "permuted": (10, 2, ADAM | {"hidden": (1000, 1000), "epochs": 11, "lr": 1e-4}),  # 11 x 468, published 5,000
    "gem": (20, 5, SGD | {"hidden": (100, 100)}),  # 1,000 samples a task
    "agem": (17, 3, SGD | {"hidden": (256, 256)}),  # 60,000 samples a task; three tasks for the search as published
}
BUFFER, CLASSIC, DAMPED, ONLINE = {"memory_batch": 128}, {"form": "classic"}, {"damping": 0.1}, {"form": "online"}
VAE = BUFFER | {"latent": 100}
# Learner, its settings, a grid for its weight, and the published figures with their spread and source. "~": not read in
# the paper but in a text that quotes its table; "?": quoted from memory, not read again.
ROWS = {
    "split": {
        "none": (Naive, {}, (), "85.15 1.00 V18, 87.19 0.94 V19?"),
        "ewc": (EWC, {}, (1e3, 1e4, 1e5, 1e6, 1e7), "98.64 0.22 V19~, 85.48 1.20 V18"),
        "online-ewc": (EWC, ONLINE, (1e3, 1e4, 1e5, 1e6, 1e7), "99.12 0.11 V19?, 85.22 1.06 V18"),
        "si": (SI, DAMPED, (1, 10, 100, 1000), "99.14 0.11 V18, 99.09 0.15 V19?"),
        "lwf": (LWF, CLASSIC, (0.3, 1, 3), "99.60 0.03 V18, 99.57 0.02 V19?"),
        "dgr": (DGR, VAE | {"epochs_generator": 21}, (), "99.47 0.03 V18, 99.50 0.03 V19~"),
        "replay": (Replay, BUFFER | {"size": 1000, "selection": "balanced"}, (), "98.98 0.07 V22?"),
        "agem": (AGEM, BUFFER | {"size": 200}, (), "98.58 0.11 V22?"),
        "joint": (Joint, {"epochs": 7}, (), "99.64 0.03 V18, 99.66 0.02 V19?"),
    },
    "class": {
        "none": (Naive, {}, (), "19.90 - V21~"),
        "ewc": (EWC, {}, (1e3, 1e4, 1e5, 1e6, 1e7), "19.95 - V21~"),
        "si": (SI, DAMPED, (1, 10, 100, 1000), "19.95 - V21~"),
        "dgr": (DGR, VAE | {"epochs_generator": 21}, (), "91.30 - V21~"),
        "slda": (SLDA, {"shrinkage": 1e-4}, (), "87.30 - V21~"),
        "joint": (Joint, {"epochs": 7}, (), "98.23 - V21~"),
    },
    "pixels": {"slda": (SLDA, {"shrinkage": 1e-4}, (), "38.35 - V21~")},
    "permuted": {
        "none": (Naive, {}, (), "78.51 0.24 V18"),
        "ewc": (EWC, {}, (10, 100, 1000), "94.31 0.11 V18"),
        "online-ewc": (EWC, ONLINE, (10, 100, 1000), "94.42 0.13 V18"),
        "si": (SI, DAMPED, (1, 10, 100), "95.33 0.11 V18"),
        "lwf": (LWF, CLASSIC, (0.3, 1, 3), "72.64 0.52 V18"),
        "dgr": (DGR, VAE | {"epochs_generator": 11, "lr_generator": 1e-4}, (), "95.09 0.04 V18"),
        "joint": (Joint, {"epochs": 2}, (), "97.59 0.01 V18"),
    },
    "gem": {
        "none": (Naive, {"lr": 0.03}, (), "55.42 0.65 R19?"),
        "ewc": (EWC, {}, (1, 10, 100), "62.32 1.34 R19?"),
        "gem": (GEM, {"size": 256, "memory_batch": 0}, (), "82.50 0.42 R19?"),
    },
    "agem": {
        "none": (Naive, {"lr": 0.03}, (), "47.9 1.32 C19"),
        "ewc": (EWC, {"lr": 0.03}, (1, 10, 100, 1000), "68.3 0.69 C19"),
        "agem": (AGEM, {"size": 250, "memory_batch": 256}, (), "89.1 0.14 C19"),
    },
}


class Body(Encoder):
    """An encoder that ends at its last hidden layer."""

    def __init__(self, *about, **more):
        super().__init__(*about, **more)
        self.layers = self.layers[:-1]


class Output(Head):
    """A head of one linear layer."""

    widths = staticmethod(lambda embedding: (0, 0))
    forward = lambda self, z, noise=None: self.layers[0](z)  # noqa: E731

    def __init__(self, embedding, classes, dropout, hidden=None):
        nn.Module.__init__(self)
        self.hidden, self.dropout, self.classes = (0, 0), dropout, classes
        self.layers = nn.ModuleList([Linear(embedding, classes)])


class Outputs(Heads):
    """All such heads as one."""

    def __init__(self, heads):
        nn.Module.__init__(self)
        self.heads, self.widths, self.dropout = (
            [head.linears() for head in heads],
            [head.classes for head in heads],
            0.0,
        )
        self.weights, self.biases = (nn.ParameterList([self._stacked(0, name)]) for name in ("weight", "bias"))
        self.ragged, there = (
            len(set(self.widths)) > 1,
            torch.arange(max(self.widths)) < torch.tensor(self.widths).unsqueeze(1),
        )
        self.register_buffer("there", there.to(self.weights[0].device))

    def forward(self, z, head, noise=None):
        """Logits of embeddings, each by its head."""
        return self.every(z).gather(2, head[..., None, None].expand(-1, -1, 1, max(self.widths))).squeeze(2)

    def every(self, z, noise=None):
        """Logits of all heads."""
        return torch.einsum("stkd,sbd->sbtk", self.weights[0], z) + self.biases[0].unsqueeze(1)

    def of(self, head, z, noise=None):
        """Logits of one head."""
        return self.every(z)[:, :, head, : self.widths[head]]


class Plain(Inputs):
    """Leaves pixels unscaled: relative to the first task's standard deviations, a permuted pixel may be hundreds of them away."""

    std_of_all = 1.0

    def start(self, samples):
        """Set the same scale for every pixel."""
        self.std.fill_(self.std_of_all)


@functools.cache
def stream_of(row, fast):
    """The tasks of a setting."""
    if row == "pixels":
        return standardised(load("cifar10"), 20 if fast else 1)
    data, (count, _, _) = load("mnist"), SETTINGS[row]
    count, every = (min(count, 3), 20) if fast else (count, 1)
    images = torch.as_tensor(data.x).float().div(255)[::every]
    if row == "permuted":
        images = nn.functional.pad(images, [2] * 4)  # published with 32 x 32 pixels
    data = data._replace(x=images.flatten(1), y=data.y[::every], tests=data.tests // every, checked=True)
    if row in ("split", "class"):
        scenario = "class" if row == "class" else "task"
        return Stream.split(data, tasks=[(2 * t, 2 * t + 1) for t in range(count)], scenario=scenario)
    if row != "gem":
        return Stream.permuted(data, tasks=count)
    x, y, first, draw = data.x.numpy(), data.y, len(data.x) - data.tests, np.random.default_rng(0)

    def parts():
        for _ in range(count):
            rows, order = draw.choice(first, 1000 // (5 if fast else 1), replace=False), draw.permutation(x.shape[1])
            yield x[rows][:, order], y[rows], x[first:][:, order], y[first:]

    return Stream.of(parts())


def standardised(data, every):
    """CIFAR10 as vectors, each channel standardised over the training part; nobody tells the task."""
    x = torch.as_tensor(data.x)[::every].float().div(255)
    tests = data.tests // every
    std, mean = torch.std_mean(x[: len(x) - tests], (0, 2, 3), keepdim=True)
    data = data._replace(x=((x - mean) / std).flatten(1), y=data.y[::every], tests=tests, checked=True)
    return Stream.split(data, classes_per_task=2, scenario="class")


def run(row, method, options):
    """One row of the table: the best weight, and our result with it."""
    learner, special, grid, published = ROWS[row][method]
    stream, (_, judged, shared) = stream_of(row, options.fast), SETTINGS[row]
    closed = issubclass(learner, ClosedForm)
    settings = special if closed else shared | special
    settings |= {} if closed else {"embedding": shared["hidden"][-1] if options.heads == "published" else 100}
    # DGR's decoder has standard deviation 1, which blurs digits in [0, 1].
    Plain.std_of_all = 0.3 if learner is DGR else 1.0
    if options.fast and not closed:
        settings |= {key: 1 for key in settings if key.startswith("epochs")} | {"hidden": (40, 40), "embedding": 40}
        settings, grid = settings | ({"samples": 32} if learner is EWC else {}), grid[:2]
    search, found = replace(stream, tasks=stream.tasks[:judged]).validated(0.1), {}
    for weight in grid:
        try:
            result = learn(search, learner(**settings, weight=weight), seeds=[0], device=options.device)
            found[weight] = result.metrics["final_accuracy"]["mean"]
        except Exception as error:  # a weight that makes the loss infinite is a bad weight
            print(f"{row:9s} {method:11s} weight {weight:g}: {error}", flush=True)
    settings |= {"weight": max(found, key=found.get)} if grid else {}
    result = learn(stream, learner(**settings), seeds=2 if options.fast else 5, device=options.device)
    metrics = {name: result.metrics[name] for name in ("final_accuracy", "final_bwt")}
    ours = metrics["final_accuracy"]
    entry = {"row": row, "method": method, "settings": settings, "grid": {f"{w:g}": a for w, a in found.items()}}
    entry |= metrics | {"sem": ours["std"] / len(ours["values"]) ** 0.5, "seconds": result.seconds}
    return entry | {"published": [parsed(figure) for figure in published.split(", ")]}


def parsed(figure):
    """A published result by name; `seen`: whether it was looked up for this table, in the paper or in a text that quotes it."""
    value, spread, source = figure.split()
    seen = {"?": False, "~": "quoted"}.get(source[3:], True)
    return {
        "figure": float(value),
        "spread": None if spread == "-" else float(spread),
        "source": source[:3],
        "seen": seen,
    }


def line(entry):
    """An entry as a line of text."""
    weight = f"{entry['settings']['weight']:g}" if entry["grid"] else ""
    ours = f"{entry['final_accuracy']['mean']:6.2f} ± {entry['sem']:.2f}"
    return f"{entry['row']:9s} {entry['method']:11s} {weight:>6s}  {ours:15s}  {ROWS[entry['row']][entry['method']][3]}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", nargs="+", choices=ROWS, default=["split", "permuted", "gem"])
    parser.add_argument("--methods", nargs="+", help="only these of each row, none or ewc for instance")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--heads", choices=("published", "ours"), default="published")
    parser.add_argument("--fast", action="store_true", help="smoke test: a few steps of small networks")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    options.device, begin, entries = as_device(options.device), time.perf_counter(), []
    base.Inputs = Plain
    if options.heads == "published":
        base.Encoder, base.Head, base.Heads = Body, Output, Outputs
    for row in options.rows:
        for method in [name for name in ROWS[row] if name in (options.methods or ROWS[row])]:
            start = time.perf_counter()
            try:
                entry = run(row, method, options)
                print(f"{line(entry)}  [{time.perf_counter() - start:.0f} s]", flush=True)
            except Exception as error:  # continue with the others
                entry = {"row": row, "method": method, "error": f"{type(error).__name__}: {error}"}
                print(f"{row:9s} {method:11s} {entry['error']}", flush=True)
            entries.append(entry)
            if options.json:
                how = {key: value for key, value in vars(options).items() if key != "json"}
                record = {"options": how, "environment": environment(), "sources": SOURCES}
                record |= {"seconds": round(time.perf_counter() - begin), "entries": entries}
                options.json.write_text(json.dumps(record, indent=1) + "\n")


if __name__ == "__main__":
    main()
