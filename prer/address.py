"""Addressed randomness: random numbers depend on the address where they are drawn, never on earlier draws.

`address / task / "flow" / epoch` works like a path. The same address gives the same numbers in every process, so a
run can resume at any point without a saved generator state, and the numbers of a seed do not depend on the other
seeds of the run.
"""

# S seeds

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from prer.errors import InputError

MOST_SEEDS = 1000


@dataclass(frozen=True)
class Address:
    """An address at which each seed draws its own random numbers.

    Example:
        >>> place = Address((0, 1)) / "task 3" / "flow"
        >>> place.normal(5).shape
        torch.Size([2, 5])
        >>> bool((place.normal(5) == place.normal(5)).all())
        True
    """

    seeds: tuple[int, ...]
    device: str = "cpu"
    place: tuple[str, ...] = ()

    def __truediv__(self, part: object) -> Address:
        """The address extended by one part."""
        return replace(self, place=(*self.place, str(part)))

    def streams(self) -> Iterator[int]:
        """Yield the 63-bit generator key of each seed at this address (torch's CPU generator uses 32 of these bits)."""
        for seed in self.seeds:
            text = "\x1f".join((str(seed), *self.place))
            yield int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big") >> 1

    def normal(self, *shape: int) -> Tensor:
        """Standard normal numbers [S, *shape]."""
        return self._draw(torch.randn, shape)

    def uniform(self, *shape: int) -> Tensor:
        """Uniform numbers in [0, 1) [S, *shape]."""
        return self._draw(torch.rand, shape)

    def permutation(self, n: int) -> Tensor:
        """A random permutation of 0..n-1 for each seed [S, n], the same on every platform and in every version."""
        bits = self.bits(n)
        if self.device == "cpu":
            return torch.from_numpy(np.argsort(bits, axis=1, kind="stable"))
        signed = (bits ^ np.uint64(1 << 63)).view(np.int64)  # the same order; torch cannot sort uint64
        return torch.from_numpy(signed).to(self.device).argsort(dim=1, stable=True)

    def bits(self, n: int) -> np.ndarray:
        """Random 64-bit unsigned integers [S, n], the same on every platform and in every version."""
        # The raw bits of a counter-based generator never change; what libraries compute from them may.
        return np.stack([np.random.Philox(key=key).random_raw(n) for key in self.streams()])

    def _draw(self, draw: Callable[..., Tensor], shape: tuple[int, ...]) -> Tensor:
        generator = torch.Generator(self.device)
        rows = [draw(shape, generator=generator.manual_seed(key), device=self.device) for key in self.streams()]
        return torch.stack(rows)


def as_seeds(seeds: int | Iterable[int]) -> tuple[int, ...]:
    """Return a tuple of distinct seeds, given their number or the seeds themselves."""
    chosen = tuple(range(min(seeds, MOST_SEEDS + 1)) if isinstance(seeds, int | np.integer) else seeds)
    whole = all(isinstance(seed, int | np.integer) for seed in chosen)
    if not whole or len(chosen) > MOST_SEEDS or not chosen or len(set(chosen)) < len(chosen) or min(chosen) < 0:
        raise InputError(
            f"seeds={seeds}: give a number from 1 to {MOST_SEEDS}, or distinct seeds of 0 or more, such as [0, 1, 7]"
        )
    return tuple(int(seed) for seed in chosen)


def as_device(device: str) -> str:
    """The device to run on; "auto" selects a GPU if there is one."""
    if device == "auto":
        return "cuda" if torch.cuda.is_available() else "cpu"
    try:
        if device not in ("cpu", "cuda"):  # CUDA_VISIBLE_DEVICES chooses among several GPUs
            raise RuntimeError
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError):
        there = "cpu, cuda" if torch.cuda.is_available() else "cpu"
        raise InputError(
            f"device {device!r} is not available; this machine has {there}, and 'auto' selects one"
        ) from None
    return device
