"""Compare our learners with those of avalanche-lib, on the stream and the network of the digits experiment.

    OMP_NUM_THREADS=1 python benchmarks/against_avalanche.py [--seeds 5] [--epochs 20] [--batch 32] [--json FILE]
        [--methods naive ewc ewc-online lwf gem replay] [--ewc 1 10 100 1000 10000] [--lwf 0.1 1 10]
        [--gem 50 200] [--gem-strength 0.5] [--replay 50 200 500] [--decay 1] [--keep-optimiser] [--only theirs]

It needs a separate environment: pip install torch==2.13.0 avalanche-lib==0.6.0 quadprog. The rows of each split and the
initial weights of encoder and heads are the same as ours, seed by seed; there is no dropout. As in ours, the optimiser is
reset with each task (`--keep-optimiser` keeps Adam's moments, which is Avalanche's default). The order of the batches is
Avalanche's, including a smaller last batch of an epoch, which we leave out. The grids hold EWC's lambda, LwF's alpha,
GEM's samples per task, and Replay's samples in total. Our learners get equivalent settings: Avalanche's EWC has no factor
1/2 before lambda and uses true labels, and its LwF averages over the outputs of the old tasks (alpha / 4 with at most
four old tasks, temperature 2).
"""

import argparse
import importlib.metadata
import json
import platform
import sys
import time

import numpy as np
import torch
from torch import nn

from prer.address import Address
from prer.learners import LEARNERS
from prer.nn.heads import Head
from prer.nn.networks import Encoder
from prer.runs.learn import learn
from prer.runs.metrics import accuracy, bwt, spread
from prer.streams.config import StreamConfig


