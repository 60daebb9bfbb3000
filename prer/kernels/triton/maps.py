"""Triton kernels around the products of a convolution: maps to patches, and patches to maps.

Channels come last in memory here, so that a row of a patch, four pixels with all their channels, is contiguous.
"""

# S seeds, B batch; C channels and H, W pixels of the larger map, Y, X pixels of the smaller one; p and q padding.
# Maps [S, B, H, W, C]; patches [S, B, Y, X, 4, 4, C]. A tile has ROWS patches, or rows of maps, and COLUMNS
# numbers of each.

from __future__ import annotations

import triton
import triton.language as tl

SIZES = ["C", "H", "W", "Y", "X", "p", "q", "pixels"]


@triton.jit(do_not_specialize=SIZES)
def gather(maps, patches, C, H, W, Y, X, p, q, pixels, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    """patches[y, x, i, j, c] = maps[2y - p + i, 2x - q + j, c], and 0 outside of the maps."""
    pixel = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    place = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)
    image, top, left = (pixel // (Y * X)).to(tl.int64), pixel // X % Y * 2 - p, pixel % X * 2 - q
    i, j = place // (4 * C), place // C % 4
    h, w = top[:, None] + i[None, :], left[:, None] + j[None, :]
    wanted = (pixel < pixels)[:, None] & (place < 16 * C)[None, :]
    seen = wanted & (h >= 0) & (h < H) & (w >= 0) & (w < W)
    start, within = (image * H + top) * (W * C) + left * C, i * (W * C) + place % (4 * C)
    x = tl.load(maps + start[:, None] + within[None, :], mask=seen, other=0.0)
    tl.store(patches + (pixel.to(tl.int64) * (16 * C))[:, None] + place[None, :], x, mask=wanted)


@triton.jit(do_not_specialize=[*SIZES, "each", "biased", "rows"])
def fold(
    patches, bias, biased, maps, each, C, H, W, Y, X, p, q, rows, ROWS: tl.constexpr, COLUMNS: tl.constexpr
):  # fmt: skip
    """maps[h, w, c] = bias[c] + the sum of patches[y, x, i, j, c] over all that cover (h, w): at most four.

    A tile has whole rows of maps, or pieces of them. A seed has `each` images.
    """
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    column = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)
    image, h = (row // H).to(tl.int64), row % H + p
    w, c = column // C + q, column % C
    wanted = (row < rows)[:, None] & (column < W * C)[None, :]
    total = tl.load(
        bias + (image // each * C)[:, None] + c[None, :], mask=wanted & (c < biased * C)[None, :], other=0.0
    )
    for tap in range(4):
        i, j = h % 2 + tap // 2 * 2, w % 2 + tap % 2 * 2
        y, x = (h - i) // 2, (w - j) // 2
        there = ((h >= i) & (y < Y))[:, None] & ((w >= j) & (x < X))[None, :]
        start, within = (image * Y + y) * (X * 16 * C) + i * (4 * C), x * (16 * C) + j * C + c
        total += tl.load(patches + start[:, None] + within[None, :], mask=wanted & there, other=0.0)
    tl.store(maps + (row.to(tl.int64) * (W * C))[:, None] + column[None, :], total, mask=wanted)
