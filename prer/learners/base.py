"""The base class of all learners: an encoder, a head for each task, and how a task is learned.

A method overrides `loss`, `rehearse`, `before_step` or `after_task`; one that trains in its own phases overrides
`learn`. The fields of a learner are its hyperparameters, its TOML table and its help text.
"""

# S seeds, B batch, D embedding, K classes, n training samples of a task

from __future__ import annotations

from abc import ABC
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import partial
from typing import Any, ClassVar, Literal, Self, cast

import torch
from torch import Tensor, nn

from prer.address import Address
from prer.data.catalogue import known
from prer.errors import InputError
from prer.learners.encoding import begin, dimension_of, encoder_of
from prer.learners.interfaces import Batch, MemorySize
from prer.learners.memory import SampleMemory
from prer.nn.heads import WIDE, Head, Heads, dropout_noise, grow, mean_cross_entropy
from prer.nn.networks import Inputs
from prer.nn.stacked import put, stack
from prer.presets import recommended
from prer.presets.auto import batch_of, epochs_of
from prer.settings import Auto, build, checked, families, merged, named, setting
from prer.streams.task import Label, Task
from prer.training.computing import rows_at_once
from prer.training.loop import Feed, Loop, Observer, Plan, batches
from prer.training.optimisers import Name


@dataclass(kw_only=True)
class Learner(ABC):
    """Base class: a shared encoder E and one head S_t for each task, f(x, t) = S_t(E(x)), or one head that grows.

    Class ids number the pairs (t, y) in order of arrival: the same label in two tasks has two ids.
    """

    name: ClassVar[str]
    capturable: ClassVar[bool] = True  # whether a step may be captured as a CUDA graph
    keeps_tasks: ClassVar[bool] = False  # whether tasks are the memory, so that `restore` needs them with their data

    channels: tuple[int, ...] = setting((12, 24, 48), "filters of each convolution (images)", low=1, high=65_536)
    hidden: tuple[int, ...] = setting((128, 64), "width of each hidden layer (vectors)", low=1, high=65_536)
    encoder: Literal["continues", "patches", "identity", "random"] = setting(
        "continues",
        "a network that is trained; or patches of images, inputs as they are, or a random projection, set by task 1",
    )
    embedding: int | Auto = setting(50, "size of the embedding z; auto: by the shape of a sample", low=2, high=65_536)
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
        table, options = recommended(known(data).name, cls.name)["learner"], families(cls)
        return build(cls, merged(table, named(settings, options), options), "learner", {})

    # -- override points -----------------------------------------------------------------------------------------

    def loss(self, batch: Batch) -> Tensor:
        """The loss of each seed [S] on a batch of the current task; by default the cross-entropy (Eq. 1)."""
        return mean_cross_entropy(batch.head(self.encoder_(batch.x), batch.noise), batch.y)

    def rehearse(self, batches: Tensor, address: Address) -> tuple[Tensor, ...]:
        """Tensors of the past that `loss` needs in an epoch with these batches [S, steps, B], each [S, steps, ...]."""
        return ()

    def old_heads(self) -> bool:
        """Whether old heads are trained together with the current one; `batch.heads` then has all of them."""
        return False

    def before_step(self, batch: Batch) -> None:
        """Called after the backward pass of a step and before the update."""

    def after_task(self, task: Task) -> None:
        """Called after a task is learned, to store what later tasks need of it."""

    def memory(self) -> dict[str, nn.Module]:
        """Modules that hold the memory of the past, by name, besides encoder and heads."""
        return {"kept": self.kept_}

    def memory_size(self) -> MemorySize:
        """The size of the memory."""
        return MemorySize.of(self.memory().values(), len(self.kept_))

    def phases(self, samples: int, classes: int) -> dict[str, int]:
        """Epochs of each phase, for a task with this many training samples and classes."""
        return {"classifier": epochs_of(self.epochs, self.batch, samples, classes)}

    # -- lifecycle -----------------------------------------------------------------------------------------------

    def start(
        self, shape: Sequence[int], seeds: Sequence[int], device: str = "cpu", observe: Observer | None = None
    ) -> None:
        """Reset the learner and build the networks for samples of this shape."""
        vars(self).update(checked(type(self), {f.name: getattr(self, f.name) for f in fields(self)}))
        self.shape_ = tuple(shape)
        self.address_ = Address(tuple(seeds), device)
        self.loop_ = Loop(observe)
        self.tasks_: list[range] = []  # the class ids of each task so far
        self.labels_: list[Label] = []  # the label of each class id
        self.head_of_: list[int] = []  # the head index of each task so far
        self.outputs_: list[tuple[int, ...]] = []  # for each task, the head's output index of each label
        self.notes_: dict[str, Any] = {}  # plain values that are saved with the tensors
        self.transient_floats_ = 0
        self.inputs_ = stack(lambda: Inputs(shape), self.address_)
        self.dimension_ = dimension_of(self)
        self.encoder_ = encoder_of(self)
        self.heads_ = stack(nn.ModuleList, self.address_)
        self.kept_ = stack(SampleMemory, self.address_)  # samples of past tasks, for learners that keep any

    def learn(self, task: Task) -> None:
        """Learn one task; its data is not seen again, unless a memory keeps it."""
        self.meet(task)
        self.train_classifier(task)
        self.after_task(task)

    def scores(self, x: Tensor, head: int) -> Tensor:
        """Scores of a head's outputs [S, B, K] for inputs [S, B, ...]; the largest one is the prediction."""
        return self.heads_[head](self.encoder_(self.inputs_(x)))

    def predict(self, x: Tensor, head: int, among: Sequence[int] | None = None) -> Tensor:
        """Index of a head's largest output [S, B] for inputs [S, B, ...]; of these outputs only, if they are given."""
        scores = self.scores(x, head)
        outputs = torch.tensor(range(scores.shape[-1]) if among is None else sorted(among), device=scores.device)
        return outputs[scores[..., outputs].argmax(-1)]

    def state(self) -> dict[str, Tensor]:
        """Every tensor needed to restore the learner, by name."""
        return {
            f"{part}.{name}": t for part, module in self._parts().items() for name, t in module.state_dict().items()
        }

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
        self.notes_ = dict(notes)

    # -- building blocks -----------------------------------------------------------------------------------------

    def meet(self, task: Task) -> None:
        """Register a new task: its classes and, if needed, a new head; the first task sets the input statistics."""
        if task.head > max(self.head_of_, default=-1) + 1:
            raise InputError(
                f"task {task.index + 1} was given before task {task.index}; learn the tasks of a stream in order"
            )
        if not self.tasks_:
            begin(self, task)
        self._know(task)
        self.size_ = task.size

    def train_classifier(
        self, task: Task, networks: Sequence[nn.Module] | None = None, also: Sequence[Tensor] = ()
    ) -> None:
        """Train encoder and heads to minimise `loss` on a task's training part.

        Args:
            task: the task.
            networks: what is trained; by default the encoder and the current head, or all heads if `old_heads`.
            also: tensors that `before_step` changes in place.
        """
        rows, targets = task.train_rows(self.address_.seeds), task.targets
        heads = Heads(self._heads()) if self.old_heads() else None
        head = self.head_ if heads is None else partial(heads.of, self.head_of_[-1])
        if heads is not None:
            self.transient_floats_ += sum(p[0].numel() for p in heads.parameters())

        def prepare(at: Tensor, x: Tensor, y: Tensor, moves: Tensor, noise: Tensor, *past: Tensor) -> tuple[Batch]:
            x = self.inputs_(task.transformed(x, moves))
            return (Batch(x, targets[y], noise, at, head, past, heads),)

        def feed(address: Address) -> tuple[Tensor, ...]:
            at = self._batches(rows.shape[1], address)
            noise = dropout_noise(self.head_, at.shape[1:], address)
            return at, task.moves.draw(at, address), noise, *self.rehearse(at, address)

        how = {"gather": task.gatherer(rows), "prepare": prepare, "before_update": self.before_step, "also": also}
        trained = networks or [self.encoder_, heads or self.head_]
        self.train("classifier", trained, self.loss, feed, lr=self.lr, optimiser=self.optimiser, **how)
        if heads is not None:
            heads.give_back()

    def train(
        self, phase: str, networks: Sequence[nn.Module], loss: Callable[..., Tensor], feed: Feed, **how: Any
    ) -> None:
        """Train networks in a phase, a key of `phases`; `training/loop.py` explains the arguments in its `Plan`."""
        task, epochs = len(self.tasks_) - 1, self.phases(*self.size_)[phase]
        plan = Plan(networks=networks, loss=loss, feed=feed, capture=self.capturable, **how)
        self.loop_.run(phase, task, epochs, plan, self.address_ / task / phase)

    @torch.no_grad()
    def embed(self, task: Task, rows: Tensor) -> Tensor:
        """Embeddings E(x) [S, n, D] of a task's rows [S, n]."""
        parts = rows.split(rows_at_once(self.address_), 1)
        return torch.cat([self.encoder_(self.inputs_(task.samples(part)[0])) for part in parts], dim=1)

    # -- internals -----------------------------------------------------------------------------------------------

    def _heads(self) -> list[Head]:
        return cast(list[Head], list(self.heads_))

    def _parts(self) -> dict[str, nn.Module]:
        return {"inputs": self.inputs_, "encoder": self.encoder_, "heads": self.heads_} | self.memory()

    def _build(self, network: Callable[..., Any], **more: Any) -> Callable[[], Any]:
        return lambda: network(self.shape_, self.dimension_, self.channels, self.hidden, **more)

    def _batches(self, samples: int, address: Address) -> Tensor:
        """Positions of the samples of each step of an epoch [S, steps, B]."""
        return batches(samples, batch_of(self.batch, samples), address)

    def _know(self, task: Task) -> None:
        first = self.tasks_[-1].stop if self.tasks_ else 0
        self.tasks_.append(range(first, first + len(task.labels)))
        self.labels_.extend(task.labels)
        self.head_of_.append(task.head)
        self.outputs_.append(task.outputs)
        self.transient_floats_ = 0
        self._fit_head(task)

    def _fit_head(self, task: Task) -> None:
        """Add the head of a task, or the outputs that an existing head still lacks."""
        if task.head == len(self.heads_) or task.width > self._heads()[task.head].classes:
            hidden = WIDE if task.scenario == "class" else None
            build = partial(Head, self.dimension_, task.width, self.dropout, hidden)
            grow(self.heads_, task.head, stack(build, self.address_ / "head" / task.index))
        self.head_ = self._heads()[task.head]  # the head of the current task
