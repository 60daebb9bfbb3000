"""PRER: pseudo-rehearsal with a normalizing flow over the network's own embeddings.

No old sample is stored. A frozen flow is sampled, a frozen decoder turns the samples into inputs, and the live
encoder, while it learns the new task, is penalised for moving their embeddings away from the sampled ones.
"""

# S seeds, B batch, D embedding, n training samples of a task, P pseudo-samples

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor, nn

from prer.address import Address
from prer.densities.base import Density, DensitySettings, TrainedDensity
from prer.densities.flow import FlowSettings
from prer.densities.gaussian import GaussianSettings  # noqa: F401, so that it can be selected by its name
from prer.densities.mixture import MixtureSettings  # noqa: F401, likewise
from prer.learners import health
from prer.learners.answering import answer_of
from prer.learners.base import Learner
from prer.learners.distilling import Before, check_labels, distilled, rehearsed, train_with_labels
from prer.learners.encoding import decoder_of, is_computed
from prer.learners.fitting import maximise_likelihood
from prer.learners.labelling import labelling, outputs_of
from prer.learners.rehearsal import Past, current, mixed, with_past
from prer.nn.computed import Inverse
from prer.nn.heads import dropout_noise, mean_cross_entropy
from prer.nn.stacked import stack
from prer.presets.auto import epochs_of
from prer.settings import Auto, setting
from prer.streams.task import Task
from prer.training.loop import Feed, Observer

Loss = Callable[..., tuple[Tensor, Tensor]]


