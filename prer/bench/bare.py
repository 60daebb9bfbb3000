"""Ordinary PyTorch loops that do the same work as a learner with one seed, without the layers of this package.

They start from a learner's weights and memory, and always use the faster option: indices into one tensor rather than a
data loader, Adam's fused update rather than its default, logits of all heads and a selection among them rather than a
loop over the tasks of a batch, and LwF's targets computed once rather than in every step.
"""

# B batch, m samples of memory, T heads, K classes of a head, D embedding

from __future__ import annotations

import time
from itertools import pairwise

import numpy as np
import torch
import torch.nn.functional as F
from scipy.optimize import nnls
from torch import Tensor, nn

from prer.bench.clock import synchronise
from prer.learners.base import Learner
from prer.learners.ewc import EWC
from prer.learners.gem import GEM
from prer.learners.lwf import LWF
from prer.learners.replay import Replay
from prer.nn.heads import Head
from prer.nn.networks import paddings
from prer.presets.auto import batch_of
from prer.streams.task import Task


class PlainHead(nn.Module):
    """Three layers, each halving its input, with dropout between them."""

    def __init__(self, embedding: int, classes: int, dropout: float) -> None:
        super().__init__()
        widths = [embedding, *Head.widths(embedding), classes]
        self.layers = nn.ModuleList(nn.Linear(a, b) for a, b in pairwise(widths))
        self.dropout = dropout

    def forward(self, z: Tensor, drop: bool = True) -> Tensor:
        """Logits."""
        first, second, last = self.layers
        h = F.dropout(torch.relu(first(z)), self.dropout, drop)
        return last(F.dropout(torch.relu(second(h)), self.dropout, drop))


def plain_encoder(learner: Learner) -> nn.Sequential:
    """The paper's encoder for images."""
    geometry = zip(*(paddings(side, len(learner.channels)) for side in learner.shape_[1:]), strict=True)
    filters, layers = pairwise([learner.shape_[0], *learner.channels]), []
    for (a, b), ((_, p), (_, q)) in zip(filters, geometry, strict=True):
        layers += [nn.Conv2d(a, b, 4, 2, (p, q)), nn.ReLU()]
    width = list(learner.encoder_.parameters())[-2].shape[-1]
    return nn.Sequential(*layers, nn.Flatten(), nn.Linear(width, learner.dimension_))


def filled(plain: nn.Module, stacked: nn.Module) -> nn.Module:
    """Copy the first seed's weights into an ordinary module."""
    with torch.no_grad():
        for p, source in zip(plain.parameters(), stacked.parameters(), strict=True):
            p.copy_(source[0])
    return plain.to(next(stacked.parameters()).device)


