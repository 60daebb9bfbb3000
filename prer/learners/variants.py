"""PRER with switches that only the paper's ablation and its literal run turn; `paper/variants.py` turns them."""

# S seeds, B batch, D embedding

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor, nn

from prer.address import Address
from prer.densities.base import Density
from prer.densities.flow import FlowSettings, Norm, Permutation
from prer.errors import InputError
from prer.learners import health
from prer.learners.prer import PRER
from prer.learners.rehearsal import Past, clamping, with_past
from prer.nn.heads import mean_cross_entropy
from prer.nn.stacked import stack
from prer.presets.auto import epochs_of
from prer.settings import setting
from prer.streams.task import Task
from prer.training.loop import Observer


@dataclass(kw_only=True)
class PRERVariant(PRER):
    """PRER, with other readings of the paper; with its defaults it is PRER itself."""

    name = "prer-variant"

    schedule: Literal["separate", "joint"] = setting(
        "separate", "the phases one after another, or all in every step, with phase 1's epochs and rate"
    )
    distance: Literal["l2", "cosine"] = setting("l2", "d in R: l2 (squared, summed) or cosine")
    augment: bool = setting(True, "pseudo-samples are reconstructed, too, instead of serving R alone")
    sparsity_on: Literal["z", "layers"] = setting("z", "L1 of z, or mean absolute output of every layer")
    restart: bool = setting(False, "a new flow for each task, instead of going on from its weights")
    norm: Norm = setting("batch", "a batch's own statistics in training, or the paper's running estimates (flow)")
    one_hot: bool = setting(False, "the class as a one-hot vector, as in the paper (flow)")
    bounded: bool = setting(True, "bound the scale of couplings (flow)")
    permutation: Permutation = setting(
        "swapping", "of dimensions: two blocks together transform all of them, or random, the paper's (flow)"
    )

    @property
    def density_rate(self) -> str:  # pyrefly: ignore[bad-override]
        """The setting to lower if samples explode."""
        return "learner.lr_autoencoder" if self.schedule == "joint" else "learner.density.lr"

    def phases(self, samples: int, classes: int) -> dict[str, int]:
        """Epochs of the three phases, or of the one joint phase."""
        if self.schedule == "separate":
            return super().phases(samples, classes)
        return {"joint": epochs_of(self.epochs_autoencoder, self.batch, samples, classes)}

    def start(
        self, shape: Sequence[int], seeds: Sequence[int], device: str = "cpu", observe: Observer | None = None
    ) -> None:
        """Build the networks."""
        if self.schedule == "joint" and not isinstance(self.density, FlowSettings):
            raise InputError("learner.schedule='joint' trains a flow in every step; a Gaussian is not trained")
        if self.schedule == "joint" and self.labels == "distilled":
            raise InputError(
                "learner.labels='distilled' trains the encoder before the other phases; take "
                "learner.schedule='separate' or learner.labels='head'"
            )
        super().start(shape, seeds, device, observe)

    def new_density(self) -> Density:
        """A flow with the switches of this class, or another density."""
        if not isinstance(self.density, FlowSettings):
            return super().new_density()
        names = ("norm", "one_hot", "bounded", "permutation")
        switches, settings = {name: getattr(self, name) for name in names}, self.density
        return stack(lambda: settings.build(self.dimension_, **switches), self.address_ / "density")

    def learn(self, task: Task) -> None:
        """Learn a task in three phases, or in one joint phase."""
        if self.schedule == "separate":
            return super().learn(task)
        self.meet(task)
        self.train_jointly(task, self.freeze())
        return health.report(self)

    def distance_between(self, z_hat: Tensor, z: Tensor) -> Tensor:
        """The distance d of Eq. 3 [S, n]."""
        if self.distance == "l2":
            return super().distance_between(z_hat, z)
        return 1 - torch.cosine_similarity(z_hat, z, dim=-1)

    def reconstructed(self, real: int, total: int) -> int:
        """How many samples of a batch are reconstructed: all, or the new ones."""
        return total if self.augment else real

    def reconstruction(self, x: Tensor, count: int) -> tuple[Tensor, Tensor]:
        """Autoencoder loss with the sparsity of z, or of every layer, and the embeddings."""
        if not self.sparsity or self.sparsity_on == "z":
            return super().reconstruction(x, count)
        embedded = list(self.encoder_.outputs(x))
        encoded = [h[:, :count] for h in embedded]
        decoded = list(self.decoder_.outputs(encoded[-1]))
        loss = (x[:, :count] - decoded[-1]).square().flatten(2).sum(-1).mean(1)
        penalty = sum(h.abs().flatten(1).mean(1) for h in (*encoded, *decoded[:-1]))
        return loss + self.sparsity * penalty, embedded[-1]

    def add_classes(self, task: Task, past: Past | None) -> None:
        """Add the classes of a task to the flow, or to a new one."""
        if self.restart and isinstance(self.density, FlowSettings) and past is not None:
            self.density_ = self.new_density()
            self.density_.add(past.density.counts[0], self.address_)
        super().add_classes(task, past)

    def train_jointly(self, task: Task, past: Past | None) -> None:
        """Train autoencoder, head and flow in every step: labels move the encoder, and the flow follows it.

        All use phase 1's epochs and learning rate. The flow's standardisation is recomputed every epoch.
        """
        assert isinstance(self.density, FlowSettings)
        rows, old = task.train_rows(self.address_.seeds), self.tasks_[-1].start
        networks, feed_first, first = self.autoencoding(task, past)
        own_head: list[nn.Module] = [] if self.labels == "head" else [self.head_]
        targets, y_all = task.targets, task.y[rows] + old
        self.add_classes(task, past)

        def feed(address: Address) -> tuple[Tensor, ...]:
            self.density_.start(*with_past(self, self.embed(task, rows), y_all, past, address))
            return feed_first(address)

        def loss(at: Tensor, x: Tensor, y: Tensor, moves: Tensor, noise: Tensor, *replayed: Tensor) -> Tensor:
            total, z = first(at, x, y, moves, noise, *replayed)
            real, condition, followed = y.shape[1], y + old, z.detach()
            if replayed:
                condition = torch.cat([condition, replayed[0]], dim=1)
                followed = followed if self.reencode else torch.cat([followed[:, :real], replayed[1]], dim=1)
            if own_head:
                total = total + mean_cross_entropy(self.head_(z[:, :real], noise), targets[y])
            return total - self.density_.log_prob(followed, condition).mean(1)

        rates = {"lr": self.lr_autoencoder, "decay": self.decay_autoencoder, "gather": task.gatherer(rows)}
        after = {"before_update": clamping(self.density_, self.density.clamp), "also": list(self.density_.buffers())}
        self.train("joint", [*networks, *own_head, self.density_], loss, feed, **rates, **after)
