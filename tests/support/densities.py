"""Untrained flows and Gaussians, a reference flow made by zuko, and data of a known density."""

import functools
import math

import torch
from torch.distributions import AffineTransform, Categorical, MixtureSameFamily, MultivariateNormal, Normal
from zuko.distributions import NormalizingFlow
from zuko.transforms import ComposedTransform, CouplingTransform, DependentTransform, PermutationTransform

from prer.address import Address
from prer.densities.flow import Flow
from prer.densities.gaussian import Gaussian
from prer.nn.stacked import stack

CLASSES = 3
PAPER = {"norm": "running", "condition": "first", "one_hot": True, "class_prior": False, "permutation": "random"}


def seeds(n):
    return Address(tuple(range(n)))


def assert_close(actual, expected, tolerance=1e-9):
    torch.testing.assert_close(actual, expected, atol=tolerance, rtol=tolerance, check_dtype=False)


# -- densities ---------------------------------------------------------------------------------------------------------


def new(dimension, n=2, classes=CLASSES, **options) -> Flow:
    """A flow that has seen no data."""
    flow = stack(lambda: Flow(dimension, **options), seeds(n) / "flow").eval()
    flow.add(torch.full((classes,), 100), seeds(n))
    return flow


@torch.no_grad()
def rough(*arguments, **options) -> Flow:
    """An untrained flow that is far from the identity: no parameter and no statistic is trivial."""
    flow = new(*arguments, **{"blocks": 3} | options).double()
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


def gaussian(dimension=4, n=2, dtype=torch.float64):
    """Gaussians that are fitted to the data."""
    density = stack(lambda: Gaussian(dimension), seeds(n)).to(dtype)
    density.add(torch.full((CLASSES,), 100), seeds(n))
    z, y = draw(dimension, 600, seeds(n) / "data")
    density.start(z.to(dtype), y)
    return density


def zuko_flow(flow, seed, c) -> NormalizingFlow:
    """The density of one class in one seed, made of layers of zuko."""

    def affine(shift, scale):
        return DependentTransform(AffineTransform(shift, scale), 1)

    def coupling(level, k, a):
        h = a @ level.weight_in[seed, k] + level.bias_in[seed, k]
        if k < level.weight_condition.shape[1]:
            h = h + flow.table[seed, c] @ level.weight_condition[seed, k]
        s, shift = (h.relu() @ level.weight_out[seed, k] + level.bias_out[seed, k]).chunk(2, dim=-1)
        return affine(shift, torch.sigmoid((3 * torch.tanh(s / 3) if level.bounded else s) + 2))

    mean, std = flow.mean[seed], flow.std[seed]
    transforms, gone = [affine(-mean / std, 1 / std)], 0
    for level in flow.levels:
        blocks = []
        for k in range(level.order.shape[1]):
            mean, std = level.mean[seed, k], (level.var[seed, k] + 1e-3).sqrt()
            mask = torch.arange(level.order.shape[2]) < level.leaving
            blocks.append(affine(-mean / std, 1 / std))
            blocks.append(CouplingTransform(functools.partial(coupling, level, k), mask))
            blocks.append(PermutationTransform(level.order[seed, k]))
        inner = ComposedTransform(*blocks)
        transforms.append(CouplingTransform(lambda _, inner=inner: inner, torch.arange(flow.dimension) < gone))
        gone += level.leaving
    mean, raw = torch.zeros(2, flow.dimension).double()
    if flow.weight_prior is not None:
        mean, raw = (flow.table[seed, c] @ flow.weight_prior[seed]).chunk(2)
    return NormalizingFlow(ComposedTransform(*transforms), Normal(mean, (2 * torch.tanh(raw / 2)).exp()))


# -- the data: a known mixture -----------------------------------------------------------------------------------------


@functools.cache
def truth(dimension):
    """Means and factors of two correlated Gaussians for each class, far from the origin and not of unit scale."""
    address = Address(tuple(range(CLASSES))) / "truth" / dimension
    angle = 2 * math.pi * torch.arange(CLASSES) / CLASSES
    means = 10 + 1.5 * address.normal(2, dimension)
    means[..., :2] += 5 * torch.stack([angle.cos(), angle.sin()], dim=-1).unsqueeze(1)
    below = (address / "below").normal(2, dimension, dimension).tril(-1) / math.sqrt(dimension)
    return means, below + torch.diag_embed(0.5 + (address / "diagonal").uniform(2, dimension))


def true_density(dimension, c):
    """The density of a class of the mixture."""
    means, factors = truth(dimension)
    return MixtureSameFamily(Categorical(torch.tensor([0.3, 0.7])), MultivariateNormal(means[c], scale_tril=factors[c]))


def draw(dimension, n, address):
    """Samples of the mixture [S, n, D] and their classes [S, n]."""
    means, factors = truth(dimension)
    y = torch.arange(n).expand(len(address.seeds), -1) % CLASSES
    mode = ((address / "mode").uniform(n) > 0.3).long()
    z, noise = means[y, mode], (address / "noise").normal(n, dimension)
    for c in range(CLASSES):
        for m in range(2):
            z += torch.where(((y == c) & (mode == m)).unsqueeze(-1), noise @ factors[c, m].T, 0)
    return z, y
