"""Clusters of vectors by k-means."""

# n samples, D numbers of a sample, K clusters

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

AT_ONCE = 20_000


def k_means(x: Tensor, centres: Tensor, rounds: int = 12) -> Tensor:
    """Centres of clusters [K, D] of samples [n, D], given the first ones; an empty cluster keeps its centre."""
    for _ in range(rounds):
        counts, sums = torch.zeros_like(centres[:, :1]), torch.zeros_like(centres)
        for part in x.split(AT_ONCE):
            member = F.one_hot(nearest(part, centres), len(centres)).to(x)  # sums by index have no fixed order on GPUs
            counts, sums = counts + member.sum(0).unsqueeze(1), sums + member.mT @ part
        centres = torch.where(counts > 0, sums / counts.clamp_min(1), centres)
    return centres


def nearest(x: Tensor, centres: Tensor) -> Tensor:
    """Index of the nearest centre of each sample [n]."""
    half = centres.square().sum(1) / 2
    return torch.cat([(part @ centres.mT - half).argmax(1) for part in x.split(AT_ONCE)])
