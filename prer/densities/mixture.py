"""Several full-covariance Gaussians for each class, fitted by expectation maximisation: no gradient, and no refit."""

# S seeds, B batch, n samples, D embedding, C classes, N components of all classes, K of one class

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Self

import torch
import torch.nn.functional as F
from torch import Tensor

from prer.densities.base import Density, DensitySettings, look_up, triangular
from prer.nn.clusters import k_means, nearest
from prer.settings import Auto, setting

ROUNDS = 25  # of expectation maximisation
FEWEST = 40  # samples of a component
FEW, AT_ONCE = 8, 2**22  # samples drawn of a component; numbers of factors that are gathered at once
OF_IMAGES, OF_VECTORS = 0.3, 1.0  # shrinkage of the embeddings of images, and of vectors
RIDGE = 1e-3  # added to each variance, in units of their mean


@dataclass(frozen=True, kw_only=True)
class MixtureSettings(DensitySettings):
    """The settings of a mixture; its covariances are shrunk as in regularised discriminant analysis (Friedman 1989)."""

    name = "mixture"

    components: int = setting(16, "most Gaussians of a class; at least 40 samples are needed for each", low=1, high=256)
    shrinkage: float | Auto = setting(
        OF_IMAGES,
        "weight of the mean covariance (of a class's components, of all classes), in samples for each dimension; "
        "auto: 0.3 for images, 1 for vectors",
        low=0,
    )

    def fitting(self, shape: Sequence[int]) -> Self:
        """The same settings with the shrinkage that suits samples of this shape."""
        if self.shrinkage != "auto":
            return self
        return replace(self, shrinkage=OF_VECTORS if len(shape) == 1 else OF_IMAGES)

    def build(self, dimension: int) -> Mixture:
        """The mixtures of one seed."""
        assert self.shrinkage != "auto"
        return Mixture(dimension, self.components, self.shrinkage)


