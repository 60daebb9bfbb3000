"""Stacked convolutions on a GPU: patches, and one matrix product for all seeds.

cuDNN treats seeds as groups and computes them one after another; a product computes many at once. Extracting patches
from maps and folding patches into maps are each other's backward pass; torch provides that of the product.
"""

# S seeds, B batch; C channels and H, W pixels of the larger map, N channels and Y, X pixels of the smaller one;
# M = B Y X patches. Maps [S, B, C, H, W], with channels last in memory; weights [S, N, C, 4, 4].

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any, NamedTuple

import torch
import triton
from torch import Tensor
from torch.autograd import Function

from prer.kernels.geometry import halved
from prer.kernels.triton import maps

ROWS, COLUMNS = 32, 64  # of a tile; one size for all, since each further one takes a second to compile
PROGRAMS = 132  # multiprocessors of a large GPU; a constant, so that no sum depends on the GPU


class Geometry(NamedTuple):
    """Sizes of maps and padding, which say where patches lie."""

    C: int
    H: int
    W: int
    Y: int
    X: int
    p: int
    q: int


def convolve(x: Tensor, weight: Tensor, bias: Tensor, padding: Sequence[int]) -> Tensor:
    """Each seed's convolution: maps [S, B, C, H, W] to [S, B, N, Y, X]."""
    size = [halved(s, p) for s, p in zip(x.shape[3:], padding, strict=True)]
    patches = Patches.apply(x.movedim(2, -1), Geometry(*x.shape[2:], *size, *padding))
    y = _products(patches.flatten(1, 3), weight.permute(0, 3, 4, 2, 1).flatten(1, 3), bias)
    return y.unflatten(1, (x.shape[1], *size)).movedim(-1, 2)


def mirror(x: Tensor, weight: Tensor, bias: Tensor, padding: Sequence[int], size: Sequence[int]) -> Tensor:
    """Each seed's transposed convolution: maps [S, B, N, Y, X] to [S, B, C, H, W], with (H, W) as given."""
    vectors = x.movedim(2, -1)
    patches = _products(vectors.flatten(1, 3), weight.permute(0, 1, 3, 4, 2).flatten(2))
    geometry = Geometry(weight.shape[2], *size, *x.shape[3:], *padding)
    return Folded.apply(patches.unflatten(1, vectors.shape[1:4]), bias, geometry).movedim(-1, 2)


def _products(rows: Tensor, matrix: Tensor, bias: Tensor | None = None) -> Tensor:
    """Rows [S, M, i] times a matrix [S, i, o], split into groups of rows so that the matrix's gradient is split too.

    That gradient has very few entries, each a sum over very many rows: unsplit it would use only a few processors.
    """
    S, M, _ = rows.shape
    tiles = S * prod(-(-size // 64) for size in matrix.shape[1:])
    shares = next(n for n in (64, 32, 16, 8, 4, 2, 1) if M % n == 0 and (n == 1 or tiles * n <= PROGRAMS))
    rows, matrix = rows.unflatten(1, (shares, -1)).flatten(0, 1), _repeated(matrix, shares)
    y = torch.bmm(rows, matrix) if bias is None else torch.baddbmm(_repeated(bias.unsqueeze(1), shares), rows, matrix)
    return y.unflatten(0, (S, shares)).flatten(1, 2)


def _repeated(x: Tensor, shares: int) -> Tensor:
    return x.unsqueeze(1).expand(-1, shares, -1, -1).flatten(0, 1)


class _Seeded(Function):
    """Autograd function of tensors [S, ...] for which `vmap` treats a mapped axis as more seeds."""

    @classmethod
    def vmap(cls, info: Any, in_dims: Sequence[Any], *inputs: Any) -> tuple[Any, Any]:
        """Merge the mapped axis with the seed axis."""
        count, flat = info.batch_size, []
        for x, dim in zip(inputs, in_dims, strict=True):
            if isinstance(x, Tensor):
                x = (x.expand(count, *x.shape) if dim is None else x.movedim(dim, 0)).flatten(0, 1)
            flat.append(x)
        return cls.apply(*flat).unflatten(0, (count, -1)), 0


class Patches(_Seeded):
    """Maps [S, B, H, W, C] to patches [S, B, Y, X, 16 C]."""

    @staticmethod
    def forward(x: Tensor, at: Geometry) -> Tensor:
        """Extract one patch for each pixel of the smaller map."""
        patches = x.new_empty(*x.shape[:2], at.Y, at.X, 16 * at.C)
        pixels = patches.numel() // (16 * at.C)
        _launch(maps.gather, pixels, 16 * at.C, (x.contiguous(), patches), at)
        return patches

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        """Save the geometry for the backward pass."""
        ctx.at = inputs[1]

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        """Sum the gradients of all patches that contain a pixel."""
        return Folded.apply(grads[0], None, ctx.at), None


class Folded(_Seeded):
    """Patches [S, B, Y, X, 16 C] and a bias [S, C] to maps [S, B, H, W, C]."""

    @staticmethod
    def forward(patches: Tensor, bias: Tensor | None, at: Geometry) -> Tensor:
        """Fold the patches; where they overlap, they are summed."""
        y = patches.new_empty(*patches.shape[:2], at.H, at.W, at.C)
        given = (patches, 0) if bias is None else (bias.contiguous(), 1)  # a dummy bias saves compiling another kernel
        width = at.W * at.C
        _launch(maps.fold, y.numel() // width, width, (patches.contiguous(), *given, y, y.shape[1]), at)
        return y

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        """Save the geometry for the backward pass."""
        ctx.at = inputs[2]

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        """Extract the gradients of each patch's pixels."""
        of_bias = grads[0].sum((1, 2, 3)) if ctx.needs_input_grad[1] else None
        return Patches.apply(grads[0], ctx.at), of_bias, None


def _launch(kernel: Any, rows: int, width: int, tensors: Sequence[Any], at: Geometry) -> None:
    grid = triton.cdiv(rows, ROWS), triton.cdiv(width, COLUMNS)
    with torch.cuda.device_of(tensors[0]):
        kernel[grid](*tensors, *at, rows, ROWS=ROWS, COLUMNS=COLUMNS)
