"""The blocks of a level in training on a GPU: the same as `prer.kernels.blocks`, by our own kernels."""

# S seeds, B batch, D = la + lb dimensions, H hidden, V vector of a class, K blocks, T tiles of samples.

from __future__ import annotations

from typing import Any

import torch
import triton
from torch import Tensor

from prer.kernels.blocks import of_layers
from prer.kernels.triton import blocks

BT, KC = 16, 16  # samples of a tile, rows of a chunk of a product
WIDTHS = 64, 256, 512  # a level's width is padded to one of these; each is one more kernel to compile
WIDEST = WIDTHS[-1]
PRECISION = "ieee"  # of products; lower precision is hardly faster here


class FusedBlocks(torch.autograd.Function):
    """The same as `blocks.Blocks`, by these kernels."""

    @staticmethod
    def forward(
        ctx: Any,
        u: Tensor,
        v: Tensor,
        weight_in: Tensor,
        weight_condition: Tensor,
        bias_in: Tensor,
        weight_out: Tensor,
        bias_out: Tensor,
        order: Tensor,
        back: Tensor,
        bounded: bool,
        eps: float,
    ) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Forward pass, from the data side to the noise side."""
        sizes = Sizes(u, v, weight_in, bounded)
        layers = weight_in, weight_condition, bias_in, weight_out, bias_out
        u, log_det, mean, *passed = _forward(u, v, tuple(t.contiguous() for t in layers), back, sizes, eps)
        normed, rstd, h, s = passed
        rstds = rstd[:-1]
        log_det += rstds.log().sum((0, 2)).unsqueeze(1)
        ctx.sizes = sizes
        ctx.save_for_backward(normed, rstd, h, s, v, weight_in, weight_condition, weight_out, back)
        mean, var = mean.transpose(0, 1), (rstds**-2 - eps).transpose(0, 1)
        ctx.mark_non_differentiable(mean, var)
        return u, log_det, mean, var

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> tuple[Tensor | None, ...]:
        """Backward pass."""
        normed, rstd, h, s, v, weight_in, weight_condition, weight_out, back = ctx.saved_tensors
        layers = weight_in.contiguous(), weight_out.contiguous()
        g_u, g_in, g_out = _backward(grads[0], grads[1], (normed, rstd, h, s), layers, back, ctx.sizes)
        a = normed[:-1, :, : ctx.sizes.la]
        return g_u, *of_layers(v, a, h, weight_condition, g_in, g_out), None, None, None, None


class Sizes:
    """The sizes of a level, and how it is cut into tiles."""

    def __init__(self, u: Tensor, v: Tensor, weight_in: Tensor, bounded: bool) -> None:
        self.S, self.K, self.la, self.H = weight_in.shape
        self.D, self.B, self.V = u.shape[1], u.shape[2], v.shape[1]
        self.lb, self.T = self.D - self.la, triton.cdiv(self.B, BT)
        wide = next(w for w in WIDTHS if w >= self.D)
        pads = {"PH": wide, "PB": wide // 2, "PT": triton.next_power_of_2(self.T), "BT": BT, "KC": KC}
        # One stage: loops are short, and pipelining them takes long to compile.
        self.constants: dict[str, Any] = pads | {"BOUNDED": bounded, "PRECISION": PRECISION, "num_stages": 1}

    @property
    def grid(self) -> tuple[int, int]:
        """One program for each tile of samples and each seed."""
        return self.T, self.S


def _forward(
    u: Tensor, v: Tensor, layers: tuple[Tensor, ...], back: Tensor, sizes: Sizes, eps: float
) -> tuple[Tensor, ...]:
    """Forward pass of all blocks: u, log-determinant, means, and what the backward pass needs.

    The normalised inputs and their scales have one extra slot, an identity norm, as no norm follows the last block.
    """
    S, K, D, B, H, T = sizes.S, sizes.K, sizes.D, sizes.B, sizes.H, sizes.T
    normed, rstd = u.new_zeros(K + 1, S, D, B), u.new_ones(K + 1, S, D)
    mean, h, s = u.new_empty(K, S, D), u.new_empty(K, S, H, B), u.new_empty(K, S, sizes.lb, B)
    tiles, log_det, v = u.new_empty(2, 2, S, T, D), u.new_zeros(S, B), v.contiguous()
    u = u.contiguous()
    others = torch.empty_like(u), torch.empty_like(u)
    numbers = K, S, B, sizes.la, sizes.lb, H, sizes.V, T
    blocks.tile_statistics[sizes.grid](u, *tiles[0], B, D, T, PD=sizes.constants["PH"], BT=BT)
    for k in range(K):
        made = others[k % 2], *tiles[(k + 1) % 2], normed, mean, rstd, h, s, log_det
        blocks.block_forward[sizes.grid](u, *tiles[k % 2], v, *layers, back, *made, eps, k, *numbers, **sizes.constants)
        u = others[k % 2]
    return u, log_det, mean, normed, rstd, h, s


def _backward(
    g: Tensor, g_log_det: Tensor, passed: tuple[Tensor, ...], layers: tuple[Tensor, ...], back: Tensor, sizes: Sizes
) -> tuple[Tensor, Tensor, Tensor]:
    """Backward pass of all blocks: gradients of u, and of the outputs of every first and last layer."""
    S, K, D, B, H, T = sizes.S, sizes.K, sizes.D, sizes.B, sizes.H, sizes.T
    g_out, g_in = g.new_empty(K, S, 2 * sizes.lb, B), g.new_empty(K, S, H, B)
    g, g_log_det = g.contiguous(), g_log_det.contiguous()
    tiles, others = g.new_zeros(2, 2, S, T, D), (torch.empty_like(g), torch.empty_like(g))
    pull, numbers = g_log_det.sum(1), (K, S, B, sizes.la, sizes.lb, H, T)
    for k in reversed(range(K)):
        made = others[k % 2], *tiles[k % 2], g_out, g_in
        blocks.block_backward[sizes.grid](
            g, *tiles[(k + 1) % 2], *passed, *layers, back, g_log_det, pull, *made, k, *numbers, **sizes.constants
        )
        g = others[k % 2]
    sums, dots = tiles[0].sum(2).unsqueeze(3)
    normed, rstd = passed[0][0], passed[1][0].unsqueeze(2)
    return (g - sums / B - normed * ((dots + pull[:, None, None]) / (B - 1))) * rstd, g_in, g_out
