import copy
import functools
import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.distributions import AffineTransform, Categorical, MixtureSameFamily, MultivariateNormal, Normal
from zuko.distributions import NormalizingFlow
from zuko.transforms import ComposedTransform, CouplingTransform, DependentTransform, PermutationTransform

from prer.address import Address
from prer.density import Density, Gaussian
from prer.errors import InputError
from prer.flow import Flow
from prer.networks import floats, stack

CLASSES = 3
PAPER = {"norm": "running", "condition": "first", "one_hot": True, "class_prior": False}
both_norms = pytest.mark.parametrize("norm", ["batch", "running"])


def seeds(n):
    return Address(tuple(range(n)))


def new(dimension, n=2, classes=CLASSES, **options) -> Flow:
    """A flow as it is before it has seen any data."""
    flow = stack(lambda: Flow(dimension, **options), seeds(n) / "flow").eval()
    flow.add(torch.full((classes,), 100), seeds(n))
    return flow


@torch.no_grad()
def rough(*arguments, **options) -> Flow:
    """A flow far from the identity without any training: every parameter and every statistic does something."""
    flow = new(*arguments, **options).double()
    address = seeds(len(flow.table)) / "rough"
    tensors = {**dict(flow.named_parameters()), **dict(flow.named_buffers())}
    for name, tensor in tensors.items():
        noise = (address / name).normal(*tensor.shape[1:]).to(tensor)
        last = name.split(".")[-1]
        if last in ("std", "var"):
            tensor.copy_(torch.exp(0.3 * noise))
        elif last in ("mean", "weight_out", "bias_out", "weight_prior"):
            tensor.copy_(0.3 * noise)
    return flow


def assert_close(actual, expected, tolerance=1e-9):
    torch.testing.assert_close(actual, expected, atol=tolerance, rtol=tolerance, check_dtype=False)


# -- the data: a mixture of which everything is known ----------------------------------------------------------------


@functools.cache
def truth(dimension):
    """For each class two Gaussians, correlated, far from the origin and of no unit scale: means and factors."""
    address = Address(tuple(range(CLASSES))) / "truth" / dimension
    angle = 2 * math.pi * torch.arange(CLASSES) / CLASSES
    means = 10 + 1.5 * address.normal(2, dimension)
    means[..., :2] += 5 * torch.stack([angle.cos(), angle.sin()], dim=-1).unsqueeze(1)
    below = (address / "below").normal(2, dimension, dimension).tril(-1) / math.sqrt(dimension)
    return means, below + torch.diag_embed(0.5 + (address / "diagonal").uniform(2, dimension))


def true_density(dimension, c):
    means, factors = truth(dimension)
    return MixtureSameFamily(Categorical(torch.tensor([0.3, 0.7])), MultivariateNormal(means[c], scale_tril=factors[c]))


def draw(dimension, n, address):
    """Embeddings of the truth [S, n, D] and their classes [S, n]."""
    means, factors = truth(dimension)
    y = torch.arange(n).expand(len(address.seeds), -1) % CLASSES
    mode = ((address / "mode").uniform(n) > 0.3).long()
    z, noise = means[y, mode], (address / "noise").normal(n, dimension)
    for c in range(CLASSES):
        for m in range(2):
            z += torch.where(((y == c) & (mode == m)).unsqueeze(-1), noise @ factors[c, m].T, 0)
    return z, y


@functools.cache
def trained(dimension, n=1, steps=300, batch=32, lr=1e-3, **options) -> Flow:
    """A flow after some training on the truth; whoever changes it takes a copy."""
    flow = new(dimension, n, **options)
    z, y = draw(dimension, 4096, seeds(n) / "training")
    flow.start(z, y)
    flow.train()
    parameters = [p for p in flow.parameters() if p.requires_grad]
    optimiser = torch.optim.Adam(parameters, lr, fused=True)
    for step in range(steps):
        rows = slice(step * batch % 4096, step * batch % 4096 + batch)
        optimiser.zero_grad()
        (-flow.log_prob(z[:, rows], y[:, rows])).mean(1).sum().backward()
        optimiser.step()
    return flow.eval()
