"""The blocks of a level in training on a CPU: the same as `prer.kernels.blocks`, in our own C."""

# S seeds, K blocks, D = la + lb dimensions, H hidden, V vector of a class, B batch.

from __future__ import annotations

import ctypes
import math
from typing import Any

import torch
from torch import Tensor

from prer.kernels.cpu.library import call, loaded

WIDEST = math.inf  # a level may have any width


class Sizes(ctypes.Structure):
    """Sizes and constants of a level; mirrors the C struct of the same name."""

    names = "S", "K", "la", "lb", "H", "V", "B", "bounded"
    _fields_ = (*((name, ctypes.c_int64) for name in names), ("eps", ctypes.c_float))


class FusedBlocks(torch.autograd.Function):
    """The same as `blocks.Blocks`, with one C call in each direction."""

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
    ) -> tuple[Tensor, ...]:
        """Forward pass, from the data side to the noise side."""
        (S, K, la, H), (_, D, B) = weight_in.shape, u.shape
        sizes = Sizes(S, K, la, D - la, H, v.shape[1], B, bounded, eps)
        given = [t.contiguous() for t in (u, v, weight_in, weight_condition, bias_in, weight_out, bias_out, back)]
        made = [torch.empty_like(given[0]), u.new_empty(S, B), *u.new_empty(3, S, K, D).unbind()]
        kept = _room("kept", sizes, u)
        call("forward", sizes, *given, *made, kept, _room("scratch", sizes, u))
        _, v, weight_in, weight_condition, _, weight_out, _, back = given
        ctx.sizes = sizes
        ctx.save_for_backward(v, weight_in, weight_condition, weight_out, back, made.pop(), kept)
        ctx.mark_non_differentiable(*made[2:])
        return tuple(made)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> tuple[Tensor | None, ...]:
        """Backward pass."""
        n, (v, weight_in, weight_condition, weight_out, *_) = ctx.sizes, ctx.saved_tensors
        given = grads[0].contiguous(), grads[1].contiguous(), *ctx.saved_tensors
        made = [torch.empty_like(t) for t in (given[0], v, weight_in, weight_condition)]
        made += [v.new_empty(n.S, n.K, n.H), torch.empty_like(weight_out), v.new_empty(n.S, n.K, 2 * n.lb)]
        call("backward", n, *given, *made, _room("scratch", n, v))
        return *made, None, None, None, None


class Prior(torch.autograd.Function):
    """Log-prior of u [S, B], with a mean and scale that depend on the class, as in `flow.Flow`."""

    @staticmethod
    def forward(ctx: Any, u: Tensor, v: Tensor, weight: Tensor) -> Tensor:
        """Forward pass, from u [S, D, B], v [S, V, B] and weight [S, V, 2 D]."""
        (S, D, B), V = u.shape, v.shape[1]
        ctx.sizes = Sizes(S, 1, 0, D, D, V, B)
        u, v, weight = u.contiguous(), v.contiguous(), weight.contiguous()
        made, kept = u.new_empty(S, B), _room("kept", ctx.sizes, u)
        call("prior_forward", ctx.sizes, u, v, weight, made, kept, _room("scratch", ctx.sizes, u))
        ctx.save_for_backward(v, weight, kept)
        return made

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> tuple[Tensor, ...]:
        """Backward pass."""
        n, (v, weight, kept) = ctx.sizes, ctx.saved_tensors
        made = v.new_empty(n.S, n.lb, n.B), torch.empty_like(v), torch.empty_like(weight)
        call("prior_backward", n, grads[0].contiguous(), v, weight, kept, *made, _room("scratch", n, v))
        return made


def _room(name: str, sizes: Sizes, like: Tensor) -> Tensor:
    """An uninitialised buffer of the size that C asks for."""
    count = getattr(loaded(), name)
    count.restype = ctypes.c_int64
    return like.new_empty(count(ctypes.byref(sizes)))
