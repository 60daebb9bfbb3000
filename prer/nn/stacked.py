"""Modules with a seed axis: `stack` builds one module for each seed and stacks their parameters.

A network is an ordinary module for ONE seed. The layers here and in `convolution.py` support the axis, so the same
module then computes all seeds at once. `benchmarks/seed_axis.py` holds the measurements behind this choice.
"""

# S seeds, B batch, C channels, H and W image, D embedding

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TypeVar

import torch
from torch import Tensor, nn

from prer.address import Address

M = TypeVar("M", bound=nn.Module)


class Linear(nn.Linear):
    """A fully connected layer: [B, in] as usual, or [S, B, in] once stacked."""

    def forward(self, input: Tensor) -> Tensor:
        """Apply each seed's layer to that seed's batch."""
        if self.weight.dim() == 2:
            return super().forward(input)
        return torch.baddbmm(self.bias.unsqueeze(1), input, self.weight.mT)


def stack(build: Callable[[], M], address: Address) -> M:
    """Build a module once for each seed, with that seed's own randomness, and stack parameters and buffers.

    The result is in evaluation mode; only a training phase changes that, see `training`.

    Example:
        >>> layer = stack(lambda: Linear(3, 2), Address(seeds=(0, 1, 2, 3)))
        >>> layer(torch.zeros(4, 10, 3)).shape
        torch.Size([4, 10, 2])
    """
    with torch.random.fork_rng(devices=[]):
        copies = []
        for key in address.streams():
            torch.default_generator.manual_seed(key)  # of the CPU only; the caller's GPU generators stay unchanged
            copies.append(build())
    stacked = copies[0]
    for path, module in stacked.named_modules():
        peers = [copy.get_submodule(path) for copy in copies]
        for name, _ in list(module.named_parameters(recurse=False)):
            setattr(module, name, nn.Parameter(torch.stack([getattr(peer, name).detach() for peer in peers])))
        for name, _ in list(module.named_buffers(recurse=False)):
            setattr(module, name, torch.stack([getattr(peer, name) for peer in peers]))
    return stacked.to(address.device).eval()


@contextmanager
def training(networks: Sequence[nn.Module]) -> Iterator[None]:
    """Set these networks to training mode, and back to evaluation mode on exit, even after an error."""
    try:
        for network in networks:
            network.train()
        yield
    finally:
        for network in networks:
            network.eval()


def put(module: nn.Module, name: str, tensor: Tensor, seeds: int, exact: bool = True) -> None:
    """Set the parameter or buffer of this name to a tensor; unless `exact`, the size of its second axis may differ."""
    path, _, last = name.rpartition(".")
    owner = module.get_submodule(path)
    there = getattr(owner, last, None)
    if isinstance(there, Tensor):
        a, b = list(there.shape), list(tensor.shape)
        if tensor.dtype != there.dtype or (a != b if exact else a[:1] + a[2:] != b[:1] + b[2:]):
            raise ValueError(f"{name} is {tensor.dtype} {tuple(b)}, not {there.dtype} {tuple(a)}")
    elif exact or tensor.dim() < 2 or len(tensor) != seeds:
        raise ValueError(f"there is no tensor {name} of shape {tuple(tensor.shape)}")
    if isinstance(there, nn.Parameter):
        setattr(owner, last, nn.Parameter(tensor.clone(), requires_grad=there.requires_grad))
    else:
        owner.register_buffer(last, tensor.clone())


def floats(*modules: nn.Module) -> int:
    """Number of scalars of any type that one seed keeps in these modules: all memory is counted by this rule."""
    return sum(t[0].numel() for t in _tensors(modules))


def nbytes(*modules: nn.Module) -> int:
    """Number of bytes that the same scalars have on disk."""
    return sum(t[0].numel() * t.element_size() for t in _tensors(modules))


def _tensors(modules: Sequence[nn.Module]) -> list[Tensor]:
    return [t for module in modules for t in (*module.parameters(), *module.buffers())]
