"""A feature extractor: a frozen network or a function that maps a batch of inputs to vectors."""

# B batch, C channels, H and W image, D features

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Literal
from weakref import WeakKeyDictionary

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.parameter import is_lazy

from prer.data.resizing import coloured, resized
from prer.errors import InputError
from prer.text import reason, shown

VECTORS = ("sentence_embedding", "pooler_output", "image_embeds", "text_embeds", "embeddings")
POOL = "pool them, for example with nn.Sequential(network, nn.AdaptiveAvgPool2d(1), nn.Flatten())"


@dataclass(frozen=True)
class Extractor:
    """A frozen network with what identifies it.

    Attributes:
        name: its name in `stream.features`; for one of the user's own, the name of its class or function.
        sha256: checksum of its weights; empty for a function.
        embed: maps a batch to vectors: a list of texts, or images [B, C, H, W] or vectors [B, F] as floats.
        inputs: what it accepts.
        size: height and width of the images that it sees; 0: those of the data.
    """

    name: str
    sha256: str
    embed: Callable[[Any], Any]
    inputs: Literal["texts", "images", "anything"] = "anything"
    size: int = 0

    @torch.no_grad()
    def __call__(self, batch: Sequence[str] | Tensor) -> Tensor:
        """Vectors [B, D] of a batch."""
        try:
            made = self.embed(list(batch) if not isinstance(batch, Tensor) else batch)
        except InputError:
            raise
        except Exception as error:  # the code of somebody else
            given = "texts" if not isinstance(batch, Tensor) else f"a batch of shape {tuple(batch.shape)}"
            raise InputError(f"the feature extractor {self.name} failed on {given}: {reason(error)}") from error
        return self._checked(made, len(batch))

    def _checked(self, made: Any, count: int) -> Tensor:
        """The output of a network as floats [B, D]."""
        found = _tensor_in(made)
        if found is None:
            raise InputError(
                f"the feature extractor {self.name} returns {shown(type(made).__name__, 30)}; "
                "wrap it in a function that returns a tensor of vectors [B, D]"
            )
        vectors = found.flatten(1) if found.dim() > 2 and math.prod(found.shape[2:]) == 1 else found
        if vectors.dim() != 2 or len(vectors) != count or not vectors.shape[1]:
            shape = "x".join(map(str, found.shape)) or "1"
            what = f"of {count} inputs, the feature extractor {self.name} returns {shape} numbers, not one vector each"
            raise InputError(f"{what}; {POOL if found.dim() > 2 else 'it must return [B, D]'}")
        if not vectors.is_floating_point():
            raise InputError(f"the feature extractor {self.name} returns {vectors.dtype}; it must return floats")
        vectors = vectors.detach().float().cpu()
        if not vectors.isfinite().all():
            raise InputError(f"the feature extractor {self.name} returns NaN or infinite values; check its input scale")
        return vectors


def of_module(module: nn.Module) -> Extractor:
    """A network of the user's own, on its device; one of timm gets images of the size and scale that it wants."""
    known = getattr(module, "pretrained_cfg", None)
    about = known if isinstance(known, Mapping) else {}
    size, mean, std = (about.get(key) for key in ("input_size", "mean", "std"))
    side = int(size[-1]) if isinstance(size, (tuple, list)) else 0

    def embed(batch: Any) -> Any:
        place = next((p.device for p in module.parameters()), torch.device("cpu"))
        with evaluating(module):
            if not isinstance(batch, Tensor):
                return module(batch)
            x = batch.to(place)
            if mean and std and x.dim() == 4:
                x = coloured(x) if len(mean) == 3 else x
                x = (x - x.new_tensor(mean).view(-1, 1, 1)) / x.new_tensor(std).view(-1, 1, 1)
            return module(x)

    return Extractor(type(module).__qualname__, sha256_of(module), embed, size=side)


def of_function(function: Callable[[Any], Any]) -> Extractor:
    """A function of the user's own, which is identified by its name alone, whatever file it is in."""
    return Extractor(getattr(function, "__qualname__", type(function).__qualname__), "", function)


def of_sentences(model: Any) -> Extractor:
    """A model with `encode`, as in sentence-transformers."""
    sha256 = sha256_of(model) if isinstance(model, nn.Module) else ""

    def embed(texts: Any) -> Any:
        with evaluating(model):
            return model.encode(texts, convert_to_numpy=True, show_progress_bar=False)

    return Extractor(type(model).__qualname__, sha256, embed, "texts")


@contextmanager
def evaluating(module: Any) -> Iterator[None]:
    """Put a network into evaluation mode, and restore the mode of each of its parts."""
    before = [(part, part.training) for part in module.modules()] if isinstance(module, nn.Module) else []
    for part, _ in before:
        part.training = False
    try:
        yield
    finally:
        for part, mode in before:
            part.training = mode


_known: WeakKeyDictionary[nn.Module, tuple[list[tuple[int, int, float]], str]] = WeakKeyDictionary()


def sha256_of(module: nn.Module) -> str:
    """Checksum of all weights and buffers of a network, with their names, types and shapes.

    It is computed again only if a tensor was replaced, or its version or sum has changed since the last call.
    """
    tensors = sorted((name, t) for name, t in module.state_dict(keep_vars=True).items() if isinstance(t, Tensor))
    if any(is_lazy(tensor) for _, tensor in tensors):
        what = f"the network {type(module).__qualname__} has layers whose weights have no shape yet"
        raise InputError(f"{what}; run one batch through it first")
    now = [(tensor.data_ptr(), tensor._version, float(tensor.detach().float().sum())) for _, tensor in tensors]
    before, found = _known.get(module, ([], ""))
    if now != before or not found:
        sha = hashlib.sha256()
        for name, tensor in tensors:
            plain = tensor.detach().cpu().contiguous()
            sha.update(f"{name} {plain.dtype} {tuple(plain.shape)}".encode())
            sha.update(plain.flatten().view(torch.uint8).numpy().data)
        found = sha.hexdigest()
        _known[module] = now, found
    return found


def of_size(x: Tensor, size: int) -> Tensor:
    """Images [B, C, H, W] of bytes or floats as floats in [0, 1], resized unless the size is 0."""
    x = x.float() / 255 if x.dtype == torch.uint8 else x.float()
    return resized(x, size) if size and x.shape[-2:] != (size, size) else x


def _tensor_in(made: Any) -> Tensor | None:
    """The tensor of vectors in what a network returns; None if it is not clear which."""
    if isinstance(made, Tensor):
        return made if made.layout == torch.strided and not made.is_meta else None
    if isinstance(made, np.ndarray):
        return torch.from_numpy(made.copy()) if made.dtype.kind in "biuf" and made.itemsize <= 8 else None
    if isinstance(made, list) and made and all(isinstance(row, (Tensor, np.ndarray)) for row in made):
        rows = [found for row in made if (found := _tensor_in(row)) is not None]
        return torch.stack(rows) if len(rows) == len(made) and len({row.shape for row in rows}) == 1 else None
    for name in VECTORS:
        value = made.get(name) if isinstance(made, Mapping) else getattr(made, name, None)
        if isinstance(value, (Tensor, np.ndarray)):
            return _tensor_in(value)
    return None
