"""The blocks of a flow on a GPU: one Triton kernel for the forward pass of a block, another for its backward pass.

Blocks must wait for the batch statistics. A program has all features of a few samples, computes a whole block for them,
and stores its partial sums for the next block, whose programs add them up. They do so in a fixed order, so that results
are deterministic. `prer/kernels/blocks.py` has the same mathematics in plain operations.
"""

# S seeds, B batch, D = la + lb dimensions, H hidden, V vector of a class, K blocks, T tiles of samples.
# Capitals with a P are sizes padded to a power of two; BT samples make a tile, KC rows a chunk of a product.

from __future__ import annotations

import triton
import triton.language as tl

SIZES = ["eps", "k", "K", "S", "B", "la", "lb", "H", "V", "T"]


@triton.jit
def _combined(means, squares, row, here, B, D, T, PT: tl.constexpr, BT: tl.constexpr):
    """Mean and sum of squared deviations of rows, combined from those of all tiles (Chan et al. 1979)."""
    t = tl.arange(0, PT)
    there = (t[:, None] < T) & here[None, :]
    at = t[:, None] * D + row[None, :]
    count = tl.minimum(B - t * BT, BT).to(tl.float32)[:, None]
    of_tile = tl.load(means + at, mask=there, other=0.0)
    mean = tl.sum(tl.where(there, of_tile * count, 0.0), 0) / B
    off = of_tile - mean[None, :]
    inner = tl.load(squares + at, mask=there, other=0.0)
    return mean, tl.sum(tl.where(there, inner + count * off * off, 0.0), 0)


@triton.jit
def _leave(means, squares, x, row, here, inside, count):
    """Store mean and sum of squared deviations of a tile's rows."""
    mean = tl.sum(tl.where(inside[None, :], x, 0.0), 1) / count
    off = tl.where(inside[None, :], x - mean[:, None], 0.0)
    tl.store(means + row, mean, mask=here)
    tl.store(squares + row, tl.sum(off * off, 1), mask=here)


@triton.jit
def _summed(sums, row, here, D, T, PT: tl.constexpr):
    """Sum over tiles, for rows."""
    t = tl.arange(0, PT)
    there = (t[:, None] < T) & here[None, :]
    return tl.sum(tl.load(sums + t[:, None] * D + row[None, :], mask=there, other=0.0), 0)


@triton.jit
def _sigmoid(x):
    return 1.0 / (1.0 + tl.exp(-x))


@triton.jit(do_not_specialize=SIZES)
def tile_statistics(u, means, squares, B, D, T, PD: tl.constexpr, BT: tl.constexpr):
    """Store the statistics of a level's input, as each block does for the next one."""
    t, s = tl.program_id(0), tl.program_id(1).to(tl.int64)
    row, cols = tl.arange(0, PD), t * BT + tl.arange(0, BT)
    here, inside = row < D, cols < B
    x = tl.load(u + s * D * B + row[:, None] * B + cols[None, :], mask=here[:, None] & inside[None, :], other=0.0)
    at = (s * T + t) * D
    _leave(means + at, squares + at, x, row, here, inside, tl.minimum(B - t * BT, BT).to(tl.float32))


