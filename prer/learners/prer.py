"""PRER: pseudo-rehearsal with a normalizing flow over the network's own embeddings.

No old sample is stored. A frozen flow is sampled, a frozen decoder turns the samples into inputs, and the live
encoder, while it learns the new task, is penalised for moving their embeddings away from the sampled ones.
"""

# S seeds, B batch, D embedding, n training samples of a task, P pseudo-samples

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple, TypeVar

import torch
from torch import Tensor, nn

from prer.address import Address
from prer.densities.base import Density
from prer.densities.flow import Condition, Flow, Norm, Permutation
from prer.densities.gaussian import Gaussian
from prer.errors import InputError
from prer.learners import health
from prer.learners.base import Learner, Observer, mean_cross_entropy
from prer.nn.networks import Decoder, Encoder
from prer.nn.stacked import Linear, floats, stack
from prer.presets.auto import epochs_of
from prer.settings import Auto, setting
from prer.streams.task import Task

Module = TypeVar("Module", bound=nn.Module)
Feed = Callable[[Address], tuple[Tensor, ...]]
Loss = Callable[..., tuple[Tensor, Tensor]]


class Past(NamedTuple):
    """Frozen copies of the networks that generate pseudo-samples while a task is learned."""

    density: Density
    decoder: Decoder
    encoder: Encoder | None = None  # only if `anchor` regularises new samples too


