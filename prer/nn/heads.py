"""The head of a task, and all heads as one module, at a cost that hardly grows with their number."""

# S seeds, T heads, B batch, D embedding, K outputs of the widest head

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from prer.address import Address
from prer.nn.stacked import Linear

WIDE = (256, 256)  # hidden layers of a head that grows: it tells all classes apart, not two or three
FEW = 16  # heads up to which computing all and selecting one is faster than gathering weights for each sample


class Head(nn.Module):
    """S_t: three fully connected layers, each halving its input, the last one giving the task's classes.

    The caller passes the noise for dropout, since all randomness has an address; without noise there is no dropout.
    A head with other `hidden` widths does not halve its input.
    """

    def __init__(self, embedding: int, classes: int, dropout: float, hidden: tuple[int, int] | None = None) -> None:
        super().__init__()
        self.hidden = first, second = hidden or self.widths(embedding)
        self.dropout, self.classes = dropout, classes
        self.layers = nn.ModuleList([Linear(embedding, first), Linear(first, second), Linear(second, classes)])

    def linears(self) -> list[Linear]:
        """The three layers."""
        return [layer for layer in self.layers if isinstance(layer, Linear)]

    @staticmethod
    def widths(embedding: int) -> tuple[int, int]:
        """Widths of the two hidden layers: at least eight, since fewer ReLUs may all be dead from the start."""
        return max(embedding // 2, 8), max(embedding // 4, 8)

    def forward(self, z: Tensor, noise: Tensor | None = None) -> Tensor:
        """Logits [..., K] of embeddings [..., D]; `noise` is uniform and as wide as both hidden layers together."""
        first, second, last = self.layers
        a, b = (None, None) if noise is None else noise.split((first.out_features, second.out_features), dim=-1)
        h = dropped(torch.relu(first(z)), a, self.dropout)
        return last(dropped(torch.relu(second(h)), b, self.dropout))


def grow(heads: nn.ModuleList, number: int, new: Head) -> None:
    """Add a new head to the heads; if there is one with this number, it gets the outputs that only the new one has."""
    if number == len(heads):
        heads.append(new)
        return
    head = cast(Head, heads[number])
    last, source = head.linears()[-1], new.linears()[-1]
    for name in ("weight", "bias"):
        old = getattr(last, name).detach()
        setattr(last, name, nn.Parameter(torch.cat([old, getattr(source, name).detach()[:, old.shape[1] :]], dim=1)))
    last.out_features = head.classes = new.classes


def dropped(h: Tensor, noise: Tensor | None, share: float) -> Tensor:
    """Inverted dropout: zero where the uniform noise is below `share`, the rest scaled up; without noise h itself."""
    return h if noise is None else h * (noise >= share) / (1 - share)


def dropout_noise(head: Head, batches: Sequence[int], address: Address) -> Tensor:
    """Uniform noise for the dropout of a head, for batches of this shape (steps, B) [S, steps, B, width]."""
    return (address / "dropout").uniform(*batches, sum(head.hidden))


class Heads(nn.Module):
    """The layers of all heads, stacked. Trained in place of the heads, and copied back to them by `give_back`."""

    there: Tensor

    def __init__(self, heads: Sequence[Head]) -> None:
        super().__init__()
        self.heads = [head.linears() for head in heads]  # a plain list: their parameters are not trained here
        self.dropout = heads[0].dropout
        self.widths = [head.classes for head in heads]
        self.ragged = len(set(self.widths)) > 1  # whether heads differ in their number of outputs
        places = torch.arange(max(self.widths))
        self.register_buffer("there", places < torch.tensor(self.widths).unsqueeze(1))  # [T, K]
        self.weights = nn.ParameterList(self._stacked(layer, "weight") for layer in range(3))  # [S, T, out, in]
        self.biases = nn.ParameterList(self._stacked(layer, "bias") for layer in range(3))  # [S, T, out]
        self.to(self.weights[0].device)

    def _stacked(self, layer: int, name: str) -> nn.Parameter:
        tensors = [getattr(layers[layer], name).detach() for layers in self.heads]
        most = max(t.shape[1] for t in tensors)
        padded = [torch.cat([t, t.new_zeros(len(t), most - t.shape[1], *t.shape[2:])], dim=1) for t in tensors]
        return nn.Parameter(torch.stack(padded, dim=1))

    def forward(self, z: Tensor, head: Tensor, noise: Tensor | None = None) -> Tensor:
        """Logits [S, B, K] of embeddings [S, B, D], each by its head [S, B]; 0 where a head has no such output."""
        if len(self.heads) > FEW:
            return self._by_its_own(z, head, noise)
        every = self.every(z, noise)
        return every.gather(2, head[..., None, None].expand(-1, -1, 1, every.shape[3])).squeeze(2)

    def every(self, z: Tensor, noise: Tensor | None = None) -> Tensor:
        """Logits [S, B, T, K] of all heads for embeddings [S, B, D]; 0 where a head has no such output."""
        S, T = self.weights[0].shape[:2]
        h = z.unsqueeze(1).expand(-1, T, -1, -1)  # [S, T, B, D]
        for layer, drawn in enumerate((*self._parted(noise), None)):
            weight, bias = self.weights[layer].flatten(0, 1), self.biases[layer].flatten(0, 1)
            h = torch.baddbmm(bias.unsqueeze(1), h.flatten(0, 1), weight.mT).unflatten(0, (S, T))
            if layer < 2:
                h = dropped(torch.relu(h), None if drawn is None else drawn.unsqueeze(1), self.dropout)
        return h.transpose(1, 2)

    def of(self, head: int, z: Tensor, noise: Tensor | None = None) -> Tensor:
        """Logits of one head for all samples."""
        h = z
        for layer, drawn in enumerate((*self._parted(noise), None)):
            h = torch.baddbmm(self.biases[layer][:, head].unsqueeze(1), h, self.weights[layer][:, head].mT)
            h = dropped(torch.relu(h), drawn, self.dropout) if layer < 2 else h
        return h[..., : self.widths[head]]

    def _by_its_own(self, z: Tensor, head: Tensor, noise: Tensor | None) -> Tensor:
        """The same as `forward` at a cost independent of T: gathers the weights of each sample's head."""
        seeds = torch.arange(len(z), device=z.device).unsqueeze(1)
        h = z
        for layer, drawn in enumerate((*self._parted(noise), None)):
            weight, bias = self.weights[layer][seeds, head], self.biases[layer][seeds, head]
            h = torch.baddbmm(bias.flatten(0, 1).unsqueeze(2), weight.flatten(0, 1), h.flatten(0, 1).unsqueeze(2))
            h = h.view(*z.shape[:2], -1)
            h = dropped(torch.relu(h), drawn, self.dropout) if layer < 2 else h
        return h

    def _parted(self, noise: Tensor | None) -> tuple[Tensor | None, Tensor | None]:
        """Split the noise between the two hidden layers."""
        if noise is None:
            return None, None
        a, b = noise.split([self.weights[0].shape[2], self.weights[1].shape[2]], dim=-1)
        return a, b

    def masked(self, logits: Tensor, head: Tensor) -> Tensor:
        """Logits, with minus infinity where a head has no such output."""
        return logits.masked_fill(~self.there[head], -torch.inf) if self.ragged else logits

    @torch.no_grad()
    def give_back(self) -> None:
        """Copy the trained parameters back into the heads."""
        for t, layers in enumerate(self.heads):
            for i, layer in enumerate(layers):
                layer.weight.copy_(self.weights[i][:, t, : layer.weight.shape[1]])
                layer.bias.copy_(self.biases[i][:, t, : layer.bias.shape[1]])


def mean_cross_entropy(logits: Tensor, target: Tensor) -> Tensor:
    """Mean cross-entropy of each seed [S] from logits [S, B, K] and targets [S, B]."""
    losses = F.cross_entropy(logits.flatten(0, 1), target.flatten(), reduction="none")
    return losses.view(target.shape).mean(1)
