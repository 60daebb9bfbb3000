"""DGR, deep generative replay (Shin et al. 2017): the memory is a generator that replays whole inputs.

This is the pseudo-rehearsal PRER argues against: it models the input space, where PRER models embeddings. The generator
is a variational autoencoder (Kingma and Welling 2014) with a prior for each class, so that every generated sample
has a known label.
"""

# S seeds, B batch, P pseudo-samples in a step, L latent size, C classes so far

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from prer.address import Address
from prer.densities.base import in_proportion, look_up
from prer.learners.base import Learner
from prer.learners.interfaces import Batch
from prer.nn.heads import dropout_noise, mean_cross_entropy
from prer.nn.networks import Decoder, Encoder
from prer.nn.stacked import floats, stack
from prer.presets.auto import epochs_of
from prer.settings import Auto, setting
from prer.streams.task import Task
from prer.training.loop import Observer


class VAE(nn.Module):
    """A variational autoencoder for one seed; the prior of each class is a unit Gaussian around its own mean."""

    counts: Tensor

    def __init__(self, shape: Sequence[int], latent: int, channels: Sequence[int], hidden: Sequence[int]) -> None:
        super().__init__()
        self.encoder = Encoder(shape, 2 * latent, channels, hidden)
        self.decoder = Decoder(shape, latent, channels, hidden)
        self.means = nn.Parameter(torch.zeros(0, latent))
        self.register_buffer("counts", torch.zeros(0))

    def add(self, counts: Tensor, address: Address) -> None:
        """Add new classes, with the number of samples of each [new classes]."""
        means = (address / "means").normal(len(counts), self.means.shape[-1])
        self.means = nn.Parameter(torch.cat([self.means.detach(), means], dim=1))
        self.counts = torch.cat([self.counts, counts.to(self.counts).expand(len(means), -1)], dim=1)

    def loss(self, x: Tensor, ids: Tensor, noise: Tensor) -> Tensor:
        """Negative evidence lower bound, averaged over each seed's batch [S]."""
        mean, log_variance = self.encoder(x).chunk(2, dim=-1)
        x_hat = self.decoder(mean + (0.5 * log_variance).exp() * noise)
        kl = 0.5 * ((mean - look_up(self.means, ids)).square() + log_variance.exp() - 1 - log_variance).sum(-1)
        if x.dim() == 3:  # vectors, standardised
            return ((x - x_hat).square().sum(-1) / 2 + kl).mean(1)
        pixels = F.binary_cross_entropy(x_hat, x, reduction="none").flatten(2).sum(-1)
        return (pixels + kl).mean(1)

    @torch.no_grad()
    def sample(self, ids: Tensor, noise: Tensor) -> Tensor:
        """Generate inputs of the given classes [S, B, ...]."""
        return self.decoder(look_up(self.means, ids) + noise)


