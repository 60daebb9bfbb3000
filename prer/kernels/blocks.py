"""The blocks of a level in training, as one autograd function with a hand-written backward pass.

A step of a small flow is nearly all overhead: autograd would run some two thousand tiny operations. Here a block needs
a dozen in each direction, and what is independent of other blocks is computed for all of them at once. `flow.Level`
computes the same with plain operations; tests compare the two.
"""

# S seeds, B batch, D dimensions of the level, K blocks, a and b the two parts of a coupling, H = D its hidden layer,
# V length of a class's vector.
# Features come before samples, [S, D, B]: a permutation then moves whole rows, and a norm reads contiguous memory.

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

norm_backward = torch.ops.aten.native_layer_norm_backward.default


class Blocks(torch.autograd.Function):
    """Maps u and the level's parameters to u, log-determinant, and each block's batch mean and variance."""

    @staticmethod
    def forward(
        ctx: Any,
        u: Tensor,  # [S, D, B]
        v: Tensor,  # the vector of each sample's class [S, V, B]
        weight_in: Tensor,  # [S, K, a, H]
        weight_condition: Tensor,  # [S, K, V, H]
        bias_in: Tensor,  # [S, K, H]
        weight_out: Tensor,  # [S, K, H, 2b]
        bias_out: Tensor,  # [S, K, 2b]
        order: Tensor,  # [K, D]
        back: Tensor,  # [K, D]
        bounded: bool,
        eps: float,
    ) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Forward pass, from the data side to the noise side."""
        S, K, la, _ = weight_in.shape
        lb, n = weight_out.shape[3] // 2, u.shape[2]
        # `native_layer_norm` divides by n, our variances by n - 1.
        weight, eps_n = u.new_full((n,), ((n - 1) / n) ** 0.5), eps * (n - 1) / n
        minus_one, two_thirds, two = (u.new_full((), number) for number in (-1, 2 / 3, 2))
        # What the class adds to every first layer; the hidden layers are then computed in place.
        added = bias_in.transpose(0, 1).flatten(0, 1), weight_condition.transpose(0, 1).flatten(0, 1).mT
        h_of = torch.baddbmm(added[0].unsqueeze(2), added[1], v.repeat(K, 1, 1)).unflatten(0, (K, S))
        e_of, scale_of = u.new_empty(K, S, lb, n), u.new_empty(K, S, lb, n)
        layers = weight_in.mT, weight_out.mT, bias_out.unsqueeze(3)
        views = *(t.unbind(0) for t in (h_of, e_of, scale_of, order)), *(t.unbind(1) for t in layers)
        us, means, rstds, normeds = [], [], [], []
        for h, e, scale, ahead, w_in, w_out, bias in zip(*views, strict=True):
            normed, mean, rstd = torch.native_layer_norm(u, [n], weight, None, eps_n)
            a, b = normed.split_with_sizes((la, lb), 1)
            h.baddbmm_(w_in, a).relu_()
            s, shift = torch.baddbmm(bias, w_out, h).split_with_sizes((lb, lb), 1)
            if bounded:  # 3 tanh(s / 3) + 2 = 6 sigmoid(2 s / 3) - 1
                torch.sigmoid(s * two_thirds, out=e)
                torch.sigmoid(torch.add(minus_one, e, alpha=6), out=scale)
            else:
                torch.sigmoid(torch.add(s, two, out=e), out=scale)
            us.append(u)
            means.append(mean)
            rstds.append(rstd)
            normeds.append(normed)
            u = torch.cat([a, torch.addcmul(shift, b, scale)], 1).index_select(1, ahead)
        mean, rstd = torch.stack(means), torch.stack(rstds)
        log_scale = scale_of.log() if bounded else F.logsigmoid(e_of)
        log_det = log_scale.sum((0, 2)) + (rstd * weight[0]).log().sum((0, 2))
        layers = v, weight_in, weight_condition, weight_out, back, weight
        ctx.save_for_backward(*us, *normeds, h_of, e_of, scale_of, mean, rstd, *layers)
        ctx.bounded = bounded
        var = rstd.square().reciprocal().sub_(eps_n).mul_(n / max(n - 1, 1))
        mean, var = mean.squeeze(3).transpose(0, 1), var.squeeze(3).transpose(0, 1)
        ctx.mark_non_differentiable(mean, var)
        return u, log_det, mean, var

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        """Backward pass."""
        g_u, g_log_det = grads[0], grads[1].unsqueeze(1)
        *saved, v, weight_in, weight_condition, weight_out, back, weight = ctx.saved_tensors
        *saved, h_of, e_of, scale_of, mean_of, rstd_of = saved
        S, K, la, H = weight_in.shape
        lb, n = weight_out.shape[3] // 2, g_u.shape[2]
        us, normed_of = saved[:K], torch.stack(saved[K:])
        # Derivative of log(scale) with respect to s: (1 - scale) times 4 e (1 - e), or times 1.
        slope = torch.addcmul(e_of, e_of, e_of, value=-1).mul_(4) if ctx.bounded else torch.ones_like(e_of)
        slope.addcmul_(slope, scale_of, value=-1)
        scaled = normed_of[:, :, la:] * scale_of
        # The gradient through the norm's part of the log-determinant.
        narrow_of = rstd_of * weight[0] * (g_log_det.sum(2, keepdim=True) / (1 - n))
        g_out, g_in = g_u.new_empty(K, S, 2 * lb, n), g_u.new_empty(K, S, H, n)
        stacks = (
            h_of.sign(),
            scale_of,
            mean_of,
            rstd_of,
            normed_of,
            slope,
            scaled,
            narrow_of,
            back,
            g_out,
            g_in,
        )
        views = us, *(t.unbind(0) for t in stacks), weight_in.unbind(1), weight_out.unbind(1)
        for u, alive, scale, mean, rstd, normed, sloped, bs, narrow, behind, out, inner, w_in, w_out in reversed(
            list(zip(*views, strict=True))
        ):
            g_a, g_b = g_u.index_select(1, behind).split_with_sizes((la, lb), 1)
            torch.cat([torch.addcmul(g_log_det, g_b, bs).mul_(sloped), g_b], 1, out=out)  # gradients of s, shift
            torch.mul(torch.bmm(w_out, out), alive, out=inner)
            g = torch.cat([torch.baddbmm(g_a, w_in, inner), g_b * scale], 1)
            g_u = norm_backward(g, u, [n], mean, rstd, weight, None, [True, False, False])[0]
            g_u = g_u.addcmul_(normed, narrow)
        g_layers = of_layers(v, normed_of[:, :, :la], h_of, weight_condition, g_in, g_out)
        return g_u, *g_layers, None, None, None, None


def of_layers(
    v: Tensor, a: Tensor, h: Tensor, weight_condition: Tensor, g_in: Tensor, g_out: Tensor
) -> tuple[Tensor, ...]:
    """Gradients of v and of all blocks' layers, from those of the outputs of first and last layers [K, S, ., B]."""
    g_v = torch.bmm(weight_condition.transpose(1, 2).flatten(2), g_in.transpose(0, 1).flatten(1, 2))
    first = _products(a, g_in), _products(v.expand(len(a), -1, -1, -1), g_in), _sums(g_in)
    return g_v, *first, _products(h, g_out), _sums(g_out)


def _products(left: Tensor, right: Tensor) -> Tensor:
    """Gradients of weights [S, K, i, o] from inputs [K, S, i, B] and gradients of outputs [K, S, o, B]."""
    products = torch.bmm(left.flatten(0, 1), right.flatten(0, 1).mT)
    return products.unflatten(0, left.shape[:2]).transpose(0, 1)


def _sums(right: Tensor) -> Tensor:
    """Gradients of all blocks' biases [S, K, o]."""
    return right.sum(3).transpose(0, 1)