@triton.jit(do_not_specialize=SIZES)
def block_forward(
    u, means, squares, v, weight_in, weight_v, bias_in, weight_out, bias_out, back,  # inputs
    u_next, means_next, squares_next, normed, mean_of, rstd_of, h_of, s_of, log_det,  # outputs
    eps, k, K, S, B, la, lb, H, V, T,
    BOUNDED: tl.constexpr, PH: tl.constexpr, PB: tl.constexpr, PT: tl.constexpr,
    BT: tl.constexpr, KC: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    """Norm, coupling and permutation of a tile of samples in block k."""
    t, s = tl.program_id(0), tl.program_id(1).to(tl.int64)
    D, ks, sk = la + lb, k * S + s, s * K + k
    cols, n = t * BT + tl.arange(0, BT), B.to(tl.float32)
    inside, count = cols < B, tl.minimum(B - t * BT, BT).to(tl.float32)
    u += s * D * B
    u_next += s * D * B
    normed += ks * D * B
    means += s * T * D
    squares += s * T * D
    means_next += (s * T + t) * D
    squares_next += (s * T + t) * D
    back += k * D
    h_of += ks * H * B
    weight_in += sk * la * H
    weight_out += sk * H * 2 * lb

    hs = tl.arange(0, PH)
    h = tl.zeros((PH, BT), tl.float32)
    for first in range(0, V, KC):
        vs = first + tl.arange(0, KC)
        of_v = vs[:, None] < V
        w_v = tl.load(weight_v + (sk * V + vs[:, None]) * H + hs[None, :], mask=of_v & (hs[None, :] < H), other=0.0)
        x_v = tl.load(v + (s * V + vs[:, None]) * B + cols[None, :], mask=of_v & inside[None, :], other=0.0)
        h += tl.dot(tl.trans(w_v), x_v, input_precision=PRECISION)
    h += tl.load(bias_in + sk * H + hs, mask=hs < H, other=0.0)[:, None]
    for first in range(0, la, KC):
        row = first + tl.arange(0, KC)
        here = row < la
        mean, square = _combined(means, squares, row, here, B, D, T, PT, BT)
        rstd = 1.0 / tl.sqrt(square / (n - 1.0) + eps)
        whole = here[:, None] & inside[None, :]
        x = tl.load(u + row[:, None] * B + cols[None, :], mask=whole, other=0.0)
        x = tl.where(whole, (x - mean[:, None]) * rstd[:, None], 0.0)
        tl.store(normed + row[:, None] * B + cols[None, :], x, mask=whole)
        if t == 0:
            tl.store(mean_of + ks * D + row, mean, mask=here)
            tl.store(rstd_of + ks * D + row, rstd, mask=here)
        to = tl.load(back + row, mask=here, other=0)
        tl.store(u_next + to[:, None] * B + cols[None, :], x, mask=whole)
        _leave(means_next, squares_next, x, to, here, inside, count)
        w = tl.load(weight_in + row[:, None] * H + hs[None, :], mask=here[:, None] & (hs[None, :] < H), other=0.0)
        h += tl.dot(tl.trans(w), x, input_precision=PRECISION)
    h = tl.maximum(h, 0.0)
    tl.store(h_of + hs[:, None] * B + cols[None, :], h, mask=(hs[:, None] < H) & inside[None, :])
    tl.debug_barrier()  # other threads of this program now load what was stored

    row = tl.arange(0, PB)
    here = row < lb
    whole = here[:, None] & inside[None, :]
    scale = tl.zeros((PB, BT), tl.float32) + tl.load(bias_out + sk * 2 * lb + row, mask=here, other=0.0)[:, None]
    shift = tl.zeros((PB, BT), tl.float32) + tl.load(bias_out + sk * 2 * lb + lb + row, mask=here, other=0.0)[:, None]
    for first in range(0, H, KC):
        of_h = first + tl.arange(0, KC)
        x_h = tl.load(h_of + of_h[:, None] * B + cols[None, :], mask=(of_h[:, None] < H) & inside[None, :], other=0.0)
        at = weight_out + of_h[:, None] * 2 * lb + row[None, :]
        there = (of_h[:, None] < H) & here[None, :]
        scale += tl.dot(tl.trans(tl.load(at, mask=there, other=0.0)), x_h, input_precision=PRECISION)
        shift += tl.dot(tl.trans(tl.load(at + lb, mask=there, other=0.0)), x_h, input_precision=PRECISION)
    tl.store(s_of + ks * lb * B + row[:, None] * B + cols[None, :], scale, mask=whole)
    if BOUNDED:
        scale = 6.0 * _sigmoid(scale * (2.0 / 3.0)) - 1.0
    else:
        scale += 2.0
    log_scale = tl.minimum(scale, 0.0) - tl.log(1.0 + tl.exp(-tl.abs(scale)))
    mean, square = _combined(means, squares, la + row, here, B, D, T, PT, BT)
    rstd = 1.0 / tl.sqrt(square / (n - 1.0) + eps)
    x = tl.load(u + (la + row)[:, None] * B + cols[None, :], mask=whole, other=0.0)
    x = tl.where(whole, (x - mean[:, None]) * rstd[:, None], 0.0)
    tl.store(normed + (la + row)[:, None] * B + cols[None, :], x, mask=whole)
    if t == 0:
        tl.store(mean_of + ks * D + la + row, mean, mask=here)
        tl.store(rstd_of + ks * D + la + row, rstd, mask=here)
    x = x * _sigmoid(scale) + shift
    to = tl.load(back + la + row, mask=here, other=0)
    tl.store(u_next + to[:, None] * B + cols[None, :], x, mask=whole)
    _leave(means_next, squares_next, x, to, here, inside, count)
    total = tl.load(log_det + s * B + cols, mask=inside, other=0.0)
    total += tl.sum(tl.where(here[:, None], log_scale, 0.0), 0)
    tl.store(log_det + s * B + cols, total, mask=inside)


@triton.jit
def _through_norm(g, normed, rstd, sums, dots, g_log_dets, row, here, whole, at, B, D, T, PT: tl.constexpr):
    """Gradient of a norm's input, from the gradient of its output."""
    n = B.to(tl.float32)
    x = tl.load(normed + at, mask=whole, other=0.0)
    mean = _summed(sums, row, here, D, T, PT) / n
    # The norm is part of the log-determinant, so the gradients of all samples' log-determinants act on the variance.
    dot = (_summed(dots, row, here, D, T, PT) + g_log_dets) / (n - 1.0)
    r = tl.load(rstd + row, mask=here, other=0.0)
    return (tl.load(g + at, mask=whole, other=0.0) - mean[:, None] - x * dot[:, None]) * r[:, None]


@triton.jit(do_not_specialize=SIZES)
def block_backward(
    g, sums, dots, normed, rstd, h_of, s_of, weight_in, weight_out, back, g_log_det, g_log_dets,  # inputs
    g_next, sums_next, dots_next, g_out, g_in,  # outputs
    k, K, S, B, la, lb, H, T,
    BOUNDED: tl.constexpr, PH: tl.constexpr, PB: tl.constexpr, PT: tl.constexpr,
    BT: tl.constexpr, KC: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    """From the gradient of the next norm's output, slot k + 1, to that of the output of this block's norm."""
    t, s = tl.program_id(0), tl.program_id(1).to(tl.int64)
    D, ks, sk, after = la + lb, k * S + s, s * K + k, (k + 1) * S + s
    cols = t * BT + tl.arange(0, BT)
    inside = cols < B
    # For the next block's norm.
    g += s * D * B
    sums += s * T * D
    dots += s * T * D
    normed_after, rstd_after = normed + after * D * B, rstd + after * D
    normed += ks * D * B
    pull = tl.where(k + 1 < K, tl.load(g_log_dets + s), 0.0)
    g_next += s * D * B
    sums_next += (s * T + t) * D
    dots_next += (s * T + t) * D
    back += k * D
    g_out += ks * 2 * lb * B
    g_in += ks * H * B
    weight_in += sk * la * H
    weight_out += sk * H * 2 * lb

    row = tl.arange(0, PB)
    here = row < lb
    whole = here[:, None] & inside[None, :]
    at = row[:, None] * B + cols[None, :]
    to = tl.load(back + la + row, mask=here, other=0)
    to_at = to[:, None] * B + cols[None, :]
    g_b = _through_norm(g, normed_after, rstd_after, sums, dots, pull, to, here, whole, to_at, B, D, T, PT)
    g_b = tl.where(whole, g_b, 0.0)
    e = tl.load(s_of + ks * lb * B + at, mask=whole, other=0.0)
    slope = tl.zeros((PB, BT), tl.float32) + 1.0
    if BOUNDED:
        e = _sigmoid(e * (2.0 / 3.0))
        slope = 4.0 * e * (1.0 - e)
        e = 6.0 * e - 1.0
    else:
        e += 2.0
    scale = _sigmoid(e)
    x = tl.load(normed + la * B + at, mask=whole, other=0.0)
    of_log_det = tl.load(g_log_det + s * B + cols, mask=inside, other=0.0)[None, :]
    g_s = tl.where(whole, (g_b * x * scale + of_log_det) * (1.0 - scale) * slope, 0.0)
    tl.store(g_out + at, g_s, mask=whole)
    tl.store(g_out + lb * B + at, g_b, mask=whole)
    g_b *= scale
    tl.store(g_next + la * B + at, g_b, mask=whole)
    tl.store(sums_next + la + row, tl.sum(g_b, 1), mask=here)
    tl.store(dots_next + la + row, tl.sum(g_b * x, 1), mask=here)
    tl.debug_barrier()  # other threads of this program now load what was stored

    hs = tl.arange(0, PH)
    g_h = tl.zeros((PH, BT), tl.float32)
    for first in range(0, 2 * lb, KC):
        part = first + tl.arange(0, KC)
        left = part < 2 * lb
        w_out = tl.load(
            weight_out + hs[:, None] * 2 * lb + part[None, :], mask=(hs[:, None] < H) & left[None, :], other=0.0
        )
        g_part = tl.load(g_out + part[:, None] * B + cols[None, :], mask=left[:, None] & inside[None, :], other=0.0)
        g_h += tl.dot(w_out, g_part, input_precision=PRECISION)
    whole = (hs[:, None] < H) & inside[None, :]
    at = hs[:, None] * B + cols[None, :]
    g_h = tl.where(tl.load(h_of + ks * H * B + at, mask=whole, other=0.0) > 0.0, g_h, 0.0)
    tl.store(g_in + at, g_h, mask=whole)
    tl.debug_barrier()

    row = tl.arange(0, PB)
    here = row < la
    g_a = tl.zeros((PB, BT), tl.float32)
    for first in range(0, H, KC):
        of_h = first + tl.arange(0, KC)
        w_in = tl.load(
            weight_in + row[:, None] * H + of_h[None, :], mask=here[:, None] & (of_h[None, :] < H), other=0.0
        )
        g_x = tl.load(g_in + of_h[:, None] * B + cols[None, :], mask=(of_h[:, None] < H) & inside[None, :], other=0.0)
        g_a += tl.dot(w_in, g_x, input_precision=PRECISION)
    whole = here[:, None] & inside[None, :]
    at = row[:, None] * B + cols[None, :]
    to = tl.load(back + row, mask=here, other=0)
    to_at = to[:, None] * B + cols[None, :]
    g_a += _through_norm(g, normed_after, rstd_after, sums, dots, pull, to, here, whole, to_at, B, D, T, PT)
    g_a = tl.where(whole, g_a, 0.0)
    x = tl.load(normed + at, mask=whole, other=0.0)
    tl.store(g_next + at, g_a, mask=whole)
    tl.store(sums_next + row, tl.sum(g_a, 1), mask=here)
    tl.store(dots_next + row, tl.sum(g_a * x, 1), mask=here)
