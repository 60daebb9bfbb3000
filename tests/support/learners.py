"""Learners of a few units, small streams, and what a test sees of their training."""

import numpy as np
import pytest
import torch

from prer import Stream, learn
from prer.learners import ABLATION, LEARNERS
from prer.learners.closed_form import ClosedForm
from prer.migration import SWITCHES
from prer.settings import families, merged, named
from prer.testing.streams import domains as one_head  # one head for three domains of the same classes

NEEDS_GPU = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
TINY = {"embedding": 16, "batch": 16, "epochs": 2, "channels": (8, 8, 8), "hidden": (16,)}
# With 8 channels one of the seeds has an encoder of dead units, and PRER says that a class has collapsed.
TINY_PRER = TINY | {
    "channels": (12, 12, 12),
    "epochs_autoencoder": 2,
    "density": {"epochs": 2, "blocks": 2, "condition_size": 4},
}
TINY_MEMORY = TINY | {"size": 40, "memory_batch": 16}
TINY_OF = {
    "prer": TINY_PRER,
    "prer-variant": TINY_PRER,
    "ewc": TINY | {"samples": 40},
    "dgr": TINY | {"epochs_generator": 10},
} | dict.fromkeys(("lwf", "gem", "agem", "er", "replay", "der"), TINY_MEMORY)
TINY_OF |= {"ncm": {}, "slda": {}, "ranpac": {"size": 32}}
# Settings of `learner_checks` for ours, which choose the epochs.
CHECKED = {
    "prer": {"density": {"blocks": 2, "condition_size": 4}, "lr_autoencoder": 5e-3, "sparsity": 1e-3},
    "ewc": {"samples": 40},
} | {name: {"size": 40, "memory_batch": 16} for name in ("lwf", "gem", "agem", "er", "replay", "der")}
CLOSED = sorted(name for name, kind in LEARNERS.items() if issubclass(kind, ClosedForm))
TRAINED = sorted(set(LEARNERS) - set(CLOSED))  # those with networks and epochs
BASELINES = sorted(set(TRAINED) - {"naive", "joint", "prer"})
REHEARSE = {"lwf", "gem", "agem", "er", "replay", "der"}  # those that keep samples
SEEDS = (0, 4)
TASKS = [[0, 1, 2], [3, 4], [5, 6, 7, 8], [9, 10]]  # heads of 3, 2, 4 and 2 outputs: the widest is in the middle


def make(name, **settings):
    """A tiny learner of this name; a table among the settings changes the table of the tiny one."""
    kind = (LEARNERS | ABLATION)[name]
    options = families(kind)
    return kind(**merged(TINY_OF.get(name, TINY), named(settings, options), options))


def tiny_prer(**settings):
    """A tiny PRER, or the variant that has these settings."""
    return make("prer-variant" if settings.keys() & SWITCHES.keys() else "prer", **settings)


def blobs(classes=6, per_class=40, features=5, seed=0):
    """Vectors in well separated clouds; labels are text."""
    rng = np.random.default_rng(seed)
    centres = 4 * rng.normal(size=(classes, features))
    x = np.concatenate([c + rng.normal(size=(per_class, features)) for c in centres])
    return Stream.split(x, np.repeat([f"class {c}" for c in range(classes)], per_class))


def pictures(classes=6, per_class=24, size=8, seed=0, scenario="task"):
    """Images of bytes; each class has its own bright rows."""
    rng = np.random.default_rng(seed)
    x = rng.integers(0, 60, size=(classes * per_class, size, size), dtype=np.uint8)
    y = np.repeat(np.arange(classes), per_class)
    for c in range(classes):
        x[y == c, c % 6 : c % 6 + 3] = 250 - 20 * (c // 6)
    return Stream.split(x, y, scenario=scenario)


def vectors(tasks=TASKS, per_class=20, scenario="task"):
    """Vectors of 11 classes in four tasks of different size."""
    rng = np.random.default_rng(3)
    y = np.repeat(np.arange(11), per_class)
    return Stream.split(
        3 * rng.normal(size=(11, 5))[y] + rng.normal(size=(len(y), 5)), y, tasks=tasks, scenario=scenario
    )


def images(tasks=TASKS, per_class=20, scenario="task"):
    """Images without any pattern, in the same tasks."""
    rng = np.random.default_rng(4)
    y = np.repeat(np.arange(11), per_class)
    return Stream.split(rng.integers(0, 256, size=(len(y), 8, 8), dtype=np.uint8), y, tasks=tasks, scenario=scenario)


def numbered(sizes, tasks):
    """Each sample is the number of its row."""
    y = np.repeat(np.arange(len(sizes)), sizes)
    return Stream.split(np.arange(len(y), dtype=float)[:, None] + np.zeros((1, 2)), y, tasks=tasks)


STREAMS = pytest.mark.parametrize("stream", [vectors(), images()], ids=["vectors", "images"])
HEADS = pytest.mark.parametrize("stream", [vectors(), one_head()], ids=["heads", "one head"])


def started(learner, stream, seeds=(0, 1)):
    """The learner, ready for the first task of the stream."""
    learner.start(stream.shape, seeds)
    return learner


def captured(learner, task, monkeypatch):
    """What each phase of a task gives to the loop (networks, loss, first feed, options), without any training."""
    phases = {}

    def train(self, phase, networks, loss, feed, **options):
        phases[phase] = (networks, loss, feed(self.address_ / "test" / phase), options)

    with monkeypatch.context() as patch:
        patch.setattr(type(learner), "train", train)
        learner.learn(task)
    return phases


# -- training of PRER --------------------------------------------------------------------------------------------------


def two_tasks(monkeypatch, **settings):
    """A PRER that has learned one task, its stream, and the phases of its second task."""
    stream = pictures()
    learner = started(tiny_prer(**settings), stream)
    learner.learn(stream[0])
    return learner, stream, captured(learner, stream[1], monkeypatch)


def first_step(phase):
    """The loss of a phase, and the tensors of its first step."""
    _, loss, fed, options = phase
    at, *others = (t[:, 0] for t in fed)
    return loss, (*options["gather"](at), *others)


def digest_of_prer(**settings):
    """What a tiny PRER with these settings has learned; its rate is high, so that couplings reach their bound."""
    learner = tiny_prer(**merged({"density": {"name": "flow", "lr": 0.1}}, settings, {"density": "flow"}))
    result = learn(pictures(), learner, seeds=1, device="cpu")
    assert result.memory_samples == [0, 0, 0]
    return result.digest