@dataclass(kw_only=True)
class PRER(Learner):
    """Pseudo-Rehearsal Embedding Regularisation (Pomponi, Scardapane, Uncini 2020)."""

    name = "prer"

    schedule: Literal["separate", "joint"] = setting(
        "separate", "the phases one after another, or all in every step, with phase 1's epochs and rate"
    )
    epochs_autoencoder: int | Auto = setting("auto", "epochs of phase 1; auto: by the number of samples", low=0)
    epochs_flow: int | Auto = setting("auto", "epochs of phase 2; auto: by the number of samples", low=0)
    lr_autoencoder: float = setting(1e-3, "learning rate of phase 1 (Adam)", low=0, high=1e30)
    decay_autoencoder: bool = setting(False, "let that rate fall linearly to 0 over the epochs")
    lr_flow: float = setting(1e-3, "learning rate of phase 2 (Adam); the paper has 1e-4", low=0, high=1e30)
    decay_flow: bool = setting(True, "let that rate fall, too; the samples become far better")

    weight: float = setting(1.0, "weight of the embedding regulariser R (Eq. 3)", low=0)
    anchor: float = setting(0.0, "weight of the same pull on new samples, to where the old encoder had them", low=0)
    distance: Literal["l2", "cosine"] = setting("l2", "d in R: l2 (squared, summed) or cosine")
    share: float = setting(0.8, "pseudo-samples in a batch at most; 0 turns replay off", low=0, high=0.95)
    augment: bool = setting(True, "pseudo-samples are reconstructed, too, instead of serving R alone")
    temperature: float = setting(
        1.0, "of the samples, of which the next density learns: below 1 the memory narrows", low=0
    )
    sparsity: float = setting(0.02, "weight of the sparsity penalty", low=0)
    sparsity_on: Literal["z", "layers"] = setting("z", "L1 of z, or mean absolute output of every layer")
    labels: Literal["none", "head", "auxiliary"] = setting(
        "none", "what phase 1 sees of labels: nothing, the head's loss, or that of a classifier over all classes"
    )
    label_weight: float = setting(1.0, "weight of that loss", low=0)

    density: Literal["flow", "gaussian"] = setting("flow", "p(z | t, y): the flow, or one Gaussian for each class")
    levels: int = setting(2, "levels of the flow", low=1)
    blocks: int = setting(10, "blocks in each level", low=1)
    norm: Norm = setting("batch", "a batch's own statistics in training, or the paper's running estimates")
    condition: Condition = setting("every", "couplings that see the class: every one, or the paper's first")
    condition_size: int = setting(16, "length of a class's vector", low=1)
    one_hot: bool = setting(False, "the class as a one-hot vector, as in the paper")
    class_prior: bool = setting(True, "the flow's prior depends on the class; the paper's does not")
    bounded: bool = setting(True, "bound the scale of couplings")
    permutation: Permutation = setting(
        "swapping", "random orders, of which two blocks together transform every dimension, or the paper's"
    )
    restart: bool = setting(False, "a new flow for each task, instead of going on from its weights")
    reencode: bool = setting(True, "the flow learns E(D(z)) of old classes, instead of z")
    jitter: float = setting(0.02, "noise on the flow's training data, in standard deviations", low=0)
    clamp: float = setting(1.0, "bound of each gradient of the flow", low=0)

    def phases(self, samples: int, classes: int) -> dict[str, int]:
        """Epochs of the paper's three phases, or of the one joint phase."""
        settings = {"autoencoder": self.epochs_autoencoder, "flow": self.epochs_flow, "head": self.epochs}
        if self.schedule == "joint":
            settings = {"joint": self.epochs_autoencoder}
        elif self.density == "gaussian":
            del settings["flow"]
        return {phase: epochs_of(epochs, self.batch, samples, classes) for phase, epochs in settings.items()}

    def memory(self) -> dict[str, nn.Module]:
        """The flow and the decoder are the whole memory of the past."""
        return {"decoder": self.decoder_, "density": self.density_}

    def start(
        self, shape: Sequence[int], seeds: Sequence[int], device: str = "cpu", observe: Observer | None = None
    ) -> None:
        """Build the networks."""
        if self.schedule == "joint" and self.density == "gaussian":
            raise InputError("learner.schedule='joint' trains a flow in every step; a Gaussian is not trained")
        super().start(shape, seeds, device, observe)
        self.decoder_ = stack(self._build(Decoder), self.address_ / "decoder")
        self.density_ = self._new_density()

    def learn(self, task: Task) -> None:
        """Learn a task in the paper's three phases, or in one joint phase."""
        self.meet(task)
        past = self.freeze()
        if self.schedule == "joint":
            self.train_jointly(task, past)
        else:
            self.train_autoencoder(task, past)
            self.train_density(task, past)
            self.train_head(task)
        for figures in health.of_classes(self):
            self.observe_(figures)

    def freeze(self) -> Past | None:
        """Freeze copies of the networks that generate the past; None on the first task."""
        if not self.density_.counts.shape[1]:
            return None
        encoder = _frozen(self.encoder_) if self.anchor else None
        past = Past(_frozen(self.density_), _frozen(self.decoder_), encoder)
        self.transient_floats_ = floats(*(module for module in past if module is not None))
        return past

    # -- phase 1 -------------------------------------------------------------------------------------------------

    def train_autoencoder(self, task: Task, past: Past | None) -> None:
        """Train the autoencoder on new samples and pseudo-samples, while R keeps old embeddings in place."""
        networks, feed, loss = self._autoencoding(task, past)
        rates = {"lr": self.lr_autoencoder, "decay": self.decay_autoencoder}
        loss_only = lambda *batch: loss(*batch)[0]  # noqa: E731
        self.train("autoencoder", networks, loss_only, feed, gather=task.gather, **rates)

    def _autoencoding(self, task: Task, past: Past | None) -> tuple[list[nn.Module], Feed, Loss]:
        """Networks, feed and loss function of phase 1; the latter returns loss [S] and embeddings [S, B, D]."""
        rows, old = task.train_rows(self.address_.seeds), range(self.tasks_[-1].start)
        outputs = self.numbers(task.outputs)
        networks: list[nn.Module] = [self.encoder_, self.decoder_]
        classifier: nn.Module = self.head_
        if self.labels == "auxiliary":
            address = self.address_ / "auxiliary" / len(self.tasks_)
            classifier = stack(lambda: Linear(self.embedding, self.tasks_[-1].stop), address)
            self.transient_floats_ += floats(classifier)
        if self.labels != "none":
            networks.append(classifier)

        def feed(address: Address) -> tuple[Tensor, ...]:
            batches, replayed = self._mixed(rows, past.density if past else None, old, address)
            noise = self.dropout_noise(batches, address)
            return batches, task.moves.draw(batches, address), noise, *replayed

        def loss(x: Tensor, y: Tensor, moves: Tensor, noise: Tensor, *replayed: Tensor) -> tuple[Tensor, Tensor]:
            y_hat, z_hat = replayed or (None, None)
            x, real = self.inputs_(task.transformed(x, moves)), y.shape[1]
            if past is not None and z_hat is not None:
                with torch.no_grad():
                    x = torch.cat([x, past.decoder(z_hat)], dim=1)
            total, z = self._reconstruction(x, x.shape[1] if self.augment else real)
            if z_hat is not None and self.weight:
                total = total + self.weight * self.distance_between(z_hat, z[:, real:]).mean(1)  # Eq. 3
            if past is not None and past.encoder is not None:
                with torch.no_grad():
                    z_old = past.encoder(x[:, :real])
                total = total + self.anchor * self.distance_between(z_old, z[:, :real]).mean(1)
            if self.labels == "head":
                total = total + self.label_weight * self.cross_entropy(z[:, :real], outputs[y], noise)
            if self.labels == "auxiliary":
                ids = y + old.stop
                every = ids if y_hat is None else torch.cat([ids, y_hat], dim=1)
                total = total + self.label_weight * mean_cross_entropy(classifier(z), every)
            return total, z

        return networks, feed, loss

    def _reconstruction(self, x: Tensor, count: int) -> tuple[Tensor, Tensor]:
        """Sparse autoencoder loss [S] (Eq. 2) on the first `count` samples, and the embeddings of all [S, B, D]."""
        embedded = list(self.encoder_.outputs(x))
        encoded = [h[:, :count] for h in embedded]
        decoded = list(self.decoder_.outputs(encoded[-1]))
        z, x_hat = encoded[-1], decoded[-1]
        loss = (x[:, :count] - x_hat).square().flatten(2).sum(-1).mean(1)
        if self.sparsity and self.sparsity_on == "z":
            loss = loss + self.sparsity * z.abs().sum(-1).mean(1)
        elif self.sparsity:
            loss = loss + self.sparsity * sum(h.abs().flatten(1).mean(1) for h in (*encoded, *decoded[:-1]))
        return loss, embedded[-1]

    def distance_between(self, z_hat: Tensor, z: Tensor) -> Tensor:
        """The distance d of Eq. 3 [S, n]."""
        if self.distance == "l2":
            return (z_hat - z).square().sum(-1)
        return 1 - torch.cosine_similarity(z_hat, z, dim=-1)

    # -- phase 2 -------------------------------------------------------------------------------------------------

    def train_density(self, task: Task, past: Past | None) -> None:
        """Train the density by maximum likelihood on new embeddings and on pseudo-embeddings of all old classes."""
        rows, old = task.train_rows(self.address_.seeds), range(self.tasks_[-1].start)
        z, y = self.embed(task, rows), task.y[rows] + old.stop
        health.check_embeddings(self, z, y, task, rows)
        address = self.address_ / (len(self.tasks_) - 1) / "flow"
        self._add_classes(task, past)
        every_z, every_y = self._with_past(z, y, past, address)
        self.density_.start(every_z, every_y)
        noise = self.jitter * every_z.std(1, keepdim=True)
        where = torch.arange(z.shape[1], device=z.device).expand(len(z), -1)

        def feed(address: Address) -> tuple[Tensor, ...]:
            batches, replayed = self._mixed(where, past.density if past else None, old, address)
            condition = y.gather(1, batches.flatten(1)).view(batches.shape)
            new = z.gather(1, batches.flatten(1, 2).unsqueeze(-1).expand(-1, -1, z.shape[2]))
            new = new.unflatten(1, batches.shape[1:])
            if replayed and past is not None:
                y_hat, z_hat = replayed
                again = self._reencoded(z_hat.flatten(1, 2), past).view(z_hat.shape) if self.reencode else z_hat
                new, condition = torch.cat([new, again], dim=2), torch.cat([condition, y_hat], dim=2)
            jitter = (address / "jitter").normal(*new.shape[1:])
            return new + noise.unsqueeze(1) * jitter, condition

        def loss(z: Tensor, condition: Tensor) -> Tensor:
            return -self.density_.log_prob(z, condition).mean(1)

        parameters = [p for p in self.density_.parameters() if p.requires_grad]
        if parameters:
            rates = {"lr": self.lr_flow, "decay": self.decay_flow}
            clamp = lambda: _clamp(parameters, self.clamp)  # noqa: E731
            statistics = list(self.density_.buffers())  # those of the norms change during training
            self.train("flow", [self.density_], loss, feed, **rates, before_update=clamp, also=statistics)

    def _add_classes(self, task: Task, past: Past | None) -> None:
        if self.restart and self.density == "flow" and past is not None:
            self.density_ = self._new_density()
            self.density_.add(past.density.counts[0], self.address_)
        rows = task.train_rows(self.address_.seeds)
        self.density_.add(torch.bincount(task.y[rows[0]], minlength=len(task.labels)), self.address_)

    def _with_past(self, z: Tensor, y: Tensor, past: Past | None, address: Address) -> tuple[Tensor, Tensor]:
        """All new embeddings with their ids, and as many of each old class, up to the replay share of a batch."""
        old, new = self.tasks_[-1].start, len(self.tasks_[-1])
        count = int(z.shape[1] * min(old / new, self.share / (1 - self.share)))  # so that a long stream stays fast
        if past is None or not count:
            return z, y
        y_hat = past.density.labels(count, address / "labels", range(old))
        z_hat = past.density.sample(y_hat, address / "start", self.temperature)
        if self.reencode:
            z_hat = self._reencoded(z_hat, past)
        return torch.cat([z, z_hat], dim=1), torch.cat([y, y_hat], dim=1)

    def _new_density(self) -> Density:
        if self.density == "gaussian":
            return stack(lambda: Gaussian(self.embedding), self.address_ / "density")
        return stack(
            lambda: Flow(
                self.embedding,
                levels=self.levels,
                blocks=self.blocks,
                norm=self.norm,
                condition=self.condition,
                condition_size=self.condition_size,
                one_hot=self.one_hot,
                class_prior=self.class_prior,
                bounded=self.bounded,
                permutation=self.permutation,
            ),
            self.address_ / "density",
        )

    # -- phase 3 -------------------------------------------------------------------------------------------------

    def train_head(self, task: Task) -> None:
        """Train the head by cross-entropy on the new task (Eq. 1). The encoder is frozen, since R does not act here.

        A head shared with earlier tasks also trains on embeddings of those tasks, sampled from the density.
        """
        rows, head = task.train_rows(self.address_.seeds), self.head_of_[-1]
        z, y = self.embed(task, rows), self.numbers(task.outputs)[task.y[rows]]
        seeds = torch.arange(len(z), device=z.device).unsqueeze(1)
        where = torch.arange(z.shape[1], device=z.device).expand(len(z), -1)
        earlier = zip(self.tasks_[:-1], self.head_of_, strict=False)
        old = [c for classes, owner in earlier if owner == head for c in classes]
        outputs = self.numbers([output for of_task in self.outputs_ for output in of_task])  # of each class id

        def feed(address: Address) -> tuple[Tensor, ...]:
            batches, replayed = self._mixed(where, self.density_, old, address)
            size = batches.shape[2] + (replayed[0].shape[2] if replayed else 0)
            return batches, self.dropout_noise(batches, address, size), *replayed

        def loss(at: Tensor, noise: Tensor, *replayed: Tensor) -> Tensor:
            every_z, every_y = z[seeds, at], y.gather(1, at)
            if replayed:
                y_hat, z_hat = replayed
                every_z = torch.cat([every_z, z_hat], dim=1)
                every_y = torch.cat([every_y, outputs[y_hat]], dim=1)
            return mean_cross_entropy(self.head_(every_z, noise), every_y)

        self.train("head", [self.head_], loss, feed, lr=self.lr, optimiser=self.optimiser)

    # -- joint training ------------------------------------------------------------------------------------------

    def train_jointly(self, task: Task, past: Past | None) -> None:
        """Train autoencoder, head and flow in every step: labels move the encoder, and the flow follows it.

        All use phase 1's epochs and learning rate. The flow's standardisation is recomputed every epoch.
        """
        rows, old = task.train_rows(self.address_.seeds), self.tasks_[-1].start
        networks, feed_first, first = self._autoencoding(task, past)
        networks += [] if self.labels == "head" else [self.head_]
        outputs, y_all = self.numbers(task.outputs), task.y[rows] + old
        self._add_classes(task, past)

        def feed(address: Address) -> tuple[Tensor, ...]:
            self.density_.start(*self._with_past(self.embed(task, rows), y_all, past, address))
            return feed_first(address)

        def loss(x: Tensor, y: Tensor, moves: Tensor, noise: Tensor, *replayed: Tensor) -> Tensor:
            total, z = first(x, y, moves, noise, *replayed)
            real, condition, followed = y.shape[1], y + old, z.detach()
            if replayed:
                condition = torch.cat([condition, replayed[0]], dim=1)
                followed = followed if self.reencode else torch.cat([followed[:, :real], replayed[1]], dim=1)
            if self.labels != "head":
                total = total + self.cross_entropy(z[:, :real], outputs[y], noise)
            return total - self.density_.log_prob(followed, condition).mean(1)

        of_flow = [p for p in self.density_.parameters() if p.requires_grad]
        rates = {"lr": self.lr_autoencoder, "decay": self.decay_autoencoder}
        after = {"before_update": lambda: _clamp(of_flow, self.clamp), "also": list(self.density_.buffers())}
        self.train("joint", [*networks, self.density_], loss, feed, gather=task.gather, **rates, **after)

    def recognise(self, x: Tensor) -> Tensor:
        """Ids of the classes under which the embeddings are most likely [S, B], by the density; no head is used."""
        z = self.encoder_(self.inputs_(x))
        ids = torch.arange(self.tasks_[-1].stop, device=z.device).expand(*z.shape[:2], -1)
        return torch.stack([self.density_.log_prob(z, of_class) for of_class in ids.unbind(2)], dim=2).argmax(2)

    @torch.no_grad()
    def generate(self, ids: Tensor, address: Address) -> Tensor:
        """Sample embeddings from the density and decode them."""
        return self.decoder_(self.density_.sample(ids, address, self.temperature))

    # -- pseudo-samples ------------------------------------------------------------------------------------------

    def _mixed(
        self, rows: Tensor, density: Density | None, old: Sequence[int], address: Address
    ) -> tuple[Tensor, tuple[Tensor, ...]]:
        """An epoch's batches of rows, and the labels and embeddings of the pseudo-samples that replace part of them.

        The replaced share is that of the old classes among all, so that every class is seen equally often.
        """
        batches = self.batches(rows, address)
        steps, size = batches.shape[1:]
        share = len(old) / (len(old) + len(self.tasks_[-1]))
        count = min(round(size * share), int(size * self.share + 1e-9), size - 1)
        if density is None or not count:
            return batches, ()
        y_hat = density.labels(steps * count, address / "labels", old)
        z_hat = density.sample(y_hat, address / "replay", self.temperature)
        health.check_samples(self, density.outside(z_hat), y_hat)
        return batches[..., count:], (y_hat.unflatten(1, (steps, count)), z_hat.unflatten(1, (steps, count)))

    @torch.no_grad()
    def _reencoded(self, z_hat: Tensor, past: Past) -> Tensor:
        """E(D_old(z_hat)): current embeddings of the old classes, as the encoder has moved a little."""
        parts = [self.encoder_(past.decoder(part)) for part in z_hat.split(self.rows_at_once, 1)]
        return torch.cat(parts, dim=1)


def _frozen(module: Module) -> Module:
    """A copy whose parameters are frozen."""
    return copy.deepcopy(module).requires_grad_(False)


def _clamp(parameters: Sequence[nn.Parameter], bound: float) -> None:
    for parameter in parameters:
        if parameter.grad is not None:
            parameter.grad.clamp_(-bound, bound)