def import_torchvision():
    """Declare two operators, so that a CUDA build of torchvision can be imported with a CPU build of torch."""
    try:
        import torchvision
    except RuntimeError:
        for name in [name for name in sys.modules if name.split(".")[0] == "torchvision"]:
            del sys.modules[name]
        import_torchvision.library = torch.library.Library("torchvision", "DEF")  # kept alive
        for operator in ("nms", "qnms"):
            import_torchvision.library.define(f"{operator}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
        import torchvision  # noqa: F401

        return "torchvision::nms and torchvision::qnms declared without a kernel"
    return "nothing"


PATCHED = import_torchvision()
from avalanche.benchmarks import benchmark_from_datasets, with_classes_timeline, with_task_labels  # noqa: E402
from avalanche.benchmarks.utils import _make_taskaware_tensor_classification_dataset  # noqa: E402
from avalanche.models import MultiTaskModule  # noqa: E402
from avalanche.training import EWC, GEM, LwF, Naive, Replay  # noqa: E402
from avalanche.training.plugins import EvaluationPlugin  # noqa: E402

PACKAGES = ("torch", "avalanche-lib", "torchvision", "qpsolvers", "quadprog", "numpy")


def drawn(build, address):
    """A module with the initial weights of our learner for the only seed of the address."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(next(address.streams()))
        return build()


class MultiHead(MultiTaskModule):
    """Our encoder, and one of our heads for each task as it arrives."""

    def __init__(self, shape, seed):
        super().__init__()
        self.address = Address((seed,))
        self.encoder = drawn(lambda: Encoder(shape, 50, (12, 24, 48), ()), self.address / "encoder")
        self.heads = nn.ModuleDict()

    def adaptation(self, experience):
        """A head for each task that has none."""
        super().adaptation(experience)
        for task in experience.task_labels:
            if str(task) not in self.heads:
                self.heads[str(task)] = drawn(lambda: Head(50, 2, 0.0), self.address / "head" / task)

    def forward_single_task(self, x, task_label):
        """Logits of one task's head."""
        return self.heads[str(task_label)](self.encoder(x))


def part(task, rows):
    """Samples of a task as floats in [0, 1], as Avalanche expects them."""
    x, y = task.samples(rows)
    return _make_taskaware_tensor_classification_dataset(x.float() / 255, y, task_labels=task.index)


def experiences(stream, seed):
    train = [part(task, task.train_rows([seed])[0]) for task in stream]
    return with_classes_timeline(with_task_labels(benchmark_from_datasets(train=train))).train_stream


def strategy(method, strength, model, options):
    common = {
        "model": model,
        "optimizer": torch.optim.Adam(model.parameters(), 1e-3),
        "criterion": nn.CrossEntropyLoss(),
        "train_mb_size": options.batch,
        "train_epochs": options.epochs,
        "evaluator": EvaluationPlugin(),
    }
    if method == "ewc":
        return EWC(**common, ewc_lambda=strength)
    if method == "ewc-online":
        return EWC(**common, ewc_lambda=strength, mode="online", decay_factor=options.decay)
    if method == "lwf":
        return LwF(**common, alpha=strength, temperature=2)
    if method == "gem":
        return GEM(**common, patterns_per_exp=int(strength), memory_strength=options.gem_strength)
    if method == "replay":
        return Replay(**common, mem_size=int(strength))
    return Naive(**common)


@torch.no_grad()
def per_cent(model, task, seed):
    x, y = task.samples(task.test_rows([seed])[0])
    model.eval()
    return 100 * (model(x.float() / 255, task.index).argmax(1) == y).double().mean().item()


def run(stream, method, strength, seed, options):
    """R[i][j], per cent on task j after task i, and the seconds of training."""
    torch.manual_seed(seed)
    model = MultiHead(stream.shape, seed)
    learner = strategy(method, strength, model, options)
    R, seconds = np.full((len(stream), len(stream)), np.nan), 0.0
    for i, experience in enumerate(experiences(stream, seed)):
        begin = time.perf_counter()
        learner.train(experience, eval_streams=[], reset_optimizer_state=not options.keep_optimiser)
        seconds += time.perf_counter() - begin
        R[i, : i + 1] = [per_cent(model, task, seed) for task in stream[: i + 1]]
    return R, seconds


def own(stream, method, strength, options):
    """The same for our learner, with all seeds together."""
    meaning = {
        "ewc": {"weight": 2 * (strength or 0), "fisher": "empirical", "form": "separate"},
        "ewc-online": {"weight": 2 * (strength or 0), "fisher": "empirical", "form": "online", "fading": options.decay},
        "lwf": {"form": "classic", "weight": (strength or 0) / 4, "softness": 2.0},
        "gem": {"size": int(strength or 0), "memory_batch": 0, "margin": options.gem_strength},
        "replay": {"size": int(strength or 0), "memory_batch": options.batch, "selection": "balanced"},
    }.get(method, {})
    common = {"lr": 1e-3, "batch": options.batch, "epochs": options.epochs, "dropout": 0.0, "embedding": 50}
    learner = LEARNERS[method.split("-")[0]](**common, **meaning)
    result = learn(stream, learner, seeds=options.seeds, device="cpu")
    return [(R, result.seconds["total"] / options.seeds) for R in result.matrix]


def row(stream, method, strength, whose, options):
    """All seeds of one method with one strength."""
    if whose == "ours":
        runs = own(stream, method, strength, options)
    else:
        runs = [run(stream, method, strength, seed, options) for seed in range(options.seeds)]
    measured = {
        "accuracy": spread([accuracy(R) for R, _ in runs]),
        "bwt": spread([bwt(R) for R, _ in runs]),
        "seconds": [round(seconds, 2) for _, seconds in runs],
        "matrix": [[[None if np.isnan(v) else round(v, 4) for v in line] for line in R] for R, _ in runs],
    }
    a, b, seconds = measured["accuracy"], measured["bwt"], np.mean(measured["seconds"])
    known = [float("nan") if v is None else v for v in (a["std"], b["std"])]  # a single seed has no spread
    name = whose + " " + (method if strength is None else f"{method} {strength:g}")
    print(
        f"{name:24s} {a['mean']:6.2f} ± {known[0]:5.2f}  {b['mean']:7.2f} ± {known[1]:5.2f}  {seconds:6.1f} s",
        flush=True,
    )
    return {"whose": whose, "method": method, "strength": strength} | measured


def parsed():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    every = ["naive", "ewc", "ewc-online", "lwf", "gem", "replay"]
    parser.add_argument("--methods", nargs="+", choices=every, default=every)
    parser.add_argument("--ewc", nargs="+", type=float, default=[1, 10, 100, 1000, 10000], help="lambda, in both modes")
    parser.add_argument("--decay", type=float, default=1.0, help="of the importance in EWC's online mode")
    parser.add_argument("--lwf", nargs="+", type=float, default=[0.1, 1, 10], help="alpha")
    parser.add_argument("--gem", nargs="+", type=int, default=[50, 200], help="patterns of each task")
    parser.add_argument("--gem-strength", type=float, default=0.5)
    parser.add_argument("--replay", nargs="+", type=int, default=[50, 200, 500], help="patterns in all")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--epochs", type=int, default=20)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--keep-optimiser", action="store_true", help="theirs: Adam's moments live on between tasks")
    parser.add_argument("--only", choices=["ours", "theirs"])
    parser.add_argument("--json")
    return parser.parse_args()


def save(rows, options):
    """Write the rows so far, so that an interrupted run leaves them."""
    record = {
        "hardware": f"{platform.machine()}, one thread",
        "python": platform.python_version(),
        "packages": {name: importlib.metadata.version(name) for name in PACKAGES} | {"torch": torch.__version__},
        "patched": PATCHED,
        "options": {key: value for key, value in vars(options).items() if key != "json"},
    }
    with open(options.json, "w") as file:
        json.dump(record | {"rows": rows}, file, indent=1)


def main() -> None:
    options = parsed()
    torch.set_num_threads(1)
    stream = StreamConfig(data="digits", resplit=0.2).build()
    print("whose, method, strength  Accuracy           BWT         seconds of a seed")
    rows = []
    for method in options.methods:
        for strength in {"naive": [None], "ewc-online": options.ewc}.get(method) or getattr(options, method):
            for whose in [options.only] if options.only else ["theirs", "ours"]:
                rows.append(row(stream, method, strength, whose, options))
                if options.json:
                    save(rows, options)


if __name__ == "__main__":
    main()
