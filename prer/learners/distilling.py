"""Distillation (Li and Hoiem 2017): what the network predicted before a task is preserved on the task's own samples."""

# S seeds, B batch, T old heads, K outputs of the widest of them

from __future__ import annotations

import copy
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from prer.address import Address
from prer.errors import InputError
from prer.learners import health
from prer.learners.encoding import is_computed
from prer.learners.interfaces import Batch
from prer.nn.heads import Heads, mean_cross_entropy
from prer.nn.stacked import floats
from prer.streams.task import Task

if TYPE_CHECKING:
    from prer.learners.base import Learner
    from prer.learners.prer import PRER

SOFTNESS = 2.0  # temperature of the predictions, as Li and Hoiem have it


class Before:
    """Frozen copies of the encoder and of all heads. Make it before a task is met, since a shared head then grows.

    It is asked in every step about the batch itself, since a batch may be augmented differently in each epoch.
    """

    def __init__(self, learner: Learner) -> None:
        self.encoder = copy.deepcopy(learner.encoder_).requires_grad_(False)
        self.heads = Heads(learner._heads()).requires_grad_(False)

    @classmethod
    def of(cls, learner: Learner) -> Before | None:
        """Copies of a learner's networks; None before the first task."""
        return cls(learner) if len(learner.heads_) else None

    def floats(self) -> int:
        """Number of scalars that one seed needs for the copies."""
        return floats(self.encoder) + sum(p[0].numel() for p in self.heads.parameters())

    @torch.no_grad()
    def embed(self, x: Tensor) -> Tensor:
        """Embeddings of inputs x by the old encoder [S, B, D]."""
        return self.encoder(x)

    @torch.no_grad()
    def logits(self, x: Tensor) -> Tensor:
        """Logits of the old heads for inputs x [S, B, T, K]."""
        return self.heads.every(self.embed(x))

    def change(self, x: Tensor, now: Tensor, softness: float = SOFTNESS) -> Tensor:
        """Distillation loss of each sample [S, B], given the present logits of at least the old heads for inputs x.

        It is a sum over heads: every old task weighs as much as if it were the only one.
        """
        before, there = self.logits(x), self.heads.there
        now = now[..., : there.shape[0], : there.shape[1]]
        return divergence(before, now, softness, there if self.heads.ragged else None).sum(-1)


def divergence(before: Tensor, now: Tensor, softness: float, there: Tensor | None = None) -> Tensor:
    """T^2 KL(before || now) at temperature T, over the last axis of logits, or its outputs that are `there`."""
    before, now = before / softness, now / softness
    if there is None:
        return softness**2 * (before.softmax(-1) * (before.log_softmax(-1) - now.log_softmax(-1))).sum(-1)
    p = before.masked_fill(~there, -torch.inf).softmax(-1)
    log_p, log_q = (t.masked_fill(~there, -torch.inf).log_softmax(-1).masked_fill(~there, 0.0) for t in (before, now))
    return softness**2 * (p * (log_p - log_q)).sum(-1)


# -- PRER with labels="distilled" ------------------------------------------------------------------------------------


def check_labels(learner: PRER) -> None:
    """Raise an error if labels are distilled and the encoder is not trained, or if settings of distillation lack it."""
    if learner.labels == "distilled" and is_computed(learner):
        raise InputError(
            f"learner.labels='distilled' trains the encoder, and learner.encoder={learner.encoder!r} is not trained; "
            "take learner.encoder='continues' or learner.labels='none'"
        )
    for name in ("generated", "autoencoder"):
        if getattr(learner, name) and learner.labels != "distilled":
            raise InputError(
                f"learner.{name} has an effect only with learner.labels='distilled'; take these labels, or leave it out"
            )


def train_with_labels(learner: PRER, task: Task) -> None:
    """Train encoder and head on new samples, while distillation holds what old heads predict for them.

    R is not used. If new inputs resemble old ones, they hold the old heads well enough; otherwise generated samples
    help (`generated`). The decoder learns afterwards, from embeddings that stay as they are; only with `autoencoder`
    it learns here, too.
    """
    learner.transient_floats_ += learner.before_.floats() if learner.before_ else 0
    networks = [learner.encoder_, learner.head_, *([learner.decoder_] if learner.autoencoder else [])]
    learner.train_classifier(task, networks)


def rehearsed(learner: PRER, batches: Tensor, address: Address) -> tuple[Tensor, ...]:
    """Sampled embeddings of old classes for each step, as many as new samples [S, steps, B, D]; () if not used."""
    if learner.past_ is None or not learner.generated:
        return ()
    steps, size = batches.shape[1:]
    y_hat = learner.past_.density.labels(steps * size, address / "labels", range(learner.tasks_[-1].start))
    z_hat = learner.past_.density.sample(y_hat, address / "replay", learner.temperature)
    health.check_samples(learner, learner.past_.density.outside(z_hat), y_hat)
    return (z_hat.unflatten(1, (steps, size)),)


def distilled(learner: PRER, batch: Batch) -> Tensor:
    """Cross-entropy plus what holds the past [S]; old heads are frozen, since PRER does not train them again."""
    x, new = batch.x, batch.y.shape[1]
    if batch.past and learner.past_:
        x = torch.cat([x, learner.past_.decode(batch.past[0])], dim=1)
    reconstruction, z = learner.reconstruction(x, new) if learner.autoencoder else (None, learner.encoder_(x))
    loss = mean_cross_entropy(batch.head(z[:, :new], batch.noise), batch.y)
    if reconstruction is not None:
        loss = loss + learner.autoencoder * reconstruction
    if learner.before_ is None:
        return loss
    held = learner.before_.change(x, learner.before_.heads.every(z))
    loss = loss + learner.weight * held[:, :new].mean(1)
    if learner.anchor:
        z_old = learner.before_.embed(x[:, :new])
        loss = loss + learner.anchor * learner.distance_between(z_old, z[:, :new]).mean(1)
    return loss + learner.generated * held[:, new:].mean(1) if batch.past else loss
