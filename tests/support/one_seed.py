"""Networks of one seed as ordinary layers of torch, to compute by hand what a learner computes for all seeds."""

from functools import partial

import torch
import torch.nn.functional as F
from support.learners import SEEDS

from prer.learners import LWF
from prer.learners.distilling import Before
from prer.learners.interfaces import Batch
from prer.nn.heads import Head, Heads, dropout_noise
from prer.nn.networks import Encoder


def alone(learner, seed, head=-1):
    """Encoder and head of one seed, without an axis of seeds."""
    stacked = learner.heads_[head]
    encoder = Encoder(learner.shape_, learner.embedding, learner.channels, learner.hidden)
    single = Head(learner.embedding, stacked.classes, learner.dropout)
    encoder.load_state_dict({name: t[seed] for name, t in learner.encoder_.state_dict().items()})
    single.load_state_dict({name: t[seed] for name, t in stacked.state_dict().items()})
    return encoder, single


def disturb(*modules, scale=0.1):
    """Move all weights, so that the outputs differ from those that were noted."""
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for module in modules:
            for p in module.parameters():
                p += scale * torch.randn(p.shape, generator=generator)


def midway(learner, stream, tasks=3):
    """The first batch of a task, of a learner that has learned the tasks before it; its weights have moved since."""
    for task in stream.tasks[: tasks - 1]:
        learner.learn(task)
    task = stream[tasks - 1]
    if isinstance(learner, LWF) and learner.form == "classic":
        learner.before_ = Before.of(learner)
    learner.meet(task)
    disturb(learner.encoder_, learner.heads_)
    return first_batch(learner, task)


def first_batch(learner, task):
    """The first batch of a task that the learner has met."""
    address = learner.address_ / "test"
    heads = Heads(learner._heads()) if learner.old_heads() else None
    head = learner.head_ if heads is None else partial(heads.of, learner.head_of_[-1])
    rows = task.train_rows(learner.address_.seeds)
    at = learner._batches(rows.shape[1], address)
    past = tuple(t[:, 0] for t in learner.rehearse(at, address))
    x, y = task.samples(rows.gather(1, at[:, 0]))
    noise = dropout_noise(learner.head_, at.shape[1:], address)[:, 0]
    return Batch(learner.inputs_(x), task.targets[y], noise, at[:, 0], head, past, heads)


def new_loss(learner, batch, seed):
    """Cross-entropy of the new samples of one seed."""
    encoder, head = alone(learner, seed, learner.head_of_[-1])
    return F.cross_entropy(head(encoder(batch.x[seed]), batch.noise[seed]), batch.y[seed])


def memory_entries(learner, index, seed):
    """Each sample of the memory that a step sees: its input, and all that is noted of it."""
    for place in index[seed].tolist():
        notes = {name: t[seed, place] for name, t in learner.kept_.named_buffers()}
        yield learner.inputs_(notes["x"].expand(len(SEEDS), 1, *notes["x"].shape))[seed], notes


def flat_gradient(loss, parameters):
    """The gradient of all parameters as one vector."""
    found = torch.autograd.grad(loss, parameters, allow_unused=True)
    return torch.cat([torch.zeros(p.numel()) if g is None else g.flatten() for p, g in zip(parameters, found)])  # noqa: B905
