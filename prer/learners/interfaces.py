"""What learners exchange with the rest: a batch, the size of a memory, and abilities that only some learners have."""

# S seeds, B batch, K classes

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple, Protocol, runtime_checkable

from torch import Tensor, nn

from prer.address import Address
from prer.errors import InputError
from prer.nn.heads import Heads
from prer.nn.stacked import floats, nbytes


class Batch(NamedTuple):
    """One training step of the classifier, as `loss` and `before_step` receive it."""

    x: Tensor  # inputs, scaled for the networks [S, B, ...]
    y: Tensor  # index of the correct output of the head [S, B]
    noise: Tensor  # uniform noise for dropout [S, B, width]
    rows: Tensor  # position of each sample in the task's training part [S, B]
    head: Callable[..., Tensor]  # the current head: logits [S, B, K] of embeddings and noise
    past: tuple[Tensor, ...] = ()  # what `rehearse` returned for this step
    heads: Heads | None = None  # all heads in training, if `old_heads`


class MemorySize(NamedTuple):
    """What one seed keeps after a task and naive would not keep."""

    floats: int  # scalars of any type
    samples: int  # raw samples
    bytes: int  # of these scalars on disk; a pixel has one

    @classmethod
    def of(cls, modules: Iterable[nn.Module], samples: int) -> MemorySize:
        """The size of what one seed keeps in these modules."""
        modules = list(modules)
        return cls(floats(*modules), samples, nbytes(*modules))


@runtime_checkable
class Generates(Protocol):
    """A learner that can generate inputs of the classes it has learned."""

    def generate(self, ids: Tensor, address: Address) -> Tensor:
        """Generate inputs [S, n, ...], scaled for the networks, of the given class ids [S, n] from memory alone."""
        ...


def generator_of(learner: object) -> Generates:
    """The learner, if it can generate inputs; raises an error otherwise."""
    if not isinstance(learner, Generates):
        raise InputError(f"{getattr(learner, 'name', 'this learner')} cannot generate samples; PRER and DGR can")
    return learner


@runtime_checkable
class Recognises(Protocol):
    """A learner that can predict without being told the task."""

    def recognise(self, x: Tensor) -> Tensor:
        """Scores of all class ids [S, B, C] for inputs [S, B, ...] whose task is unknown; the largest is predicted."""
        ...
