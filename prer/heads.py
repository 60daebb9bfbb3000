"""All heads as one module: every sample is answered by the head of its own task, at a cost that does not grow."""

# S seeds, T heads, B batch, D embedding, K outputs of the widest head

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from prer.networks import Head


class Heads(nn.Module):
    """The layers of all heads on an axis of their own. Trained in their place, and given back when that is done."""

    there: Tensor

    def __init__(self, heads: Sequence[Head]) -> None:
        super().__init__()
        self.heads = [head.linears() for head in heads]  # a plain list: their parameters are not trained here
        self.dropout = heads[0].dropout
        self.widths = [head.classes for head in heads]
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
        seeds = torch.arange(len(z), device=z.device).unsqueeze(1)
        a, b = (None, None) if noise is None else noise.split([w.shape[2] for w in list(self.weights)[:2]], dim=-1)
        h = z
        for layer, drawn in enumerate((a, b, None)):
            weight, bias = self.weights[layer][seeds, head], self.biases[layer][seeds, head]
            h = torch.baddbmm(bias.flatten(0, 1).unsqueeze(2), weight.flatten(0, 1), h.flatten(0, 1).unsqueeze(2))
            h = h.view(*z.shape[:2], -1)
            h = torch.relu(h) if layer < 2 else h
            h = h if drawn is None else h * (drawn >= self.dropout) / (1 - self.dropout)
        return h

    def of(self, head: int, z: Tensor, noise: Tensor | None = None) -> Tensor:
        """Logits of one head for all."""
        index = torch.full(z.shape[:2], head, device=z.device)
        return self(z, index, noise)[..., : self.widths[head]]

    def masked(self, logits: Tensor, head: Tensor) -> Tensor:
        """The same, with minus infinity where a head has no such output."""
        return logits.masked_fill(~self.there[head], -torch.inf)

    @torch.no_grad()
    def give_back(self) -> None:
        """Write what was learned into the heads themselves."""
        for t, layers in enumerate(self.heads):
            for i, layer in enumerate(layers):
                layer.weight.copy_(self.weights[i][:, t, : layer.weight.shape[1]])
                layer.bias.copy_(self.biases[i][:, t, : layer.bias.shape[1]])