@dataclass(kw_only=True)
class DGR(Learner):
    """Generator and classifier train on the new task and on samples of the previous task's generator."""

    name = "dgr"

    latent: int = setting(50, "size of the generator's latent space", low=1)
    epochs_generator: int | Auto = setting(
        "auto", "epochs of the generator's training; auto: by the number of samples", low=0
    )
    lr_generator: float = setting(1e-3, "learning rate of the generator (Adam)", low=0, high=1e30)
    weight: float = setting(1.0, "weight of the loss on replayed samples; 0 turns replay off", low=0)
    memory_batch: int = setting(64, "replayed samples in a step", low=1)

    def phases(self, samples: int, classes: int) -> dict[str, int]:
        """Epochs of the generator, then of the classifier."""
        epochs = epochs_of(self.epochs_generator, self.batch, samples, classes)
        return ({"generator": epochs} if self.weight else {}) | super().phases(samples, classes)

    def memory(self) -> dict[str, nn.Module]:
        """The generator is the whole memory."""
        return {"generator": self.generator_} if self.weight else {}

    def start(
        self, shape: Sequence[int], seeds: Sequence[int], device: str = "cpu", observe: Observer | None = None
    ) -> None:
        """Build the networks and the generator."""
        super().start(shape, seeds, device, observe)
        build = lambda: VAE(shape, self.latent, self.channels, self.hidden)  # noqa: E731
        self.generator_ = stack(build, self.address_ / "generator")
        self.past_: VAE | None = None  # frozen copy of the generator before this task

    def learn(self, task: Task) -> None:
        """Train the generator, then the classifier; both replay samples of the previous generator."""
        self.past_ = copy.deepcopy(self.generator_).requires_grad_(False) if self.weight and self.tasks_ else None
        self.meet(task)
        if self.past_ is not None:
            self.transient_floats_ = floats(self.past_)
        if self.weight:
            self.train_generator(task)
        owners = [head for head, ids in zip(self.head_of_, self.tasks_, strict=True) for _ in ids]
        self.owners_, self.answers_ = torch.tensor(
            [owners, [output for of_task in self.outputs_ for output in of_task]], device=self.address_.device
        )  # the head and the output index of each class
        self.train_classifier(task)
        self.past_ = None

    def generate(self, ids: Tensor, address: Address) -> Tensor:
        """Sample inputs from the generator."""
        return self.generator_.sample(ids, address.normal(ids.shape[1], self.latent))

    def old_heads(self) -> bool:
        """Whether there is a previous generator to replay, from the second task on."""
        return self.past_ is not None

    def rehearse(self, batches: Tensor, address: Address) -> tuple[Tensor, ...]:
        """Class ids and latent noise of the samples that each step replays, and noise for their dropout."""
        if self.past_ is None:
            return ()
        steps, size, place = batches.shape[1], self.memory_batch, address / "replay"
        ids = in_proportion(self.past_.counts, steps * size, place / "labels").unflatten(1, (steps, size))
        return (
            ids,
            (place / "noise").normal(steps, size, self.latent),
            dropout_noise(self.head_, (steps, size), place),
        )

    def loss(self, batch: Batch) -> Tensor:
        """Cross-entropy on the new samples and on replayed ones."""
        if self.past_ is None or batch.heads is None:
            return super().loss(batch)
        (ids, noise, dropout), new = batch.past, batch.y.shape[1]
        z = self.encoder_(torch.cat([batch.x, self.past_.sample(ids, noise)], dim=1))
        head = self.owners_[ids]
        logits = batch.heads.masked(batch.heads(z[:, new:], head, dropout), head)
        replayed = mean_cross_entropy(logits, self.answers_[ids])
        return mean_cross_entropy(batch.head(z[:, :new], batch.noise), batch.y) + self.weight * replayed

    def train_generator(self, task: Task) -> None:
        """Maximise the evidence lower bound on the new task and on replayed samples of old classes."""
        rows, first = task.train_rows(self.address_.seeds), self.tasks_[-1].start
        counts = torch.bincount(task.y[rows[0]], minlength=len(task.labels))
        self.generator_.add(counts, self.address_ / "generator" / task.index)

        def feed(address: Address) -> tuple[Tensor, ...]:
            batches = self._batches(rows.shape[1], address)
            moves, past = task.moves.draw(batches, address), self.rehearse(batches, address)[:2]
            size = batches.shape[2] + (past[0].shape[2] if past else 0)
            return batches, moves, (address / "latent").normal(batches.shape[1], size, self.latent), *past

        def loss(at: Tensor, x: Tensor, y: Tensor, moves: Tensor, noise: Tensor, *past: Tensor) -> Tensor:
            x, ids = self.inputs_(task.transformed(x, moves)), y + first
            if self.past_ is None:
                return self.generator_.loss(x, ids, noise)
            every = torch.cat([x, self.past_.sample(*past)], dim=1), torch.cat([ids, past[0]], dim=1)
            return self.generator_.loss(*every, noise)

        self.train("generator", [self.generator_], loss, feed, gather=task.gatherer(rows), lr=self.lr_generator)
