"""The encoder of a learner: a network that is trained, or one that is computed from the first task and then rests."""

# S seeds, n samples, D embedding

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from torch import nn

from prer.nn.computed import Inverse, Patches, Projection
from prer.nn.networks import Decoder, Encoder
from prer.nn.stacked import stack
from prer.presets.auto import embedding_of
from prer.streams.task import Task

if TYPE_CHECKING:
    from prer.learners.base import Learner

MANY = 100  # numbers; shorter vectors are taken for embeddings only if they are known to be features
MOST_SAMPLES = 5000  # of the first task, from which an encoder is computed


def is_computed(learner: Learner) -> bool:
    """Whether the encoder is computed from the first task, and never trained."""
    return learner.encoder in ("patches", "identity", "random")


def dimension_of(learner: Learner) -> int:
    """Size of the embedding, for samples of the learner's shape."""
    size = embedding_of(learner.embedding, learner.shape_)
    return min(size, math.prod(learner.shape_)) if is_computed(learner) and not _of_patches(learner) else size


def encoder_of(learner: Learner) -> Any:
    """A new encoder for all seeds."""

    def build() -> nn.Module:
        if not is_computed(learner):
            return learner._build(Encoder, normalise=learner.normalise)()
        if _of_patches(learner):
            return Patches(learner.shape_, learner.dimension_)
        return Projection(math.prod(learner.shape_), learner.dimension_, False, learner.encoder == "random")

    return stack(build, learner.address_ / "encoder")


def decoder_of(learner: Learner) -> Any:
    """A new decoder for all seeds: a network, or the inverse of an encoder that has one."""
    if isinstance(learner.encoder_, Projection):
        return Inverse(learner.encoder_, learner.shape_).eval()
    return stack(learner._build(Decoder), learner.address_ / "decoder")


def about_encoder(learner: Learner, shape: Sequence[int], features: str = "") -> str:
    """How vectors of this shape become embeddings, in a sentence; empty for images, and for a network that is trained.

    Args:
        learner: the learner.
        shape: shape of a sample.
        features: name of the feature extractor, if there is one.
    """
    if len(shape) != 1 or not is_computed(learner):
        return ""
    size = embedding_of(learner.embedding, shape)
    how = "random directions" if learner.encoder == "random" else "principal components of the first lesson"
    to = f" and projected on {size} {how}" if size < shape[0] else ""
    what = f"{shape[0]:,} numbers" + (f" (features of {features})" if features else "")
    return f"A sample is a vector of {what}; it is centred and scaled{to}, and no encoder is trained."


def begin(learner: Learner, task: Task) -> None:
    """Compute what rests on the first task: statistics of inputs, and an encoder that is not trained."""
    rows, of_network = task.train_rows(learner.address_.seeds), not is_computed(learner)
    vectors = len(learner.shape_) == 1
    if vectors or (learner.normalise and of_network):
        samples = (task.samples(of_seed)[0] for of_seed in rows)  # one seed at a time: there may be many
        if vectors:
            fewest = 1 if task.reading.extractor else MANY if task.scenario == "class" else None
            learner.inputs_.start(samples, fewest)
        else:
            learner.encoder_.layers[0].start(samples)
    if isinstance(learner.encoder_, (Patches, Projection)):
        address = learner.address_ / "encoder"
        chosen = rows.gather(1, (address / "samples").permutation(rows.shape[1])[:, :MOST_SAMPLES])
        learner.encoder_.start(learner.inputs_(task.samples(chosen)[0]), address)


def _of_patches(learner: Learner) -> bool:
    """Whether images are embedded by their patches; vectors have none."""
    return learner.encoder == "patches" and len(learner.shape_) == 3
