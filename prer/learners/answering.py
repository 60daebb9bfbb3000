"""What PRER predicts: by its head, by the likelihood of its density, or by the product of both."""

# S seeds, B batch, D embedding, K outputs

from __future__ import annotations

from typing import TYPE_CHECKING

from torch import Tensor

from prer.densities.likelihood import likelihoods
from prer.learners.labelling import outputs_of

if TYPE_CHECKING:
    from prer.learners.prer import PRER

# A likelihood counts as if it were that of so many numbers, of images and of vectors: those of an embedding are not
# independent.
CERTAINTY, OF_VECTORS = 20, 40


def answer_of(learner: PRER, z: Tensor, head: int) -> Tensor:
    """Scores of a head's outputs [S, B, K] for embeddings; before the first task is learned, those of the head."""
    if learner.answer == "head" or not learner.density_.counts.shape[1]:
        return learner.heads_[head](z)
    found = likelihoods(learner.density_, z, outputs_of(learner, head))
    if learner.answer == "density":
        return found
    certainty = OF_VECTORS if len(learner.shape_) == 1 else CERTAINTY
    return learner.heads_[head](z).log_softmax(-1) + (certainty / learner.dimension_) * found