@dataclass(kw_only=True)
class PRER(Learner):
    """Pseudo-Rehearsal Embedding Regularisation (Pomponi, Scardapane, Uncini 2020)."""

    name = "prer"
    density_rate = "learner.density.lr"  # the setting to lower if samples explode

    epochs_autoencoder: int | Auto = setting("auto", "epochs of phase 1; auto: by the number of samples", low=0)
    lr_autoencoder: float = setting(1e-3, "learning rate of phase 1 (Adam)", low=0, high=1e30)
    decay_autoencoder: bool = setting(False, "decay that rate linearly to 0 over the epochs")
    weight: float = setting(1.0, "weight of the embedding regulariser R (Eq. 3), or of distillation (labels)", low=0)
    anchor: float = setting(0.0, "weight of the same pull on new samples, to where the old encoder had them", low=0)
    share: float = setting(0.8, "largest share of pseudo-samples in a batch; 0 turns replay off", low=0, high=0.95)
    temperature: float = setting(1.0, "of pseudo-samples; below 1 the memory narrows from task to task", low=0)
    sparsity: float = setting(0.02, "weight of the sparsity penalty", low=0)
    labels: Literal["none", "head", "auxiliary", "distilled"] = setting(
        "none",
        "what phase 1 sees: nothing, the head's loss, a classifier's; distilled: encoder and head learn before it",
    )
    label_weight: float = setting(1.0, "weight of that loss (labels: head, auxiliary)", low=0)
    generated: float = setting(0.0, "weight of distillation on generated samples, too (labels: distilled)", low=0)
    autoencoder: float = setting(0.0, "weight of the loss of Eq. 2 beside labels (labels: distilled)", low=0)
    reencode: bool = setting(True, "the density learns E(D(z)) of old classes, instead of z")
    encoder: Literal["continues", "rests", "patches", "identity", "random"] = setting(
        "continues",
        "a network that continues to learn, or rests after task 1; or patches, inputs as they are, a random projection",
    )
    answer: Literal["head", "density", "both"] = setting(
        "head", "what predicts: the head, the density by its likelihood, or the product of both"
    )
    density: DensitySettings = setting(FlowSettings(), "p(z | t, y): a flow, a mixture, or a Gaussian, for each class")

    def __post_init__(self) -> None:
        """Accept a density by its name, or as a table of its settings."""
        self.density = DensitySettings.read(self.density, "density")

    def phases(self, samples: int, classes: int) -> dict[str, int]:
        """Epochs of the paper's phases, after a classifier's if labels are distilled; an untrained density has none."""
        flow = {"flow": self.density.epochs} if isinstance(self.density, TrainedDensity) else {}
        first = {} if isinstance(getattr(self, "decoder_", None), Inverse) else {"autoencoder": self.epochs_autoencoder}
        labelled = {"classifier": self.epochs} if self.labels == "distilled" else {}
        settings = labelled | first | flow | {"head": self.epochs}
        return {phase: epochs_of(epochs, self.batch, samples, classes) for phase, epochs in settings.items()}

    def memory(self) -> dict[str, nn.Module]:
        """The density and the decoder are the whole memory of the past."""
        return {"decoder": self.decoder_, "density": self.density_}

    def start(
        self, shape: Sequence[int], seeds: Sequence[int], device: str = "cpu", observe: Observer | None = None
    ) -> None:
        """Build the networks."""
        super().start(shape, seeds, device, observe)
        check_labels(self)
        self.decoder_: Any = decoder_of(self)
        self.embedded_: Tensor | None = None
        self.density_ = self.new_density()

    def new_density(self) -> Density:
        """A density that knows no class yet."""
        return stack(lambda: self.density.fitting(self.shape_).build(self.dimension_), self.address_ / "density")

    def learn(self, task: Task) -> None:
        """Learn a task in the paper's three phases; if labels are distilled, encoder and head learn before them."""
        self.before_: Before | None = Before.of(self) if self.labels == "distilled" else None
        self.meet(task)
        self.past_ = past = self.freeze()
        if self.labels == "distilled" and not self.rests:
            train_with_labels(self, task)
        self.before_ = self.past_ = None
        if not isinstance(self.decoder_, Inverse):
            self.train_autoencoder(task, past)
        self.train_density(task, past)
        self.train_head(task)
        self.embedded_ = None
        health.report(self)

    @property
    def rests(self) -> bool:
        """Whether the encoder keeps its weights in the current task."""
        return is_computed(self) or (self.encoder == "rests" and len(self.tasks_) > 1)

    def embedded(self, task: Task) -> tuple[Tensor, Tensor]:
        """Embeddings [S, n, D] and labels [S, n] of the training part; a computed encoder embeds it once."""
        rows = task.train_rows(self.address_.seeds)
        z = self.embed(task, rows) if self.embedded_ is None else self.embedded_
        self.embedded_ = z if is_computed(self) else None
        return z, task.y[rows]

    def freeze(self) -> Past | None:
        """Freeze copies of the networks that generate the past; None on the first task."""
        self.embedded_ = None
        self.transient_floats_ = past.floats() if (past := Past.of(self)) else 0
        return past

    # -- phase 1 -------------------------------------------------------------------------------------------------

    loss, rehearse = distilled, rehearsed  # of encoder and head, which learn before the phases if labels are distilled

    def train_autoencoder(self, task: Task, past: Past | None) -> None:
        """Train the autoencoder on new samples and pseudo-samples, while R keeps old embeddings in place."""
        networks, feed, loss = self.autoencoding(task, past)
        rates = {"lr": self.lr_autoencoder, "decay": self.decay_autoencoder}
        gather = task.gatherer(task.train_rows(self.address_.seeds))
        self.train("autoencoder", networks, lambda *batch: loss(*batch)[0], feed, gather=gather, **rates)

    def autoencoding(self, task: Task, past: Past | None) -> tuple[list[nn.Module], Feed, Loss]:
        """Networks, feed and loss function of phase 1; the latter returns loss [S] and embeddings [S, B, D]."""
        samples, old = task.size[0], range(self.tasks_[-1].start)
        classifier, label_loss = labelling(self, task)
        fixed = is_computed(self) or self.labels == "distilled"  # the decoder alone learns
        networks = [*([] if fixed or self.rests else [self.encoder_]), self.decoder_]
        networks += [classifier] if classifier else []
        known = self.embedded(task)[0] if fixed else None
        seeds = torch.arange(len(self.address_.seeds), device=self.address_.device).unsqueeze(1)

        def feed(address: Address) -> tuple[Tensor, ...]:
            at, replayed = mixed(self, samples, past.density if past else None, old, address)
            noise = dropout_noise(self.head_, at.shape[1:], address)
            return at, task.moves.draw(at, address), noise, *replayed

        def loss(
            at: Tensor, x: Tensor, y: Tensor, moves: Tensor, noise: Tensor, *replayed: Tensor
        ) -> tuple[Tensor, Tensor]:
            y_hat, z_hat = replayed or (None, None)
            x, real = self.inputs_(x if known is not None else task.transformed(x, moves)), y.shape[1]
            if past and z_hat is not None:
                x = torch.cat([x, past.decode(z_hat)], dim=1)
            if known is not None:
                old_z = [] if past is None or z_hat is None else [current(self, z_hat, past)]
                z = torch.cat([known[seeds, at], *old_z], dim=1)
                return (x - self.decoder_(z)).square().flatten(2).sum(-1).mean(1), z
            total, z = self.reconstruction(x, self.reconstructed(real, x.shape[1]))  # Eq. 2
            if z_hat is not None and self.weight and not self.rests:
                total = total + self.weight * self.distance_between(z_hat, z[:, real:]).mean(1)  # Eq. 3
            if past and past.encoder and not self.rests:
                total = total + self.anchor * self.distance_between(past.embed(x[:, :real]), z[:, :real]).mean(1)
            return (total if classifier is None else total + self.label_weight * label_loss(z, y, y_hat, noise)), z

        return networks, feed, loss

    def reconstructed(self, real: int, total: int) -> int:
        """How many samples of a batch are reconstructed: all, pseudo-samples included."""
        return total

    def reconstruction(self, x: Tensor, count: int) -> tuple[Tensor, Tensor]:
        """Sparse autoencoder loss [S] (Eq. 2) on the first `count` samples, and the embeddings of all [S, B, D]."""
        with torch.set_grad_enabled(not self.rests):
            embedded = self.encoder_(x)
        z = embedded[:, :count]
        loss = (x[:, :count] - self.decoder_(z)).square().flatten(2).sum(-1).mean(1)
        return (loss + self.sparsity * z.abs().sum(-1).mean(1) if self.sparsity else loss), embedded

    def distance_between(self, z_hat: Tensor, z: Tensor) -> Tensor:
        """The distance d of Eq. 3 [S, n]: squared L2."""
        return (z_hat - z).square().sum(-1)

    # -- phase 2 -------------------------------------------------------------------------------------------------

    def train_density(self, task: Task, past: Past | None) -> None:
        """Fit the density to the embeddings of the new task and to pseudo-embeddings of all old classes."""
        z, y = self.embedded(task)
        y = y + self.tasks_[-1].start
        health.check_embeddings(self, z, y, task, task.train_rows(self.address_.seeds))
        if past is None and z.shape[1] == 1:  # the flow's norms need two
            z, y = z.repeat(1, 2, 1), y.repeat(1, 2)
        self.add_classes(task, past)
        every_z, every_y = z, y
        if not is_computed(self) or isinstance(self.density, TrainedDensity):  # others keep old classes as they are
            every_z, every_y = with_past(self, z, y, past, self.address_ / (len(self.tasks_) - 1) / "flow")
        self.density_.start(every_z, every_y)
        if isinstance(self.density, TrainedDensity):
            maximise_likelihood(self, self.density, z, y, past, self.density.jitter * every_z.std(1, keepdim=True))

    def add_classes(self, task: Task, past: Past | None) -> None:
        """Add the classes of a task to the density."""
        rows = task.train_rows(self.address_.seeds)
        self.density_.add(torch.bincount(task.y[rows[0]], minlength=len(task.labels)), self.address_)

    # -- phase 3 -------------------------------------------------------------------------------------------------

    def train_head(self, task: Task) -> None:
        """Train the head by cross-entropy on the new task (Eq. 1). The encoder is frozen, since R does not act here.

        A head shared with earlier tasks also trains on embeddings of those tasks, sampled from the density; a head
        that grows, on as many of each old class as of a new one.
        """
        z, y = self.embedded(task)
        y = task.targets[y]
        seeds = torch.arange(len(z), device=z.device).unsqueeze(1)
        old = [i for i in outputs_of(self, self.head_of_[-1]) if i < self.tasks_[-1].start]
        outputs = torch.tensor([output for of_task in self.outputs_ for output in of_task], device=z.device)
        groups = outputs if task.scenario == "class" else None  # old and new classes are then balanced exactly

        def feed(address: Address) -> tuple[Tensor, ...]:
            at, replayed = mixed(self, z.shape[1], self.density_, old, address, groups)
            size = at.shape[2] + (replayed[0].shape[2] if replayed else 0)
            return at, dropout_noise(self.head_, (at.shape[1], size), address), *replayed

        def loss(at: Tensor, noise: Tensor, *replayed: Tensor) -> Tensor:
            every_z, every_y = z[seeds, at], y.gather(1, at)
            if replayed:
                y_hat, z_hat = replayed
                every_z, every_y = torch.cat([every_z, z_hat], 1), torch.cat([every_y, outputs[y_hat]], 1)
            return mean_cross_entropy(self.head_(every_z, noise), every_y)

        self.train("head", [self.head_], loss, feed, lr=self.lr, optimiser=self.optimiser)

    # -- the memory ----------------------------------------------------------------------------------------------

    def scores(self, x: Tensor, head: int) -> Tensor:
        """The head's logits, or the log-likelihoods of its classes [S, B, K]."""
        return self.scores_of(self.encoder_(self.inputs_(x)), head)

    def scores_of(self, z: Tensor, head: int) -> Tensor:
        """The same for embeddings [S, B, D]; before the first task is learned, those of the head."""
        return answer_of(self, z, head)

    def recognise(self, x: Tensor) -> Tensor:
        """Log-likelihoods of all class ids [S, B, C], by the density; no head is used."""
        return self.density_.log_probs(self.encoder_(self.inputs_(x)), range(self.tasks_[-1].stop))

    @torch.no_grad()
    def generate(self, ids: Tensor, address: Address) -> Tensor:
        """Sample embeddings from the density and decode them."""
        return self.decoder_(self.density_.sample(ids, address, self.temperature))
