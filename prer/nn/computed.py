"""Encoders that are computed from the first task and then rest: whitened patches of images, and vectors as they are."""

# S seeds, B batch, C channels, H and W image, P values of a patch, K filters, F features, D embedding, n samples

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from prer.address import Address
from prer.nn.clusters import k_means

MOST_PATCHES = 100_000  # from which filters are computed
FEWEST = 3  # samples for each principal component
MORE = 10  # directions than asked for, so that those asked for are exact
NARROWEST = 0.05  # a direction is whitened as if its spread were at least this share of the largest


class Projection(nn.Module):
    """Vectors as they are; if they have more than `embedding` numbers, their principal components.

    The directions are those of the first task (randomised subspace iteration; Halko, Martinsson and Tropp 2011), or
    random ones, which do not depend on it. Whitening helps with raw responses to patches. It harms embeddings of a
    pretrained network: what hardly varies in the first task may tell later classes apart.
    """

    mean: Tensor
    std: Tensor
    basis: Tensor

    def __init__(self, features: int, embedding: int, whitened: bool = True, random: bool = False) -> None:
        super().__init__()
        self.rotates, self.whitened, self.random = features > embedding, whitened, random
        features = features if self.rotates else 0
        self.register_buffer("mean", torch.zeros(features))
        self.register_buffer("std", torch.ones(features))
        self.register_buffer("basis", torch.zeros(features, embedding))

    @torch.no_grad()
    def start(self, samples: Iterable[Tensor], address: Address) -> None:
        """Compute the directions from each seed's inputs [n, ...]."""
        if self.rotates:
            inputs = (x.flatten(1) for x in samples)
            self.mean, self.std, self.basis = of_each_seed(self._directions, inputs, address)

    def _directions(self, x: Tensor, address: Address) -> tuple[Tensor, Tensor, Tensor]:
        mean, std = x.mean(0), x.std(0, correction=0)
        std = std.clamp_min(0.1 * std.max() + 1e-12) if self.whitened else torch.ones_like(std)
        D, width = self.basis.shape[-1], min(x.shape[1], self.basis.shape[-1] + MORE)
        off, Q = (x - mean) / std, address.normal(x.shape[1], width)[0]
        for _ in range(6):
            Q = torch.linalg.qr(off.mT @ (off @ Q)).Q
        V = torch.linalg.svd(off @ Q, full_matrices=False).Vh
        # Few samples say little about many directions: the others are random ones, whose spread is not underestimated.
        most = 0 if self.random else max(1, len(x) // FEWEST)
        top, others = (Q @ V.mT)[:, :most], (address / "others").normal(x.shape[1], D)[0]
        V = torch.linalg.qr(torch.cat([top, others], 1)).Q[:, :D]
        V = V * torch.where(V.sum(0) < 0, -1.0, 1.0)  # the sign that a decomposition gives is arbitrary
        if not self.whitened:
            return mean, std, V
        spread = (off @ V).square().mean(0).sqrt()
        spread = spread.clamp_min(NARROWEST * spread.max() + 1e-12)
        return mean, std, V / spread

    def forward(self, x: Tensor) -> Tensor:
        """Embeddings [S, B, D] of vectors or images."""
        x = x.flatten(2)
        return torch.bmm((x - self.mean.unsqueeze(1)) / self.std.unsqueeze(1), self.basis) if self.rotates else x

    def inverse(self, z: Tensor) -> Tensor:
        """The vectors [S, B, F] of embeddings; of more than `embedding` numbers, their projection."""
        if not self.rotates:
            return z
        return torch.bmm(z, torch.linalg.pinv(self.basis)) * self.std.unsqueeze(1) + self.mean.unsqueeze(1)


class Patches(nn.Module):
    """A dictionary of whitened patches (Coates, Lee and Ng 2011), computed from the images of the first task.

    Filters are the directions of k-means on whitened patches. An image is described by how strongly each filter
    responds, positively and negatively, on average in each cell of a 3 x 3 grid: by the root of these numbers, and by
    the principal components of these roots.
    """

    side, filters, threshold = 32, 200, 0.25  # larger images are shrunk to this side
    contrast, ridge = 0.04, 0.1  # flat patches stay flat; weak directions of patches are not amplified without limit

    weight: Tensor
    bias: Tensor

    def __init__(self, shape: Sequence[int], embedding: int) -> None:
        super().__init__()
        channels, *sides = shape
        height, width = (max(1, round(a * min(1.0, self.side / max(sides)))) for a in sides)
        self.shape = height, width
        self.size = min(6 if min(height, width) >= 16 else 3, height, width)
        self.grid = min(3, height - self.size + 1), min(3, width - self.size + 1)
        features = 2 * self.filters * self.grid[0] * self.grid[1]
        self.register_buffer("weight", torch.zeros(self.filters, channels, self.size, self.size))
        self.register_buffer("bias", torch.zeros(self.filters))
        self.components = Projection(features, embedding)

    @torch.no_grad()
    def start(self, samples: Iterable[Tensor], address: Address) -> None:
        """Compute filters and principal components from each seed's images [n, C, H, W] in [0, 1]."""
        images = list(samples)
        self.weight, self.bias = of_each_seed(self._filters, images, address / "filters")
        self.components.start((self._features(x, s) for s, x in enumerate(images)), address / "components")

    def _filters(self, x: Tensor, address: Address) -> tuple[Tensor, Tensor]:
        """Filters [K, C, size, size] and their bias [K]; whitening and the mean of patches are parts of them."""
        patches = self._patches(x, address)
        mean = patches.mean(0)
        covariance = (patches - mean).mT.double() @ (patches - mean).double() / len(patches)
        values, vectors = torch.linalg.eigh(covariance)
        whitening = (vectors * (values + self.ridge).rsqrt() @ vectors.mT).float()
        white = (patches - mean) @ whitening
        first = (address / "first").permutation(len(white))[0]
        first = first.repeat(-(-self.filters // len(first)))[: self.filters]
        centres = F.normalize(k_means(white, white[first]), dim=1)
        weight = centres @ whitening
        weight = weight - weight.mean(1, keepdim=True)  # so that the mean of a patch does not matter
        return weight.view(-1, x.shape[1], self.size, self.size), -(weight @ mean)

    def _patches(self, x: Tensor, address: Address) -> Tensor:
        """Patches of these images at random places, with mean 0 and contrast 1 [patches, P]; flat ones are left out."""
        count, chosen = -(-MOST_PATCHES // len(x)), []
        for part, images in enumerate(x.split(at_once(x))):
            every = F.unfold(self._shrunk(images), self.size).mT  # [n, places, P]
            draws = (address / part).uniform(len(images), min(count, every.shape[1]))[0]
            places = (draws * every.shape[1]).long().unsqueeze(-1).expand(-1, -1, every.shape[2])
            chosen.append(every.gather(1, places).flatten(0, 1))
        patches = torch.cat(chosen)
        off = patches - patches.mean(1, keepdim=True)
        uneven = off[off.square().mean(1) > (self.contrast / 2) ** 2]
        off = uneven if len(uneven) else off
        return off / (off.square().mean(1, keepdim=True) + self.contrast**2).sqrt()

    def _shrunk(self, x: Tensor) -> Tensor:
        return x if x.shape[-2:] == self.shape else F.adaptive_avg_pool2d(x, self.shape)

    def _features(self, x: Tensor, seed: int) -> Tensor:
        """Features of one seed's images [n, F]."""
        return torch.cat([self._of_few(part, seed) for part in x.split(at_once(x))])

    def _of_few(self, x: Tensor, seed: int) -> Tensor:
        x = self._shrunk(x)
        mean, square = (F.avg_pool2d(m.mean(1, keepdim=True), self.size, stride=1) for m in (x, x.square()))
        spread = ((square - mean.square()).clamp_min(0) + self.contrast**2).sqrt()
        response = F.conv2d(x, self.weight[seed]).div_(spread).add_(self.bias[seed][:, None, None])
        cells = [F.adaptive_avg_pool2d((response - self.threshold).clamp_min_(0), self.grid)]
        cells += [F.adaptive_avg_pool2d(response.neg_().sub_(self.threshold).clamp_min_(0), self.grid)]
        return torch.cat(cells, 1).flatten(1).sqrt()

    @torch.no_grad()
    def forward(self, x: Tensor) -> Tensor:
        """Embeddings [S, B, D] of images [S, B, C, H, W]."""
        return self.components(torch.stack([self._features(of_seed, s) for s, of_seed in enumerate(x)]))


def at_once(x: Tensor) -> int:
    """How many images are embedded at once."""
    return 1024 if x.is_cuda else 16


def of_each_seed(
    compute: Callable[[Tensor, Address], tuple[Tensor, ...]], samples: Iterable[Tensor], address: Address
) -> list[Tensor]:
    """The tensors that are computed from each seed's samples, with that seed's randomness, stacked."""
    alone = (replace(address, seeds=(seed,)) for seed in address.seeds)
    found = [compute(x, at) for x, at in zip(samples, alone, strict=True)]
    return [torch.stack(part) for part in zip(*found, strict=True)]


class Inverse(nn.Module):
    """A decoder without weights of its own: the inverse of a projection."""

    def __init__(self, projection: Projection, shape: Sequence[int]) -> None:
        super().__init__()
        self.of, self.shape = [projection], tuple(shape)  # a list: its tensors belong to the encoder

    def forward(self, z: Tensor) -> Tensor:
        """Inputs [S, B, ...]."""
        return self.of[0].inverse(z).unflatten(2, self.shape)
