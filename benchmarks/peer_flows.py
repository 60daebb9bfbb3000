"""The same flow built from the layers of normflows and of nflows, which are imported on use."""

# B batch, D embedding, a and b the two halves of a coupling

from __future__ import annotations

from typing import Any

import torch
from flow_steps import BLOCKS, CLASSES, CONDITION, LEVELS, PeerFlow
from torch import Tensor, nn


class _Coupling(nn.Module):
    """The blocks of a level from normflows' layers, from the data side to the noise side."""

    def __init__(self, size: int) -> None:
        import normflows as nf

        super().__init__()
        a, b = size // 2, size - size // 2
        self.sizes = a, b
        self.norms = nn.ModuleList(nf.flows.BatchNorm(1e-3) for _ in range(BLOCKS))
        nets = (nf.nets.MLP([a + CONDITION, size, 2 * b], init_zeros=True) for _ in range(BLOCKS))
        self.couplings = nn.ModuleList(nf.flows.AffineCoupling(net, scale_map="sigmoid_inv") for net in nets)
        self.orders = nn.ModuleList(nf.flows.Permute(size) for _ in range(BLOCKS))

    def forward(self, u: Tensor, condition: Tensor) -> tuple[Tensor, Tensor]:
        """Forward pass towards the noise; the layers take no condition, so it is concatenated to the unchanged half."""
        total = torch.zeros(len(u), device=u.device)
        for norm, coupling, order in zip(self.norms, self.couplings, self.orders, strict=True):
            u, first = norm(u)
            a, b = u.split(self.sizes, dim=1)
            (_, b), second = coupling([torch.cat([a, condition], dim=1), b])
            u, third = order(torch.cat([a, b], dim=1))
            total = total + first + second + third
        return u, total


def normflows(dimension: int, device: str = "cpu") -> PeerFlow:
    """The flow from normflows' layers.

    Differences from ours: its batch norm has no running statistics and no inverse, so the flow cannot be sampled; the
    scale of a coupling is not bounded; the prior has a mean and a scale for each class; data is not standardised first.
    """
    import normflows as nf

    sizes = [dimension // 2**level for level in range(LEVELS)]
    levels = nn.ModuleList(_Coupling(size) for size in sizes).to(device)
    table = nn.Embedding(CLASSES, CONDITION, device=device)
    prior = nf.distributions.ClassCondDiagGaussian(dimension, CLASSES).to(device)

    def loss(z: Tensor, classes: Tensor) -> Tensor:
        condition, left, total = table(classes), [], torch.zeros(len(z), device=z.device)
        for number, level in enumerate(levels):
            z, change = level(z, condition)
            total = total + change
            if number < LEVELS - 1:
                out, z = z.split([z.shape[1] // 2, z.shape[1] - z.shape[1] // 2], dim=1)
                left.append(out)
        return -(prior.log_prob(torch.cat([*left, z], dim=1), classes) + total).mean()

    parameters = [p for module in (levels, table, prior) for p in module.parameters()]
    return PeerFlow(parameters, loss, None)


class _Conditioned(nn.Module):
    """nflows' MLP, which takes no context, with the context concatenated to its input."""

    def __init__(self, inputs: int, outputs: int, hidden: int) -> None:
        from nflows.nn.nets import MLP

        super().__init__()
        self.net = MLP((inputs + CONDITION,), (outputs,), [hidden])

    def forward(self, x: Tensor, context: Tensor) -> Tensor:
        """Scale and shift."""
        return self.net(torch.cat([x, context], dim=1))


def nflows(dimension: int, device: str = "cpu") -> PeerFlow:
    """The flow from nflows' layers.

    Differences from ours: its batch norm also learns a scale and a shift; the scale of a coupling is not bounded; data is
    not standardised first; outliers are not resampled.
    """
    from nflows.distributions.normal import ConditionalDiagonalNormal
    from nflows.flows import Flow
    from nflows.transforms import MultiscaleCompositeTransform

    levels, size = MultiscaleCompositeTransform(LEVELS), dimension
    for _ in range(LEVELS):
        levels.add_transform(_blocks(size), (size,))
        size -= size // 2
    prior = ConditionalDiagonalNormal([dimension], nn.Linear(CONDITION, 2 * dimension, bias=False))
    flow = Flow(levels, prior, nn.Embedding(CLASSES, CONDITION)).to(device)

    def loss(z: Tensor, classes: Tensor) -> Tensor:
        return -flow.train().log_prob(z, classes).mean()

    return PeerFlow(list(flow.parameters()), loss, lambda classes: flow.eval().sample(1, classes))


def _blocks(size: int) -> Any:
    from nflows.transforms import AffineCouplingTransform, BatchNorm, CompositeTransform, RandomPermutation

    mask, layers = torch.arange(size) >= size // 2, []
    for _ in range(BLOCKS):
        coupling = AffineCouplingTransform(mask.int(), lambda inputs, outputs: _Conditioned(inputs, outputs, size))
        layers += [BatchNorm(size, eps=1e-3), coupling, RandomPermutation(size)]
    return CompositeTransform(layers)


FLOWS = {"normflows": normflows, "nflows": nflows}