class Bare:
    """Naive training of encoder and current head; the subclasses below extend the loss."""

    trains_old_heads = False
    memory = 0  # number of samples in memory

    def __init__(self, learner: Learner, task: Task, epochs: int) -> None:
        """Start from a learner that has met the task."""
        self.device, self.epochs, self.current = learner.address_.device, epochs, task.head
        rows = task.train_rows(learner.address_.seeds)[0]
        self.batch = batch_of(learner.batch, len(rows))
        self.x, self.y = task.x[rows], torch.tensor(task.outputs, device=self.device)[task.y[rows]]
        self.encoder = filled(plain_encoder(learner), learner.encoder_)
        heads = (PlainHead(learner.dimension_, head.classes, learner.dropout) for head in learner._heads())
        self.heads = nn.ModuleList(filled(p, head) for p, head in zip(heads, learner.heads_, strict=True))
        trained = self.heads if self.trains_old_heads else self.heads[self.current]
        self.parameters = [*self.encoder.parameters(), *trained.parameters()]
        self.optimiser = torch.optim.Adam(self.parameters, learner.lr, fused=True)

    def turn(self) -> float:
        """Run some epochs; return the median seconds of a step, without the first epoch."""
        times = [self.epoch() for _ in range(self.epochs)]
        return sorted(times[1:])[len(times[1:]) // 2]

    def epoch(self) -> float:
        """Run one epoch; return the mean seconds of a step."""
        begin, steps, total = time.perf_counter(), len(self.x) // self.batch, torch.zeros((), device=self.device)
        order = torch.randperm(len(self.x), device=self.device)
        for step in range(steps):
            drawn = torch.randint(self.memory, (self.batch,), device=self.device) if self.memory else order[:0]
            total += self.step(order[step * self.batch : (step + 1) * self.batch], drawn)
        total.item()
        synchronise(self.device)
        return (time.perf_counter() - begin) / steps

    def step(self, rows: Tensor, drawn: Tensor) -> Tensor:
        """Train on these samples, and on those drawn from memory."""
        self.optimiser.zero_grad(set_to_none=True)
        loss = self.loss(self.x[rows].float() / 255, self.y[rows], rows, drawn)
        loss.backward()
        self.change_gradients()
        self.optimiser.step()
        return loss.detach()

    def loss(self, x: Tensor, y: Tensor, rows: Tensor, drawn: Tensor) -> Tensor:
        """Cross-entropy of the current head."""
        return F.cross_entropy(self.heads[self.current](self.encoder(x)), y)

    def change_gradients(self) -> None:
        """Change the gradients before the update; only GEM does."""

    def of_each(self, z: Tensor, head: Tensor, drop: bool) -> Tensor:
        """Logits of every sample from its own head."""
        logits = torch.stack([of_head(z, drop) for of_head in self.heads], dim=1)
        return logits[torch.arange(len(z), device=z.device), head]


class BareEWC(Bare):
    """EWC: a quadratic penalty around the weights after old tasks."""

    def __init__(self, learner: EWC, task: Task, epochs: int) -> None:
        super().__init__(learner, task, epochs)
        named = zip(self.encoder.parameters(), learner.encoder_.named_parameters(), strict=True)
        springs = [(p, learner.quadratic_.spring(f"encoder.{name}", weight)) for p, (name, weight) in named]
        self.springs = [(p, spring[0][0], spring[1][0]) for p, spring in springs if spring is not None]
        self.weight = learner.weight

    def loss(self, x: Tensor, y: Tensor, rows: Tensor, drawn: Tensor) -> Tensor:
        """Cross-entropy and penalty."""
        penalty = sum((importance * (p - anchor).square()).sum() for p, importance, anchor in self.springs)
        return super().loss(x, y, rows, drawn) + 0.5 * self.weight * penalty


class BareReplay(Bare):
    """Replay: cross-entropy on old samples too."""

    trains_old_heads = True

    def __init__(self, learner: Replay, task: Task, epochs: int) -> None:
        super().__init__(learner, task, epochs)
        self.old_x, self.old_y, self.old_head = (learner.kept_.get_buffer(name)[0] for name in ("x", "y", "head"))
        self.memory, self.weight = len(self.old_x), learner.weight

    def loss(self, x: Tensor, y: Tensor, rows: Tensor, drawn: Tensor) -> Tensor:
        """Cross-entropy on new and old samples, which are encoded together."""
        z = self.encoder(torch.cat([x, self.old_x[drawn].float() / 255]))
        new, old = z.split([len(x), len(drawn)])
        held = F.cross_entropy(self.of_each(old, self.old_head[drawn], True), self.old_y[drawn])
        return F.cross_entropy(self.heads[self.current](new), y) + self.weight * held


class BareClassic(Bare):
    """LwF: distil the old heads' earlier predictions for the new samples."""

    trains_old_heads = True

    def __init__(self, learner: LWF, task: Task, epochs: int) -> None:
        super().__init__(learner, task, epochs)
        self.weight, self.softness = learner.weight, learner.softness
        with torch.no_grad():
            z = torch.cat([self.encoder(part.float() / 255) for part in self.x.split(1024)])
            self.said = [(head(z, False) / self.softness).softmax(1) for head in list(self.heads)[: self.current]]

    def loss(self, x: Tensor, y: Tensor, rows: Tensor, drawn: Tensor) -> Tensor:
        """Cross-entropy and distillation."""
        z = self.encoder(x)
        held = torch.zeros((), device=self.device)
        for head, said in zip(self.heads, self.said, strict=False):
            now = (head(z, False) / self.softness).log_softmax(1)
            held = held + F.kl_div(now, said[rows], reduction="batchmean")
        return F.cross_entropy(self.heads[self.current](z), y) + self.weight * self.softness**2 * held


class BareRehearsal(Bare):
    """LwF as rehearsal: distil the recorded predictions for kept samples."""

    trains_old_heads = True

    def __init__(self, learner: LWF, task: Task, epochs: int) -> None:
        super().__init__(learner, task, epochs)
        self.old_x, self.old_head, said = (learner.kept_.get_buffer(name)[0] for name in ("x", "head", "logits"))
        self.memory, self.weight, self.softness = len(self.old_x), learner.weight, learner.softness
        self.said = (said / self.softness).softmax(1)

    def loss(self, x: Tensor, y: Tensor, rows: Tensor, drawn: Tensor) -> Tensor:
        """Cross-entropy and distillation; new and old samples are encoded together."""
        z = self.encoder(torch.cat([x, self.old_x[drawn].float() / 255]))
        new, old = z.split([len(x), len(drawn)])
        now = (self.of_each(old, self.old_head[drawn], False) / self.softness).log_softmax(1)
        held = F.kl_div(now, self.said[drawn], reduction="batchmean")
        return F.cross_entropy(self.heads[self.current](new), y) + self.weight * self.softness**2 * held


class BareGEM(Bare):
    """GEM: if the gradient opposes that of any past task's memory, use the nearest one that opposes none."""

    def __init__(self, learner: GEM, task: Task, epochs: int) -> None:
        super().__init__(learner, task, epochs)
        x, y = (learner.kept_.get_buffer(name)[0].split(learner.notes_["counts"]) for name in ("x", "y"))
        self.past = list(zip(x, y, (self.heads[head] for head in learner.head_of_), strict=False))
        self.margin, self.shared = learner.margin, list(self.encoder.parameters())

    def change_gradients(self) -> None:
        """Project the encoder's gradient; past tasks do not use the current head."""
        of_past = [self.gradient(*kept) for kept in self.past]
        gradients = [p.grad for p in self.shared if p.grad is not None]
        with torch.no_grad():
            G, g = torch.stack(of_past).double(), torch.cat([part.flatten() for part in gradients]).double()
            products = G @ g
            if (products >= 0).all():
                return
            changed = (g + (self.multipliers(G @ G.T, products) + self.margin) @ G).float()
            for part, new in zip(gradients, changed.split([part.numel() for part in gradients]), strict=True):
                part.copy_(new.view_as(part))

    def gradient(self, x: Tensor, y: Tensor, head: nn.Module) -> Tensor:
        """The encoder's gradient on a past task's memory."""
        loss = F.cross_entropy(head(self.encoder(x.float() / 255), False), y)
        return torch.cat([g.flatten() for g in torch.autograd.grad(loss, self.shared)])

    def multipliers(self, A: Tensor, b: Tensor) -> Tensor:
        """Argmin v A v / 2 + b v over v >= 0, as least squares: |C v - d|^2 with C^T C = A and C^T d = -b."""
        lower = np.linalg.cholesky(A.cpu().numpy() + 1e-12 * np.eye(len(A)))
        v, _ = nnls(lower.T, np.linalg.solve(lower, -b.cpu().numpy()))
        return torch.from_numpy(v).to(A)
