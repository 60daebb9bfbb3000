"""The conditional normalizing flow over embeddings: a RealNVP with two levels, conditioned in every coupling."""

# S seeds, B batch, D embedding, K blocks, C classes, a and b the two halves of a coupling

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal, cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from prer.address import Address
from prer.densities.base import Density, TrainedDensity, look_up
from prer.errors import InputError
from prer.kernels.blocks import Blocks
from prer.kernels.registry import kernels
from prer.nn.stacked import stack  # noqa: F401, the example uses it
from prer.settings import setting

Norm = Literal["batch", "running"]
Condition = Literal["every", "first", "last"]
Permutation = Literal["swapping", "random"]


@dataclass(frozen=True, kw_only=True)
class FlowSettings(TrainedDensity):
    """The settings of a flow that users turn; `Flow` has more, which only the paper's ablation turns."""

    name = "flow"
    has_kernels = True

    levels: int = setting(2, "levels of the flow", low=1)
    blocks: int = setting(10, "blocks in each level", low=1)
    condition: Condition = setting(
        "every", "couplings that see the class: every one, or the paper's first (the last, if it counts from the noise)"
    )
    condition_size: int = setting(16, "length of a class's vector", low=1)
    class_prior: bool = setting(True, "the prior depends on the class; the paper's does not")

    def build(self, dimension: int, **architecture: Any) -> Flow:
        """The flow of one seed; `architecture` has further arguments of `Flow`."""
        names = ("levels", "blocks", "condition", "condition_size", "class_prior")
        return Flow(dimension, **{name: getattr(self, name) for name in names}, **architecture)


