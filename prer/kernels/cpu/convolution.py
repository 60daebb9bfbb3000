"""Stacked convolutions on a CPU, in our own C; without it, `prer.nn.convolution` uses torch.

Samples are the last axis in memory. They stay last until the last layer, since elementwise operations keep strides.
"""

# S seeds, B batch; C channels and H, W pixels of the larger map, N channels and Y, X pixels of the smaller one.
# Maps [S, B, C, H, W] and [S, B, N, Y, X], in memory [S, H, W, C, B] and [S, Y, X, N, B]; weights [S, N, C, 4, 4].

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

from torch import Tensor
from torch.autograd import Function
from torch.autograd.function import once_differentiable

from prer.kernels.cpu.library import call
from prer.kernels.geometry import halved

PANEL = 32  # most samples that C computes together


class Sizes(ctypes.Structure):
    """Sizes of the maps; mirrors the C struct `Maps`."""

    _fields_ = tuple((name, ctypes.c_int64) for name in "SBCHWNYXpq")


def convolve(x: Tensor, weight: Tensor, bias: Tensor, padding: Sequence[int]) -> Tensor:
    """Each seed's convolution: maps [S, B, C, H, W] to [S, B, N, Y, X]."""
    size = [halved(s, p) for s, p in zip(x.shape[3:], padding, strict=True)]
    return Convolution.apply(x, weight, bias, Sizes(*x.shape, weight.shape[1], *size, *padding))


def mirror(x: Tensor, weight: Tensor, bias: Tensor, padding: Sequence[int], size: Sequence[int]) -> Tensor:
    """Each seed's transposed convolution: maps [S, B, N, Y, X] to [S, B, C, H, W], with (H, W) as given."""
    return Mirror.apply(x, weight, bias, Sizes(*x.shape[:2], weight.shape[2], *size, *x.shape[2:], *padding))


class Convolution(Function):
    """Convolution, from large maps to small ones."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor, sizes: Sizes) -> Tensor:
        """Forward pass: sums over patches."""
        ctx.sizes, x = sizes, _samples_last(x)
        ctx.save_for_backward(x, weight)
        return _narrowed(sizes, x, weight, bias)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *grads: Any) -> Any:  # pyrefly: ignore[bad-override]
        """Backward pass; for the maps it is the transposed convolution."""
        (x, weight), g = ctx.saved_tensors, _samples_last(grads[0])
        of_x = _widened(ctx.sizes, g, weight) if ctx.needs_input_grad[0] else None
        return of_x, _of_weight(ctx.sizes, x, g), g.sum((1, 3, 4)), None


class Mirror(Function):
    """Transposed convolution, from small maps to large ones."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor, sizes: Sizes) -> Tensor:
        """Forward pass; overlapping patches are summed."""
        ctx.sizes, x = sizes, _samples_last(x)
        ctx.save_for_backward(x, weight)
        return _widened(sizes, x, weight, bias)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *grads: Any) -> Any:  # pyrefly: ignore[bad-override]
        """Backward pass; for the maps it is the convolution."""
        (x, weight), g = ctx.saved_tensors, _samples_last(grads[0])
        of_x = _narrowed(ctx.sizes, g, weight) if ctx.needs_input_grad[0] else None
        return of_x, _of_weight(ctx.sizes, g, x), g.sum((1, 3, 4)), None


def _samples_last(x: Tensor) -> Tensor:
    return x.permute(0, 3, 4, 2, 1).contiguous().permute(0, 4, 3, 1, 2)


def _narrowed(n: Sizes, x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    y = x.new_empty(n.S, n.Y, n.X, n.N, n.B)
    bias = x.new_zeros(n.S, n.N) if bias is None else bias.contiguous()
    call("narrow", n, x, weight.movedim(2, -1).contiguous(), bias, y)
    return y.permute(0, 4, 3, 1, 2)


def _widened(n: Sizes, x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    y = x.new_empty(n.S, n.H, n.W, n.C, n.B)
    bias = x.new_zeros(n.S, n.C) if bias is None else bias.contiguous()
    call("widen", n, x, weight.permute(0, 3, 4, 2, 1).contiguous(), bias, y)
    return y.permute(0, 4, 3, 1, 2)


def _of_weight(n: Sizes, large: Tensor, small: Tensor) -> Tensor:
    g = large.new_empty(n.S, 4, 4, n.C, n.N)
    call("weights", n, large, small, g, large.new_empty(n.B + 16 * n.C, PANEL))
    return g.permute(0, 4, 3, 1, 2)
