"""Classification by likelihood: the class under which an embedding is most likely.

The log-likelihoods are used as they are. Subtracting the mean log-likelihood of each class was tried: it helps only
where the head is better anyway, and loses many points elsewhere (`benchmarks/recentring.py`).
"""

# S seeds, B batch, K outputs

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

from prer.densities.base import Density


def likelihoods(density: Density, z: Tensor, outputs: Mapping[int, int]) -> Tensor:
    """Log-likelihood of embeddings [S, B, D] for each output [S, B, K], given the output of each class id.

    An output with several ids, since its class came again, has the mixture of their densities.
    """
    ids = list(outputs)
    each, weights = density.log_probs(z, ids), density.counts[:, ids].log().unsqueeze(1)
    found = []
    for output in range(max(outputs.values()) + 1):
        own = [place for place, i in enumerate(ids) if outputs[i] == output]
        found.append((each[..., own] + weights[..., own].log_softmax(-1)).logsumexp(-1))
    return torch.stack(found, dim=-1)