class Flow(Density):
    """The paper's flow: levels of blocks, half of the dimensions split off after each level, a standard normal prior.

    Args:
        dimension: size of the embedding.
        levels: number of levels; a level is built only where at least two dimensions remain.
        blocks: number of blocks in each level; a block is a norm, a coupling and a fixed permutation.
        norm: "batch" uses a batch's own statistics in training, "running" the paper's running estimates.
        condition: which couplings see the class: "every" one, or only the paper's first. Its text does not say from
            which side it counts: "first" is the coupling on the data side, "last" the one on the noise side.
        condition_size: the length of a class's learned vector.
        one_hot: the class vector is one-hot, of that length, and not learned, as in the paper.
        class_prior: the prior's mean and scale depend on the class, by a linear map of its vector; otherwise the prior
            is the paper's standard normal. Not in the paper; with it, few blocks separate the classes far better.
        bounded: keep the scale within [0.27, 0.99]; unbounded it can go to 0, and sampling divides by it.
        permutation: "swapping" uses random orders, of which every other one swaps the halves. "random" is the paper's:
            with few blocks it leaves some dimensions untransformed, which then do not depend on the class.

    Example:
        >>> address = Address(seeds=(0, 1))
        >>> flow = stack(lambda: Flow(6, levels=2, blocks=3), address).eval()
        >>> flow.add(torch.tensor([10, 10]), address)
        >>> z = flow.sample(torch.tensor([[0, 1, 1], [1, 0, 0]]), address)
        >>> z.shape, flow.log_prob(z, torch.zeros(2, 3, dtype=torch.long)).shape
        (torch.Size([2, 3, 6]), torch.Size([2, 3]))
    """

    mean: Tensor
    std: Tensor
    table: Tensor  # [S, C, condition_size], one learned vector for each class
    started: Tensor

    def __init__(
        self,
        dimension: int,
        *,
        levels: int = 2,
        blocks: int = 10,
        norm: Norm = "batch",
        condition: Condition = "every",
        condition_size: int = 16,
        one_hot: bool = False,
        class_prior: bool = True,
        bounded: bool = True,
        permutation: Permutation = "swapping",
        momentum: float = 0.9,
    ) -> None:
        super().__init__(dimension)
        self.register_buffer("mean", torch.zeros(dimension))
        self.register_buffer("std", torch.ones(dimension))
        self.table = nn.Parameter(torch.zeros(0, condition_size), requires_grad=not one_hot)
        self.one_hot = one_hot
        self.weight_prior = nn.Parameter(torch.zeros(condition_size, 2 * dimension)) if class_prior else None
        self.register_buffer("started", torch.tensor(False))
        self.parts = nn.ModuleList()
        sizes = [dimension]
        while len(sizes) < levels and sizes[-1] - sizes[-1] // 2 >= 2:
            sizes.append(sizes[-1] - sizes[-1] // 2)
        seeing = {"every": range(len(sizes)), "first": [0], "last": [len(sizes) - 1]}[condition]  # levels
        for level, size in enumerate(sizes):
            conditioned = (blocks if condition == "every" else 1) if level in seeing else 0
            orders = torch.stack([_permutation(size, level, block, permutation) for block in range(blocks)])
            last = condition == "last"
            self.parts.append(Level(orders, conditioned, condition_size, norm, bounded, momentum, last))

    @property
    def levels(self) -> list[Level]:
        """The levels, from the data side to the noise side."""
        return cast(list[Level], list(self.parts))

    def add(self, counts: Tensor, address: Address) -> None:
        """Add one vector for each new class."""
        S, old, size = self.table.shape
        new = range(old, old + len(counts))
        if self.one_hot:
            if new.stop > size:
                raise InputError(f"{new.stop} classes need learner.density.condition_size of as many, it is {size}")
            rows = torch.eye(size)[new.start : new.stop].expand(S, -1, -1)
        else:
            rows = torch.stack([(address / "class" / c).normal(size) for c in new], dim=1)
        table = torch.cat([self.table.detach(), rows.to(self.table)], dim=1)
        self.table = nn.Parameter(table, requires_grad=not self.one_hot)
        super().add(counts, address)

    @torch.no_grad()
    def start(self, z: Tensor, condition: Tensor) -> None:
        """Set the standardisation from these embeddings; a new flow also initialises its norms on them."""
        std, mean = torch.std_mean(z, dim=1)
        self.mean.copy_(mean)  # in place: a captured step refers to these tensors
        self.std.copy_(std.clamp_min(1e-3 * std.mean(1, keepdim=True) + 1e-6))  # keeps dead dimensions invertible
        if not self.started.any():
            u, v = self._standardised(z).mT, self._vectors(condition)
            for level in self.levels:
                u, _ = level(u, v, first=True)
                u = u[:, level.leaving :]
            self.started.fill_(True)

    def forward(self, z: Tensor, condition: Tensor) -> tuple[Tensor, Tensor]:
        """Normalise: u = T^-1(z) [S, B, D] and the log-determinant of its Jacobian [S, B]."""
        u, log_det = self._normalised(z, self._vectors(condition))
        return u.mT, log_det

    def inverse(self, u: Tensor, condition: Tensor) -> Tensor:
        """Generate: z = T(u), with the running statistics."""
        return self._generated(u.mT, self._vectors(condition))

    def log_prob(self, z: Tensor, condition: Tensor) -> Tensor:
        """Log-prior of u plus the log-determinant (Eq. 4)."""
        v = self._vectors(condition)
        u, log_det = self._normalised(z, v)
        if self.weight_prior is not None:
            ours = kernels("prior", u, v, self.weight_prior) if self.training else None
            if ours:
                return log_det + ours.Prior.apply(u, v, self.weight_prior)
            mean, log_std = self._prior(self.weight_prior, v)
            u = (u - mean) * (-log_std).exp()
            log_det = log_det - log_std.sum(1)
        return log_det - 0.5 * (u.square().sum(1) + self.dimension * math.log(2 * math.pi))

    def _draw(self, condition: Tensor, noise: Tensor) -> Tensor:
        u, v = noise.mT, self._vectors(condition)
        if self.weight_prior is not None:
            mean, log_std = self._prior(self.weight_prior, v)
            u = mean + log_std.exp() * u
        return self._generated(u, v)

    # Internally, features come before samples, [S, D, B]; `blocks.py` explains why.

    def _vectors(self, condition: Tensor) -> Tensor:
        """Vector of each sample's class [S, V, B]."""
        return look_up(self.table, condition).mT.contiguous()

    def _normalised(self, z: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        u = self._standardised(z).mT
        log_det = -self.std.log().sum(-1, keepdim=True)
        *others, last = self.levels
        left = []
        for level in others:
            u, change = level(u, v)
            log_det = log_det + change
            out, u = u.split((level.leaving, level.staying), dim=1)
            left.append(out)
        u, change = last(u, v)
        return torch.cat([*left, u], dim=1), log_det + change

    def _generated(self, u: Tensor, v: Tensor) -> Tensor:
        *left, u = u.split([*(level.leaving for level in self.levels), self.levels[-1].staying], dim=1)
        for level, part in zip(reversed(self.levels), reversed(left), strict=True):
            u = level.inverse(torch.cat([part, u], dim=1), v)
        mean, std = self._centre()
        return torch.addcmul(mean, u.mT, std)

    def _prior(self, weight: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        """Mean and log standard deviation of u for each sample's class, each [S, D, B]."""
        mean, log_std = torch.bmm(weight.mT, v).chunk(2, dim=1)
        return mean, 2 * torch.tanh(log_std / 2)

    def _centre(self) -> tuple[Tensor, Tensor]:
        return self.mean.unsqueeze(1), self.std.unsqueeze(1)


class Level(nn.Module):
    """Blocks over one set of dimensions, their parameters stacked: norm, coupling, permutation.

    The coupling network is (a, class vector v) -> size -> (scale, shift) of b.
    """

    mean: Tensor
    var: Tensor
    order: Tensor
    back: Tensor

    def __init__(
        self,
        orders: Tensor,
        conditioned: int,
        condition_size: int,
        norm: Norm,
        bounded: bool,
        momentum: float,
        last: bool = False,
    ) -> None:
        super().__init__()
        blocks, size = orders.shape
        self.last = last  # the conditioned blocks are the last ones, not the first ones
        self.leaving, self.staying = size // 2, size - size // 2
        self.norm, self.bounded, self.momentum, self.eps = norm, bounded, momentum, 1e-3
        a, b = self.leaving, self.staying
        self.weight_in = nn.Parameter(_uniform(blocks, a, size, fan_in=a))
        self.bias_in = nn.Parameter(_uniform(blocks, size, fan_in=a))
        self.weight_condition = nn.Parameter(_uniform(conditioned, condition_size, size, fan_in=condition_size))
        self.weight_out = nn.Parameter(torch.zeros(blocks, size, 2 * b))  # every coupling begins near the identity
        self.bias_out = nn.Parameter(torch.zeros(blocks, 2 * b))
        self.register_buffer("mean", torch.zeros(blocks, size))
        self.register_buffer("var", torch.ones(blocks, size))
        self.register_buffer("order", orders)
        self.register_buffer("back", orders.argsort(1))

    def forward(self, u: Tensor, v: Tensor, first: bool = False) -> tuple[Tensor, Tensor]:
        """Normalise: u on the noise side of the level [S, D, B], and the log-determinant [S, B]."""
        if self.training and self.norm == "batch" and not first:
            return self._trained(u, v)
        log_det = 0.0
        for k, block in enumerate(self._blocks(v)):
            mean, var = self._statistics(k, u, first)
            u = (u - mean.unsqueeze(2)) * (var + self.eps).rsqrt().unsqueeze(2)
            a, b = u.split((self.leaving, self.staying), dim=1)
            scale, shift = self._coupling(a, *block)
            u = torch.cat([a, torch.addcmul(shift, b, scale.sigmoid())], dim=1).index_select(1, self.order[0, k])
            log_det = log_det + F.logsigmoid(scale).sum(1) - 0.5 * (var + self.eps).log().sum(1, keepdim=True)
        return u, cast(Tensor, log_det)

    def _trained(self, u: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        """The same as `forward`, with batch statistics, by a fused function."""
        layers = self.weight_in, self._weight_condition(), self.bias_in, self.weight_out, self.bias_out
        constants = self.order[0], self.back[0], self.bounded, self.eps
        ours = kernels("flow", u, v, *layers)
        through = ours.FusedBlocks if ours and u.shape[1] <= ours.WIDEST else Blocks
        u, log_det, mean, var = through.apply(u, v, *layers, *constants)
        self.mean.lerp_(mean, 1 - self.momentum)
        self.var.lerp_(var, 1 - self.momentum)
        return u, log_det

    def inverse(self, u: Tensor, v: Tensor) -> Tensor:
        """Generate: u on the data side of the level, with running statistics."""
        for k, block in reversed(list(enumerate(self._blocks(v)))):
            u = u.index_select(1, self.back[0, k])
            a, b = u.split((self.leaving, self.staying), dim=1)
            scale, shift = self._coupling(a, *block)
            u = torch.cat([a, (b - shift) / scale.sigmoid()], dim=1)
            u = u * (self.var[:, k] + self.eps).sqrt().unsqueeze(2) + self.mean[:, k].unsqueeze(2)
        return u

    def _blocks(self, v: Tensor) -> list[tuple[Tensor, ...]]:
        """For each block: its first layer's weights, the bias plus condition of that layer, and its last layer."""
        added = self._weight_condition().mT @ v.unsqueeze(1) + self.bias_in.unsqueeze(3)
        layers = self.weight_in.mT, added, self.weight_out.mT, self.bias_out.unsqueeze(3)
        return list(zip(*(t.unbind(1) for t in layers), strict=True))

    def _weight_condition(self) -> Tensor:
        """Condition weights of every block [S, K, V, D]; zeros where a block does not see the class."""
        blind = self.bias_in.shape[1] - self.weight_condition.shape[1]
        missing = (blind, 0) if self.last else (0, blind)
        return F.pad(self.weight_condition, (0, 0, 0, 0, *missing)) if blind else self.weight_condition

    def _coupling(self, a: Tensor, w_in: Tensor, plus: Tensor, w_out: Tensor, bias: Tensor) -> tuple[Tensor, Tensor]:
        """Scale of b, before the sigmoid, and shift of b."""
        h = torch.relu(torch.baddbmm(plus, w_in, a))
        s, shift = torch.baddbmm(bias, w_out, h).chunk(2, dim=1)
        return (3 * torch.tanh(s / 3) if self.bounded else s) + 2, shift

    def _statistics(self, k: int, u: Tensor, first: bool) -> tuple[Tensor, Tensor]:
        """Mean and variance for block k's norm; updates the running estimates in training and on the first batch."""
        if not (self.training or first):
            return self.mean[:, k], self.var[:, k]
        var, mean = torch.var_mean(u, dim=2)
        with torch.no_grad():
            keep = 0.0 if first else self.momentum
            self.mean[:, k].lerp_(mean, 1 - keep)
            self.var[:, k].lerp_(var, 1 - keep)
        return (self.mean[:, k].clone(), self.var[:, k].clone()) if self.norm == "running" else (mean, var)


def _permutation(size: int, level: int, block: int, kind: Permutation) -> Tensor:
    """A fixed random order; a swapping one lets the next block transform the dimensions that this one left unchanged.

    It is the same for every seed: a permutation is part of the architecture, and one index serves all seeds.
    """
    order = (Address((0,)) / "permutation" / level / block).permutation(size)[0]
    if block % 2 or kind == "random":
        return order
    alone = order < size // 2
    return torch.cat([order[~alone], order[alone]])


def _uniform(*shape: int, fan_in: int) -> Tensor:
    """The usual initial weights of a fully connected layer."""
    return torch.empty(shape).uniform_(-1, 1) / math.sqrt(fan_in)
