"""The base class of all learners: an encoder, a head for each task, and the training loop.

A method overrides `loss`, `rehearse`, `before_step` or `after_task`; one that trains in its own phases overrides
`learn`. The fields of a learner are its hyperparameters, its TOML table and its help text.
"""

# S seeds, B batch, D embedding, K classes, n training samples of a task

from __future__ import annotations

import time
from abc import ABC
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, ClassVar, NamedTuple, Self

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from prer.address import Address
from prer.data.catalogue import known
from prer.errors import InputError, RunError
from prer.learners.memory import SampleMemory
from prer.nn.heads import Head, Heads
from prer.nn.networks import Encoder, Inputs
from prer.nn.stacked import floats, put, stack, training
from prer.presets import recommended
from prer.presets.auto import batch_of, epochs_of
from prer.settings import Auto, build, checked, setting
from prer.streams.task import Label, Task
from prer.training.optimisers import Name
from prer.training.phase import Phase, Trained, check_finite
from prer.training.step import Step

STEPS_GATHERED = 32  # steps whose samples are gathered together

Observer = Callable[[dict[str, Any]], None]


class Batch(NamedTuple):
    """The tensors of one training step, as `loss` receives them."""

    x: Tensor  # inputs, scaled for the networks [S, B, ...]
    y: Tensor  # index of the correct output of the head [S, B]
    noise: Tensor  # uniform noise for dropout [S, B, width]
    past: tuple[Tensor, ...] = ()  # what `rehearse` returned for this step


