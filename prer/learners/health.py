"""Health checks of a run: how good PRER's samples of each class are, and when to stop."""

# S seeds, n samples, D embedding

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from prer.errors import RunError
from prer.learners.encoding import is_computed
from prer.nn.computed import Inverse
from prer.streams.task import Task

if TYPE_CHECKING:
    from prer.learners.prer import PRER

MOST_OUTSIDE = 0.95  # share of a seed's pseudo-samples off the data; a barely trained flow may have half of them there
MOST_OLD = 20  # old classes checked after a task, so that a lesson takes as long with many classes as with few
SAMPLES = 200  # samples of each class
CLASSES_AT_ONCE = 10  # classes checked in one batch


def report(learner: PRER) -> None:
    """Report the quality of the samples of every class as events."""
    for figures in of_classes(learner):
        learner.loop_.observe(figures)


@torch.no_grad()
def of_classes(learner: PRER) -> Iterator[dict[str, Any]]:
    """Yield the quality of the samples of every class after a task; the future accuracy of its task depends on it.

    With very many classes, only the newest and a random choice of the others are checked: long streams stay fast.
    """
    now, old = len(learner.tasks_) - 1, learner.tasks_[-1].start
    address = learner.address_ / now / "health"
    looked_at = sorted({*address.permutation(old)[0, :MOST_OLD].tolist(), *learner.tasks_[-1]})
    by_density = learner.answer == "density"  # otherwise by the head alone, whose time does not grow with the classes
    task_of = [task for task, classes in enumerate(learner.tasks_) for _ in classes]
    outputs = [output for of_task in learner.outputs_ for output in of_task]
    for first in range(0, len(looked_at), CLASSES_AT_ONCE):
        classes = looked_at[first : first + CLASSES_AT_ONCE]
        y = torch.tensor(classes, device=address.device).repeat_interleave(SAMPLES).expand(len(address.seeds), -1)
        z = learner.density_.sample(y, address / first, learner.temperature)
        x = learner.decoder_(z)
        again = learner.encoder_(x)
        each = {
            "reconstruction": (x - learner.decoder_(again)).square().flatten(2).sum(-1),
            "distance": learner.distance_between(z, again),
            "nll": -learner.density_.log_prob(again, y),
        }
        figures = {name: values.unflatten(1, (-1, SAMPLES)).mean(2) for name, values in each.items()}
        for i, (c, *of_class) in enumerate(zip(classes, *(t.split(SAMPLES, 1) for t in (z, again)), strict=True)):
            head = learner.head_of_[task_of[c]]
            found = [
                (learner.scores_of(z, head) if by_density else learner.heads_[head](z)).argmax(-1) for z in of_class
            ]
            agreement = [(output == outputs[c]).float().mean(1).tolist() for output in found]
            event = {"event": "health", "task": now, "class": learner.labels_[c]}
            event |= dict(zip(("agreement", "agreement_decoded"), agreement, strict=True))
            event |= {"replayed": "embeddings"} if is_computed(learner) else {}
            yield event | {name: values[:, i].tolist() for name, values in figures.items()}


def check_samples(learner: PRER, outside: Tensor, y_hat: Tensor) -> None:
    """Raise an error if most pseudo-samples [S, n] of a seed are off the data, even after repeated sampling."""
    share, seed = outside.float().mean(1).max(0)
    if share > MOST_OUTSIDE:
        worst = learner.labels_[int(y_hat[seed][outside[seed]].mode().values)]
        raise RunError(
            f"the samples of the past have exploded in task {len(learner.tasks_)}: {float(share):.0%} of those of seed "
            f"{learner.address_.seeds[seed]} are far off the data or not finite, most of all of class {worst!r}; "
            f"try a lower {learner.density_rate}, or more epochs"
        )


def check_embeddings(learner: PRER, z: Tensor, y: Tensor, task: Task, rows: Tensor) -> None:
    """Raise an error if different samples of a class have the same embedding [S, n, D]: no density can learn that."""
    if isinstance(learner.decoder_, Inverse):  # nothing was trained; such samples differ hardly more than by rounding
        return
    for c in learner.tasks_[-1]:
        for seed, (of_seed, at) in enumerate(zip(z, y == c, strict=True)):
            of_class = of_seed[at]
            if len(of_class) > 1 and of_class.std(0).max() <= 1e-7 * (1 + of_class.abs().max()):
                x = task.samples(rows[seed : seed + 1, at])[0][0]
                if (x != x[0]).any():
                    raise RunError(
                        f"class {learner.labels_[c]!r} has collapsed: after phase 'autoencoder' of task "
                        f"{len(learner.tasks_)} all its samples have the same embedding (seed "
                        f"{learner.address_.seeds[seed]}); try a lower learner.lr_autoencoder or learner.sparsity, or "
                        "wider networks"
                    )
