"""Pseudo-rehearsal: the frozen networks that generate the past of PRER, and batches that mix it with new samples."""

# S seeds, B batch, D embedding, n samples

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

import torch
from torch import Tensor, nn

from prer.address import Address
from prer.densities.base import Density
from prer.learners import health
from prer.nn.networks import Encoder
from prer.nn.stacked import floats
from prer.training.computing import rows_at_once

if TYPE_CHECKING:
    from prer.learners.prer import PRER

Module = TypeVar("Module", bound=nn.Module)


@dataclass(frozen=True)
class Past:
    """Frozen copies of the networks that generate pseudo-samples while a task is learned."""

    density: Density
    decoder: nn.Module
    encoder: Encoder | None  # only if `anchor` regularises new samples too

    @classmethod
    def of(cls, learner: PRER) -> Past | None:
        """Copies of a learner's networks; None on the first task."""
        if not learner.density_.counts.shape[1]:
            return None
        encoder = _frozen(learner.encoder_) if learner.anchor and learner.labels != "distilled" else None
        return cls(_frozen(learner.density_), _frozen(learner.decoder_), encoder)

    def floats(self) -> int:
        """Number of scalars that one seed needs for the copies."""
        return floats(self.density, self.decoder, *([self.encoder] if self.encoder else []))

    @torch.no_grad()
    def decode(self, z_hat: Tensor) -> Tensor:
        """D_old(z_hat): pseudo-samples as inputs [S, n, ...]."""
        return self.decoder(z_hat)

    @torch.no_grad()
    def embed(self, x: Tensor) -> Tensor:
        """E_old(x): embeddings of inputs by the old encoder [S, n, D]."""
        assert self.encoder is not None
        return self.encoder(x)


def mixed(
    learner: PRER,
    samples: int,
    density: Density | None,
    old: Sequence[int],
    address: Address,
    groups: Tensor | None = None,
) -> tuple[Tensor, tuple[Tensor, ...]]:
    """An epoch's batches, and the labels and embeddings of the pseudo-samples that replace part of them.

    The replaced share is that of the old classes among all, so that every class is seen equally often. It is limited
    by `learner.share`; with `groups`, the output of each class id, it is not, so that outputs are balanced exactly;
    a class that comes again has new samples besides, so it is seen up to twice as often.
    """
    at = learner._batches(samples, address)
    steps, size = at.shape[1:]
    classes = len(old) if groups is None else len(set(groups.tolist()[: len(old)]))
    most = size if groups is not None and learner.share else int(size * learner.share + 1e-9)
    count = min(round(size * classes / (classes + len(learner.tasks_[-1]))), most, size - 1)
    if density is None or not count:
        return at, ()
    y_hat = density.labels(steps * count, address / "labels", old, groups)
    z_hat = density.sample(y_hat, address / "replay", learner.temperature)
    health.check_samples(learner, density.outside(z_hat), y_hat)
    return at[..., count:], (y_hat.unflatten(1, (steps, count)), z_hat.unflatten(1, (steps, count)))


def with_past(learner: PRER, z: Tensor, y: Tensor, past: Past | None, address: Address) -> tuple[Tensor, Tensor]:
    """All new embeddings with their ids, and as many of each old class, up to the replay share of a batch."""
    old, new = learner.tasks_[-1].start, len(learner.tasks_[-1])
    count = int(z.shape[1] * min(old / new, learner.share / (1 - learner.share)))  # so that a long stream stays fast
    if past is None or not count:
        return z, y
    y_hat = past.density.labels(count, address / "labels", range(old))
    z_hat = past.density.sample(y_hat, address / "start", learner.temperature)
    z_hat = current(learner, z_hat, past)
    return torch.cat([z, z_hat], dim=1), torch.cat([y, y_hat], dim=1)


@torch.no_grad()
def current(learner: PRER, z_hat: Tensor, past: Past) -> Tensor:
    """E(D_old(z_hat)): current embeddings of the old classes, as the encoder has moved a little; or z_hat itself."""
    if learner.rests or not learner.reencode:
        return z_hat
    parts = z_hat.split(rows_at_once(learner.address_), 1)
    return torch.cat([learner.encoder_(past.decoder(part)) for part in parts], dim=1)


def clamping(module: nn.Module, bound: float) -> Callable[..., None]:
    """A function that clamps the gradients of a module's parameters to [-bound, bound]."""
    parameters = [p for p in module.parameters() if p.requires_grad]

    def clamp(*step: object) -> None:
        for parameter in parameters:
            if parameter.grad is not None:
                parameter.grad.clamp_(-bound, bound)

    return clamp


def _frozen(module: Module) -> Module:
    """A copy whose parameters are frozen."""
    return copy.deepcopy(module).requires_grad_(False)