@dataclass(kw_only=True)
class Learner(ABC):
    """Base class: a shared encoder E and one head S_t for each task, f(x, t) = S_t(E(x)).

    Class ids number the pairs (t, y) in order of arrival: the same label in two tasks has two ids.
    """

    name: ClassVar[str]
    capturable: ClassVar[bool] = True  # whether a step may be captured as a CUDA graph

    channels: tuple[int, ...] = setting((12, 24, 48), "filters of each convolution (images)", low=1, high=65_536)
    hidden: tuple[int, ...] = setting((128, 64), "width of each hidden layer (vectors)", low=1, high=65_536)
    embedding: int = setting(50, "size of the embedding z", low=2, high=65_536)
    normalise: bool = setting(False, "standardise each channel of images, by the first task's statistics")
    dropout: float = setting(0.2, "dropout between a head's layers", low=0, high=0.99)
    batch: int | Auto = setting("auto", "samples in a batch; auto: by the number of samples", low=2)
    epochs: int | Auto = setting("auto", "epochs of a classifier's training; auto: by the number of samples", low=0)
    lr: float = setting(1e-3, "learning rate of a classifier", low=0, high=1e30)
    optimiser: Name = setting("adam", "optimiser of a classifier: adam or sgd")

    @classmethod
    def like(cls, data: str, **settings: Any) -> Self:
        """Return a learner with the settings recommended for a catalogue data set; keyword arguments override them.

        Example:
            >>> from prer import Naive
            >>> Naive.like("digits", epochs=5).batch
            32
        """
        if not hasattr(cls, "name"):
            raise InputError(f"{cls.__name__} is the base of learners; call this of one of them, PRER say")
        return build(cls, recommended(known(data).name, cls.name)["learner"] | settings, "learner", {})

    # -- override points -----------------------------------------------------------------------------------------

    def loss(self, batch: Batch) -> Tensor:
        """The loss of each seed [S] on a batch of the current task; by default the cross-entropy (Eq. 1)."""
        return self.cross_entropy(self.encoder_(batch.x), batch.y, batch.noise)

    def rehearse(self, batches: Tensor, address: Address) -> tuple[Tensor, ...]:
        """Tensors of the past that `loss` needs in an epoch with these batches of rows, each [S, steps, ...]."""
        return ()

    def old_heads(self) -> bool:
        """Whether the loss uses old heads, which are then trained together with the current one."""
        return False

    def before_step(self) -> None:
        """Called after the backward pass of a step and before the update."""

    def after_task(self, task: Task) -> None:
        """Called after a task is learned, to store what later tasks need of it."""

    def changing(self) -> Sequence[Tensor]:
        """Tensors that the classifier's training steps change in place besides its parameters."""
        return ()

    def notes(self) -> dict[str, Any]:
        """Plain values needed to restore the learner, besides its tensors and the tasks it has learned."""
        return {}

    def memory(self) -> dict[str, nn.Module]:
        """Modules that hold the memory of the past, by name, besides encoder and heads."""
        return {"kept": self.kept_}

    def memory_samples(self) -> int:
        """How many raw samples are kept."""
        return len(self.kept_)

    def phases(self, samples: int, classes: int) -> dict[str, int]:
        """Epochs of each phase, for a task with this many training samples and classes."""
        return {"classifier": epochs_of(self.epochs, self.batch, samples, classes)}

    # -- lifecycle -----------------------------------------------------------------------------------------------

    def start(
        self, shape: Sequence[int], seeds: Sequence[int], device: str = "cpu", observe: Observer | None = None
    ) -> None:
        """Reset the learner and build the networks for samples of this shape."""
        checked(type(self), {f.name: getattr(self, f.name) for f in fields(self)})
        self.shape_ = tuple(shape)
        self.address_ = Address(tuple(seeds), device)
        self.observe_ = observe or (lambda event: None)
        self.tasks_: list[range] = []  # the class ids of each task so far
        self.labels_: list[Label] = []  # the label of each class id
        self.head_of_: list[int] = []  # the head index of each task so far
        self.outputs_: list[tuple[int, ...]] = []  # for each task, the head's output index of each label
        self.seconds_: dict[str, float] = defaultdict(float)
        self.transient_floats_ = 0
        self.inputs_ = stack(lambda: Inputs(shape), self.address_)
        self.encoder_ = stack(self._build(Encoder, normalise=self.normalise), self.address_ / "encoder")
        self.heads_ = stack(nn.ModuleList, self.address_)
        self.kept_ = stack(SampleMemory, self.address_)  # samples of past tasks, for learners that keep any
        self.bank_: Heads | None = None  # all heads stacked, while old ones are trained too
        self.trained_: dict[str, Trained] = {}  # checkpoints of the phases of an interrupted run
        self.after_epoch_: Callable[[str, Phase, int, int, float], None] = lambda *of_epoch: None

    def learn(self, task: Task) -> None:
        """Learn one task; its data is not seen again, unless a memory keeps it."""
        self.meet(task)
        if self.old_heads():
            self.bank_ = Heads(self._heads())
            self.transient_floats_ += sum(p[0].numel() for p in self.bank_.parameters())
        self.train_classifier(task, [self.encoder_, self.head_ if self.bank_ is None else self.bank_])
        if self.bank_ is not None:
            self.bank_.give_back()
            self.bank_ = None
        self.after_task(task)

    def predict(self, x: Tensor, head: int) -> Tensor:
        """Index of a head's largest output [S, B] for inputs [S, B, ...]."""
        return self.heads_[head](self.encoder_(self.inputs_(x))).argmax(-1)

    @torch.no_grad()
    def accuracy(self, task: Task) -> Tensor:
        """Test accuracy of each seed on a task, in per cent [S]."""
        outputs, right = self.numbers(task.outputs), []
        for rows in task.test_rows(self.address_.seeds).split(self.rows_at_once, 1):
            x, y = task.samples(rows)
            right.append((self.predict(x, task.head) == outputs[y]).float())
        return 100 * torch.cat(right, dim=1).mean(1)

    def recognise(self, x: Tensor) -> Tensor:
        """Predicted class ids [S, B] of inputs [S, B, ...] whose task is unknown."""
        raise InputError(f"{self.name} cannot tell tasks apart; say which it is, 1 to {len(self.tasks_)}")

    @property
    def generates(self) -> bool:
        """Whether the learner overrides `generate`."""
        return type(self).generate is not Learner.generate

    def generate(self, ids: Tensor, address: Address) -> Tensor:
        """Generate inputs [S, n, ...], scaled for the networks, of the given class ids [S, n] from memory alone."""
        raise InputError(f"{self.name} generates nothing; PRER and DGR do")

    def state(self) -> dict[str, Tensor]:
        """Every tensor needed to restore the learner, by name."""
        return {
            f"{part}.{name}": t for part, module in self._parts().items() for name, t in module.state_dict().items()
        }

    def _parts(self) -> dict[str, nn.Module]:
        return {"inputs": self.inputs_, "encoder": self.encoder_, "heads": self.heads_} | self.memory()

    def restore(self, learned: Sequence[Task], state: Mapping[str, Tensor], notes: Mapping[str, Any]) -> None:
        """Restore a learner that has learned these tasks, from its tensors and notes; call it right after `start`."""
        for task in learned:
            self._know(task)
        parts, memory = self._parts(), self.memory()
        for name, tensor in state.items():
            part, _, within = name.partition(".")
            put(parts[part], within, tensor.to(self.address_.device), len(self.address_.seeds), part not in memory)
        missing = self.state().keys() - state.keys()
        if missing:
            raise KeyError(f"{min(missing)} is missing")

    def memory_floats(self) -> int:
        """Number of scalars that one seed keeps after a task and that naive would not keep."""
        return floats(*self.memory().values())

    # -- building blocks -----------------------------------------------------------------------------------------

    @property
    def head_(self) -> Head:
        """The head of the current task."""
        head = self.heads_[self.head_of_[-1]]
        assert isinstance(head, Head)
        return head

    def _heads(self) -> list[Head]:
        return [head for head in self.heads_ if isinstance(head, Head)]

    def meet(self, task: Task) -> None:
        """Register a new task: its classes and, if needed, a new head; the first task sets the input statistics."""
        if task.head > len(self.heads_):
            raise InputError(
                f"task {task.index + 1} was given before task {task.index}; learn the tasks of a stream in order"
            )
        if not self.tasks_:
            self._scale(task)
        self._know(task)
        self.size_ = task.size

    def _know(self, task: Task) -> None:
        first = self.tasks_[-1].stop if self.tasks_ else 0
        self.tasks_.append(range(first, first + len(task.labels)))
        self.labels_.extend(task.labels)
        self.head_of_.append(task.head)
        self.outputs_.append(task.outputs)
        self.transient_floats_ = 0
        if task.head == len(self.heads_):
            address = self.address_ / "head" / task.index
            self.heads_.append(stack(lambda: Head(self.embedding, task.width, self.dropout), address))

    def _scale(self, task: Task) -> None:
        """Compute the input statistics on the first task's training part, if inputs are standardised."""
        if len(self.shape_) == 1 or self.normalise:
            rows = task.train_rows(self.address_.seeds)
            statistics: Any = self.inputs_ if len(self.shape_) == 1 else self.encoder_.layers[0]
            statistics.start(task.samples(of_seed)[0] for of_seed in rows)  # one seed at a time: there may be many

    def train_classifier(self, task: Task, networks: Sequence[nn.Module]) -> None:
        """Train these networks to minimise `loss` on a task's training part."""
        rows, outputs = task.train_rows(self.address_.seeds), self.numbers(task.outputs)

        def loss(x: Tensor, y: Tensor, moves: Tensor, noise: Tensor, *past: Tensor) -> Tensor:
            return self.loss(Batch(self.inputs_(task.transformed(x, moves)), outputs[y], noise, past))

        def feed(address: Address) -> tuple[Tensor, ...]:
            batches = self.batches(rows, address)
            drawn = task.moves.draw(batches, address), self.dropout_noise(batches, address)
            return batches, *drawn, *self.rehearse(batches, address)

        rates = {"lr": self.lr, "optimiser": self.optimiser}
        self.train("classifier", networks, loss, feed, gather=task.gather, also=self.changing(), **rates)

    def train(
        self,
        phase: str,
        networks: Sequence[nn.Module],
        loss: Callable[..., Tensor],
        feed: Callable[[Address], tuple[Tensor, ...]],
        *,
        lr: float,
        optimiser: Name = "adam",
        gather: Callable[[Tensor], tuple[Tensor, ...]] | None = None,
        before_update: Callable[[], None] | None = None,
        also: Sequence[Tensor] = (),
        decay: bool = False,
    ) -> None:
        """Run the training loop of a phase with a fresh optimiser; an interrupted phase resumes where it stopped.

        Args:
            phase: its name, a key of `phases`; part of the address of its randomness.
            networks: the networks to train; they are in training mode until the phase ends.
            loss: maps the tensors of one step to the loss of each seed [S].
            feed: maps an epoch's address to the tensors of the whole epoch, each [S, steps, ...].
            lr: learning rate.
            optimiser: "adam" or "sgd".
            gather: turns the first tensor, rows, into samples, a few steps at a time, so that data may be anywhere.
            before_update: replaces `before_step`.
            also: tensors that steps change in place besides the parameters.
            decay: decay the learning rate linearly over the epochs.
        """
        task, epochs = len(self.tasks_) - 1, self.phases(*self.size_)[phase]
        parameters = [p for network in networks for p in network.parameters() if p.requires_grad]
        before_update = before_update or self.before_step
        step = Step(loss, parameters, optimiser=optimiser, lr=lr, before_update=before_update, capture=self.capturable)
        under_way = Phase(parameters, also, step.optimiser)
        done = under_way.take(self.trained_[phase]) if phase in self.trained_ else 0
        if not 0 <= done <= epochs:
            raise InputError(
                f"the checkpoint has {done} epochs of phase {phase!r}, of {epochs}; delete it to begin anew"
            )
        with training(networks):
            for epoch in range(done, epochs):
                begin = time.perf_counter()
                step.slow_down(1 - epoch / epochs if decay else 1.0)
                inputs = feed(self.address_ / task / phase / epoch)
                total = torch.zeros(len(self.address_.seeds), device=self.address_.device)
                for first, *others in zip(*(t.split(STEPS_GATHERED, 1) for t in inputs), strict=True):
                    total += step(*(gather(first) if gather else (first,)), *others)
                losses = (total / inputs[0].shape[1]).tolist()
                seconds = time.perf_counter() - begin
                self.seconds_[phase] += seconds
                self._check(losses, phase, epoch)
                event = {"event": "epoch", "task": task, "phase": phase, "epoch": epoch, "epochs": epochs}
                self.observe_(event | {"loss": losses, "seconds": seconds})
                self.after_epoch_(phase, under_way, epoch + 1, epochs, seconds)
        # The same check as before every checkpoint: whether a run fails must not depend on when it is saved.
        check_finite((tensor for _, tensor in under_way.tensors()), task + 1, phase, epochs)
        for parameter in parameters:
            parameter.grad = None  # computed from the last batch, which must not be kept

    def batches(self, rows: Tensor, address: Address) -> Tensor:
        """Shuffle the rows [S, n] for this epoch and cut them into floor(n / B) batches [S, steps, B]."""
        n = rows.shape[1]
        size = batch_of(self.batch, n)
        order = (address / "order").permutation(n)[:, : n // size * size]
        return rows.gather(1, order).unflatten(1, (-1, size))

    def dropout_noise(self, batches: Tensor, address: Address, size: int | None = None) -> Tensor:
        """Uniform noise for the dropout of an epoch [S, steps, B, width]; `size` replaces the batch size B."""
        size = batches.shape[2] if size is None else size
        return (address / "dropout").uniform(batches.shape[1], size, sum(Head.widths(self.embedding)))

    def cross_entropy(self, z: Tensor, y: Tensor, noise: Tensor | None = None) -> Tensor:
        """Mean cross-entropy of the current head [S]; y is the index of the correct output [S, B]."""
        head = self.head_of_[-1]
        return mean_cross_entropy(self.head_(z, noise) if self.bank_ is None else self.bank_.of(head, z, noise), y)

    def numbers(self, values: Sequence[int]) -> Tensor:
        """A tensor of integers on the learner's device."""
        return torch.tensor(values, device=self.address_.device)

    @property
    def rows_at_once(self) -> int:
        """Batch size of each seed for inference."""
        return 1024 if self.address_.device == "cpu" else max(32_768 // len(self.address_.seeds), 1)

    @torch.no_grad()
    def embed(self, task: Task, rows: Tensor) -> Tensor:
        """Embeddings E(x) [S, n, D] of a task's rows [S, n]."""
        parts = [self.encoder_(self.inputs_(task.samples(part)[0])) for part in rows.split(self.rows_at_once, 1)]
        return torch.cat(parts, dim=1)

    def _build(self, network: Callable[..., Any], **more: Any) -> Callable[[], Any]:
        return lambda: network(self.shape_, self.embedding, self.channels, self.hidden, **more)

    def _check(self, losses: list[float], phase: str, epoch: int) -> None:
        for seed, value in zip(self.address_.seeds, losses, strict=True):
            if not abs(value) < float("inf"):
                raise RunError(
                    f"the loss of seed {seed} became {value} in task {len(self.tasks_)}, phase {phase!r}, "
                    f"epoch {epoch + 1}; try a lower learning rate"
                )


def mean_cross_entropy(logits: Tensor, target: Tensor) -> Tensor:
    """Mean cross-entropy of each seed [S] from logits [S, B, K] and targets [S, B]."""
    losses = F.cross_entropy(logits.flatten(0, 1), target.flatten(), reduction="none")
    return losses.view(target.shape).mean(1)