class Mixture(Density):
    """Gaussians with full covariances: 1 + D + D (D + 1) / 2 floats for each, and the classes' mean covariance once."""

    weights: Tensor  # [S, N], logarithms
    means: Tensor  # [S, N, D]
    factors: Tensor  # [S, N, D (D + 1) / 2], Cholesky factors
    shared: Tensor  # [S, D, D], the mean covariance of a class

    def __init__(self, dimension: int, components: int, shrinkage: float) -> None:
        super().__init__(dimension)
        self.components, self.shrinkage = components, shrinkage
        self.centre: tuple[Tensor, tuple[Tensor, Tensor]] | None = None  # component means, and what follows from them
        self.register_buffer("weights", torch.zeros(0))
        self.register_buffer("means", torch.zeros(0, dimension))
        self.register_buffer("factors", torch.zeros(0, dimension * (dimension + 1) // 2))
        self.register_buffer("shared", torch.zeros(dimension, dimension))

    @property
    def noise_width(self) -> int:
        """One number more than an embedding has; it chooses the component."""
        return self.dimension + 1

    @torch.no_grad()
    def start(self, z: Tensor, condition: Tensor) -> None:
        """Fit the components of every class here; an old class with too few embeddings keeps its previous fit."""
        places, known, self.centre = self._places(), self.means.shape[1], None
        fresh = [c for c, place in enumerate(places) if place.start >= known]
        self._add_components(places[-1].stop - known)
        seen = self.counts[0, : fresh[0]].sum() if fresh else self.counts[0].sum()
        for s, (of_seed, y) in enumerate(zip(z.double(), condition, strict=True)):
            classes = {c: of_seed[y == c] for c in y.unique().tolist()}
            shared = self._share({c: own for c, own in classes.items() if c in fresh}, s, float(seen))
            for c, own in classes.items():
                if c in fresh or len(own) > self.dimension:
                    place = places[c]
                    found = components(own, len(place), shared, self.shrinkage)
                    for there, new in zip((self.weights, self.means, self.factors), found, strict=True):
                        there[s, place.start : place.stop] = new.to(there)

    def _places(self) -> list[range]:
        """The components of each class: as many as its samples allow."""
        found: list[range] = []
        for count in self.counts[0].tolist():
            first = found[-1].stop if found else 0
            found.append(range(first, first + max(1, min(self.components, int(count) // FEWEST))))
        return found

    def _add_components(self, more: int) -> None:
        for name in ("weights", "means", "factors"):
            there = getattr(self, name)
            setattr(self, name, torch.cat([there, there.new_zeros(len(there), more, *there.shape[2:])], dim=1))

    def _share(self, fresh: dict[int, Tensor], s: int, seen: float) -> Tensor:
        """Update a seed's mean covariance by embeddings of new classes, and return it, shrunk towards a sphere.

        So far it is that of `seen` samples.
        """
        total, count = seen * self.shared[s].double(), seen
        for z in fresh.values():
            total, count = total + len(z) * z.mT.cov(correction=0).view_as(total), count + len(z)
        self.shared[s] = (total / max(count, 1)).to(self.shared)
        prior, eye = self.dimension, torch.eye(self.dimension).to(total)
        return (total + prior * (total.trace() / max(count, 1) / self.dimension) * eye) / max(count + prior, 1)

    def log_prob(self, z: Tensor, condition: Tensor) -> Tensor:
        """Log-density under the mixture of each sample's class [S, B]."""
        places, found = self._places(), torch.zeros_like(z[..., 0])
        for c in condition.unique().tolist():
            own = condition == c
            at = own.any(0).nonzero().squeeze(1)  # where some seed has this class
            found[:, at] = torch.where(own[:, at], self._of_class(z[:, at], places[c]), found[:, at])
        return found

    def log_probs(self, z: Tensor, ids: Sequence[int]) -> Tensor:
        """Log-density of embeddings [S, B, D] under each of these classes [S, B, classes]."""
        places = self._places()
        return torch.stack([self._of_class(z, places[i]) for i in ids], dim=2)

    def _of_class(self, z: Tensor, place: range) -> Tensor:
        """Log-density under the mixture of these components [S, B]."""
        at = slice(place.start, place.stop)
        L, off = triangular(self.factors[:, at], self.dimension), z.unsqueeze(1) - self.means[:, at].unsqueeze(2)
        return (self.weights[:, at].unsqueeze(2) + log_normal(off, L)).logsumexp(1)

    def _draw(self, condition: Tensor, noise: Tensor) -> Tensor:
        S, n = condition.shape
        N, D = self.means.shape[1:]
        chosen = self._choose(condition, noise[..., -1]) + N * torch.arange(S, device=noise.device).unsqueeze(1)
        chosen, z = chosen.flatten(), noise[..., :D].flatten(0, 1).clone()
        counts = torch.bincount(chosen, minlength=S * N).tolist()
        if S * n < FEW * sum(count > 0 for count in counts):  # so that many classes take as long as few
            for rows in torch.arange(S * n, device=z.device).split(max(1, AT_ONCE // D**2)):
                mean, packed = (t.flatten(0, 1)[chosen[rows]] for t in (self.means, self.factors))
                z[rows] = mean + (triangular(packed, D) @ z[rows].unsqueeze(2)).squeeze(2)
            return z.view(S, n, D)
        order, first = chosen.argsort(stable=True), 0
        for component, count in enumerate(counts):
            if count:
                rows, s, k = order[first : first + count], component // N, component % N
                z[rows] = self.means[s, k] + z[rows] @ triangular(self.factors[s, k], D).mT
                first += count
        return z.view(S, n, D)

    def _choose(self, condition: Tensor, noise: Tensor) -> Tensor:
        """A component of each sample's class [S, n], by normal noise [S, n]."""
        sizes = torch.tensor([len(place) for place in self._places()], device=noise.device)
        first, within = sizes.cumsum(0) - sizes, torch.arange(int(sizes.max()), device=noise.device)
        there = within < sizes.unsqueeze(1)  # [C, K]
        at = torch.where(there, first.unsqueeze(1) + within, 0)
        shares = torch.where(there, self.weights[:, at].exp(), 0.0).cumsum(2)  # [S, C, K]
        of_class = look_up(shares, condition)
        chance = 0.5 * (1 + torch.erf(noise / math.sqrt(2))).unsqueeze(2) * of_class[..., -1:]
        return first[condition] + torch.minimum((of_class < chance).sum(2), sizes[condition] - 1)

    def _centre(self) -> tuple[Tensor, Tensor]:
        if self.centre is None or self.centre[0] is not self.means:
            self.centre = self.means, self._moments()
        return self.centre[1]

    def _moments(self) -> tuple[Tensor, Tensor]:
        places = self._places()
        of = torch.tensor([c for c, place in enumerate(places) for _ in place], device=self.means.device)
        share = (self.counts / self.counts.sum(1, keepdim=True))[:, of] * self.weights.exp()
        share = share.unsqueeze(-1)
        mean = (share * self.means).sum(1, keepdim=True)
        within = triangular(self.factors, self.dimension).square().sum(-1)  # the diagonal of each covariance
        return mean, (share * (within + (self.means - mean).square())).sum(1, keepdim=True).sqrt()


def components(z: Tensor, K: int, shared: Tensor, shrinkage: float) -> tuple[Tensor, Tensor, Tensor]:
    """Log-weights [K], means [K, D] and packed Cholesky factors of a mixture that is fitted to embeddings [n, D]."""
    n, D = z.shape
    centres = k_means(z, z[torch.arange(K, device=z.device) * n // K])
    weights, means, L = _maximised(z, F.one_hot(nearest(z, centres), K).to(z), shared, shrinkage * D)
    for _ in range(ROUNDS if K > 1 else 0):
        each = torch.stack([log_normal(z - mean, factor) for mean, factor in zip(means, L, strict=True)], dim=1)
        weights, means, L = _maximised(z, (weights + each).softmax(1), shared, shrinkage * D)
    row, column = torch.tril_indices(D, D)
    return weights, means, L[:, row, column]


def _maximised(z: Tensor, member: Tensor, shared: Tensor, prior: float) -> tuple[Tensor, Tensor, Tensor]:
    """Log-weights, means and Cholesky factors, given how much each sample belongs to each component [n, K]."""
    n, N = len(z), member.sum(0).clamp_min(1e-9)
    means = (member.mT @ z) / N.unsqueeze(1)
    sums = torch.stack(
        [((z - mean) * m.unsqueeze(1)).mT @ (z - mean) for mean, m in zip(means, member.mT, strict=True)]
    )
    pooled = (sums.sum(0) + prior * shared) / (n + prior)
    covariance = (sums + prior * pooled) / (N + prior)[:, None, None]
    covariance.diagonal(dim1=1, dim2=2).add_(RIDGE * pooled.diagonal().mean() + 1e-8)
    return (N / n).log(), means, torch.linalg.cholesky(covariance)


def log_normal(off: Tensor, L: Tensor) -> Tensor:
    """Log-density [..., B] of a normal distribution at these distances from its mean [..., B, D], by its factor."""
    u = torch.linalg.solve_triangular(L, off.mT, upper=False)
    log_det = L.diagonal(dim1=-2, dim2=-1).log().sum(-1, keepdim=True)
    return -0.5 * (u.square().sum(-2) + L.shape[-1] * math.log(2 * math.pi)) - log_det
